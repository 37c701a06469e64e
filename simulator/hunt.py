"""Hunt: run scenarios on a planted bug until every oracle that must catch it has, and say how long that took in states."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from simulator.planted import Planted
from simulator.run import run_scenario
from simulator.scenario import Scenario
from simulator.values import OracleName


class Catch(msgspec.Struct, frozen=True):
    """Which oracles broke, after how many crash states of which scenario."""

    planted: Planted
    found: dict[OracleName, tuple[str, int]]

    @property
    def complete(self) -> bool:
        return set(self.planted.caught_by) <= set(self.found)

    @property
    def words(self) -> str:
        seen = [f"{name} after {states:,} states of {scenario}" for name, (scenario, states) in self.found.items()]
        blind = [name for name in self.planted.caught_by if name not in self.found]
        return ", ".join(seen + [f"{name} stayed blind" for name in blind])


def hunt(planted: Planted, scenarios: Sequence[Scenario]) -> Catch:
    """Scenarios in order, each only until the missing oracles broke."""
    found: dict[OracleName, tuple[str, int]] = {}
    states = 0
    for scenario in scenarios:
        missing = [name for name in planted.caught_by if name not in found]
        if not missing:
            break
        result = run_scenario(scenario, variant=planted.name, until=missing)
        states += result.sweep.states
        for name in missing:
            tally = result.sweep.oracles.get(name)
            if tally is not None and tally.broken:
                found[name] = (scenario.id, states)
    return Catch(planted, found)
