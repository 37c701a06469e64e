"""The suites ``memory`` and ``utf8_index``: all held, the same bytes whatever the hash seed, and every verdict can be seen again.

Besides: the process killed before every single call of an update, and every read of a start failing once.
"""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import msgspec
import pytest

from pseudoclaude.errors import PseudoClaudeError
from simulator.disk import DiskFault
from simulator.disk.faults import CallKind
from simulator.hunt import hunt
from simulator.planted import PLANTED, Planted
from simulator.record import RunBroken, record
from simulator.replay import replay_token
from simulator.run import run_scenario
from simulator.scenario import Crash, KillAt, Scenario, ScenarioError, UserStep, find_scenarios, load_scenario
from simulator.values import OracleName
from tests.simulator.test_cli import pseudosim

ROOT = Path(__file__).resolve().parents[2] / "scenarios"
SUITES = ("memory", "utf8_index")
FILES = [path for suite in SUITES for path in find_scenarios((str(ROOT / suite),))]
MEMORY_ORACLES: tuple[OracleName, ...] = ("M1", "M2", "M3", "M4", "M5", "M6")
PLANTED_HERE = [planted for planted in PLANTED.values() if set(planted.caught_by) & set(MEMORY_ORACLES)]


def of(name: str) -> Scenario:
    return load_scenario(ROOT / f"{name}.yaml")


@pytest.mark.slow
def test_both_suites_hold_and_give_the_same_bytes_under_two_hash_seeds(tmp_path: Path) -> None:
    reports = []
    for seed in ("1", "4242"):
        suites = [str(ROOT / suite) for suite in SUITES]
        run = pseudosim("run", *suites, "--report-dir", str(tmp_path / seed), hash_seed=seed)
        assert run.returncode == 0, run.stdout + run.stderr
        reports.append((tmp_path / seed / "report.json").read_bytes())
    assert reports[0] == reports[1]
    report = json.loads(reports[0])
    assert report["summary"]["broken"] == report["summary"]["not_run"] == 0
    assert report["summary"]["scenarios"] == len(FILES) > 20
    for name in MEMORY_ORACLES:
        assert sum(row["oracles"].get(name, {"held": 0})["held"] for row in report["scenarios"]) > 1_000, name


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED_HERE, ids=lambda planted: planted.name)
def test_every_planted_bug_of_memory_is_caught(planted: Planted) -> None:
    caught = hunt(planted, [load_scenario(path) for path in FILES])
    assert caught.complete, caught.words


def test_every_oracle_of_memory_has_a_planted_bug() -> None:
    assert {name for planted in PLANTED_HERE for name in planted.caught_by} == set(MEMORY_ORACLES)


@pytest.mark.slow
def test_slicing_bytes_is_caught_in_every_scenario_of_the_index() -> None:
    for path in find_scenarios((str(ROOT / "utf8_index"),)):
        result = run_scenario(load_scenario(path), variant="slices_index_bytes", until=("M5",))
        assert result.sweep.oracles["M5"].broken, path.stem


@pytest.mark.slow
def test_a_verdict_on_memory_can_be_seen_again() -> None:
    result = run_scenario(of("memory/both_stores"), variant="no_memory_journal", until=("M1",))
    token = next(failure.token for failure in result.sweep.failures if failure.oracle == "M1")
    lines = list(replay_token(token, scenarios=ROOT, keep=None))
    broken = [line for line, is_broken in lines if is_broken]
    assert any(line.strip().startswith("M1") and "the project's store is as after" in line for line in broken)
    assert any("issue change of memory" in line for line, _ in lines)
    assert any("issue turn handed to memory" in line for line, _ in lines)


@pytest.mark.slow
def test_a_verdict_on_a_whole_run_has_a_token_too() -> None:
    result = run_scenario(of("memory/both_stores"), variant="index_in_log", until=("M4",))
    token = next(failure.token for failure in result.sweep.failures if failure.oracle == "M4")
    broken = [line for line, is_broken in replay_token(token, scenarios=ROOT, keep=None) if is_broken]
    assert any("M4" in line and "the index stands in" in line for line in broken)


def test_the_index_is_judged_in_scenarios_without_memory() -> None:
    result = run_scenario(of("append_replace/summary"), variant="index_in_log", until=("M4",))
    assert result.sweep.oracles["M4"].broken == 1


# --- every call of an update, every read of a start ------------------------------------------------------------


def _killed_at(kill: KillAt) -> Scenario:
    """One update of both stores, killed there; the sweep crashes before, inside and after the start that follows.

    The model says the same when it is asked again, which it is when the kill came before the journal.
    """
    scenario = of("memory/killed_while_applied")
    first = scenario.steps[0]
    assert isinstance(first, UserStep)
    step = msgspec.structs.replace(first, memory=msgspec.structs.replace(first.memory, kill=kill))
    faults = msgspec.structs.replace(scenario.faults, crash=Crash(models=("kill",)))
    provider = msgspec.structs.replace(
        scenario.provider, memory=(scenario.provider.memory[0], *scenario.provider.memory)
    )
    return msgspec.structs.replace(scenario, steps=(step, *scenario.steps[1:]), faults=faults, provider=provider)


def _kills(kind: CallKind) -> list[KillAt]:
    """One for each call of that kind between the model's answer and the end of the update."""
    found: list[KillAt] = []
    for nth in count(1):
        kill = KillAt(kind, nth)
        try:
            record(_killed_at(kill))
        except ScenarioError as error:
            assert "the update ended before" in str(error)  # noqa: PT017 (it ends the count)
            break
        found.append(kill)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rename", "unlink", "write", "fsync", "fsync_dir"])
def test_a_kill_before_any_call_of_an_update_is_mended_by_the_next_start(kind: CallKind) -> None:
    kills = _kills(kind)
    for kill in kills:
        result = run_scenario(_killed_at(kill))
        assert (result.sweep.broken, result.facts["memory_waiting"], result.facts["memory_notes"]) == (0, 0, 2), kill
    assert len(kills) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "error"), [("open", "EMFILE"), ("pread", "EIO"), ("stat", "EIO"), ("listdir", "EIO")])
def test_a_read_that_fails_is_never_a_bare_error_of_the_system(kind: CallKind, error: str) -> None:
    """The session's own trouble has a name; memory's is told."""
    scenario = of("memory/killed_while_asked")
    told = 0
    for nth in range(1, 120):
        faults = msgspec.structs.replace(scenario.faults, disk=(DiskFault(kind, nth, error),))
        try:
            recording = record(msgspec.structs.replace(scenario, faults=faults))
        except (PseudoClaudeError, RunBroken):
            continue  # an OSError fails the test
        assert recording.memory is not None
        told += bool(recording.memory.reports)
    assert told
