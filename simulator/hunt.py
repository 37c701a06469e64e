"""Hunt: run scenarios on a planted bug until every oracle that must catch it has, and say how long that took in states.

A bug that shows in a run without any crash is hunted in that one run.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from simulator.planted import Planted
from simulator.run import run_scenario
from simulator.scenario import Scenario
from simulator.values import OracleName


class Catch(msgspec.Struct, frozen=True):
    """Which oracles broke, after how many crash states of which scenario.  ``in_run``: what went against the run itself."""

    planted: Planted
    found: dict[OracleName, tuple[str, int]]
    in_run: str = ""

    @property
    def complete(self) -> bool:
        return set(self.planted.caught_by) <= set(self.found) and bool(self.in_run) >= bool(self.planted.caught_in_run)

    @property
    def words(self) -> str:
        seen = [f"{name} after {states:,} states of {scenario}" for name, (scenario, states) in self.found.items()]
        blind = [name for name in self.planted.caught_by if name not in self.found]
        if self.planted.caught_in_run:
            words = f"the run of {self.planted.caught_in_run}"
            seen.append(f"{words}: {self.in_run}" if self.in_run else f"{words} goes on as if nothing were wrong")
        return ", ".join(seen + [f"{name} stayed blind" for name in blind])


def hunt(planted: Planted, scenarios: Sequence[Scenario]) -> Catch:
    """Scenarios in order, of the suites that it names, each only until the missing oracles broke."""
    found: dict[OracleName, tuple[str, int]] = {}
    states = 0
    for scenario in scenarios:
        if not scenario.id.startswith(planted.suite):
            continue
        missing = [name for name in planted.caught_by if name not in found]
        if not missing:
            break
        result = run_scenario(scenario, variant=planted.name, until=missing)
        states += result.sweep.states
        for name in missing:
            tally = result.sweep.oracles.get(name)
            if tally is not None and tally.broken:
                found[name] = (scenario.id, states)
    return Catch(planted, found, _in_run(planted, scenarios))


def _in_run(planted: Planted, scenarios: Sequence[Scenario]) -> str:
    for scenario in scenarios:
        if scenario.id == planted.caught_in_run:
            calm = replace(scenario, faults=replace(scenario.faults, crash=None))
            result = run_scenario(calm, variant=planted.name)
            return result.problem if result.verdict == "broken" else ""
    return ""
