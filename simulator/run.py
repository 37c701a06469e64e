"""Run: one scenario through the whole pipeline, and many scenarios side by side.

What a scenario's result can be: ``held``; ``broken`` (an oracle, an expected fact, or the run itself went against the scenario); ``not_run`` (the
harness could not measure: that is a failure of the harness, never green).
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Literal

import msgspec

from simulator.crash import Tears
from simulator.planted import product_of
from simulator.record import RunBroken, record
from simulator.replies.errors import ReplyError
from simulator.scenario import Crash, Scenario, ScenarioError
from simulator.sweep import Failure, Sweep, SweepResult
from simulator.values import OracleName, Recording

Verdict = Literal["held", "broken", "not_run"]

GARBAGE_LOOKED_FOR_AFTER = 50_000
"""So many more objects made than freed, instead of the usual 700."""


class ScenarioResult(msgspec.Struct):
    """What running one scenario gave.  ``problem`` says why it is broken or not run, beyond what the oracles say.

    ``seconds``: processor time of the sweep; it never enters ``report.json``.
    """

    id: str
    why: str
    verdict: Verdict
    sweep: SweepResult
    facts: dict[str, int] = {}
    replaces: int = 0
    requests_checked: int = 0
    folder: str = ""
    """Where the suites lie, for a command to replay; it never enters a report."""
    problem: str = ""
    seconds: float = 0.0


def run_scenario(
    scenario: Scenario,
    *,
    seed: int = 0,
    variant: str = "product",
    tears: Tears = "classes",
    until: Collection[OracleName] = (),
) -> ScenarioResult:
    """Record, crash, recover, judge.  Raises nothing for what the product does; harness errors become ``not_run``.  ``ScenarioError`` for a
    fact that does not exist.

    ``until``: stop as soon as each of these oracles has broken, which is how planted bugs are looked for.
    """
    try:
        recording = record(scenario, seed=seed, variant=variant)
    except RunBroken as error:
        return ScenarioResult(scenario.id, scenario.why, "broken", SweepResult(), problem=str(error))
    except (ReplyError, ScenarioError) as error:
        return ScenarioResult(scenario.id, scenario.why, "not_run", SweepResult(), problem=str(error))
    except Exception as error:  # noqa: BLE001
        # An exception nobody named is a bug of the harness or of the product outside a step; it must show as such, not as a traceback.
        problem = f"unexpected {type(error).__name__}: {error}"
        return ScenarioResult(scenario.id, scenario.why, "not_run", SweepResult(), problem=problem)
    sweep = Sweep(recording, product_of(variant), scenario, tears=tears)
    with _few_collections():
        begin = time.process_time()
        result = sweep.run(scenario.faults.crash or Crash(models=()), until=until)
        seconds = time.process_time() - begin
    problem = _unexpected(scenario, recording)
    return ScenarioResult(
        scenario.id,
        scenario.why,
        _verdict(result, problem),
        result,
        facts=dict(recording.facts),
        replaces=sum(len(session.replaces) for session in recording.sessions),
        requests_checked=recording.facts.get("requests", 0),
        problem=problem,
        folder=str(Path(scenario.folder).parent),
        seconds=seconds,
    )


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """A sweep keeps nearly all it makes and makes no cycles to speak of: looking for them less often is a few per cent of its time."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()  # what is loaded by now stays; without this every collection walks the SDKs' classes again
    gc.set_threshold(GARBAGE_LOOKED_FOR_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run_all(
    scenarios: Sequence[Scenario], *, seed: int = 0, variant: str = "product", tears: Tears = "classes", jobs: int = 1
) -> list[ScenarioResult]:
    """All of them, in the order of their ids, on ``jobs`` processes."""
    ordered = sorted(scenarios, key=lambda scenario: scenario.id)
    if jobs <= 1 or len(ordered) < 2:
        return [run_scenario(scenario, seed=seed, variant=variant, tears=tears) for scenario in ordered]
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(run_scenario, scenario, seed=seed, variant=variant, tears=tears) for scenario in ordered]
        return [future.result() for future in futures]


def _verdict(result: SweepResult, problem: str) -> Verdict:
    if problem or result.broken:
        return "broken"
    return "not_run" if any(tally.not_run for tally in result.oracles.values()) else "held"


def _unexpected(scenario: Scenario, recording: Recording) -> str:
    """What the run itself shows against the scenario: a request the provider would refuse, or another number than expected."""
    if recording.violations:
        return f"a request of the run may not be sent: {recording.violations[0]}"
    for name, wanted in sorted(scenario.expect.facts.items()):
        if name not in recording.facts:
            known = ", ".join(sorted(recording.facts))
            raise ScenarioError(f"{scenario.id}: there is no fact {name!r}; facts are {known} - at `$.expect.facts`")
        if recording.facts[name] != wanted:
            return f"{name} is {recording.facts[name]}, expected {wanted} - at `$.expect.facts.{name}`"
    return ""


__all__ = ["Failure", "ScenarioResult", "run_all", "run_scenario"]
