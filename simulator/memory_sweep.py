"""The part of a sweep that is about memory: every crash state -> both stores, started -> verdicts M1 to M6.

A crash state whose stores look like an earlier one's is not started again, unless a turn waits in it: finishing that reads the session's log.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from simulator.digest import Look, TreeDigest
from simulator.index_oracles import judge_run
from simulator.memory_oracles import MemoryEvidence, judge_memory, memory_applicable
from simulator.memory_recover import MemoryRecoverer
from simulator.oracles import bounds_at
from simulator.product import Product
from simulator.scenario import Scenario
from simulator.values import MEMORY, TURNS, CrashState, Disk, OracleName, Recording, Remembered, Verdict

Bounds = tuple[int, int, int, int]
"""Changes of the stores promised and begun, turns promised and begun."""


class _Seen(msgspec.Struct):
    remembered: Remembered
    bounds: list[Bounds]


class MemorySweep:
    """Judges memory on the crash states of one recording; where it has no memory, only the run itself (M4)."""

    def __init__(self, recording: Recording, product: Product, scenario: Scenario) -> None:
        wanted = scenario.expect.oracles
        names = memory_applicable(recording)
        self.applicable: list[OracleName] = sorted(names if wanted == "all" else names & set(wanted))
        self.starts = 0
        """How often memory was started on a disk."""
        self._recording = recording
        self._memory = recording.memory
        self._recoverer = (
            None if recording.memory is None else MemoryRecoverer(product, scenario.settings, recording.memory)
        )
        self._stores = TreeDigest(under=() if recording.memory is None else recording.memory.folders)
        self._seen: dict[object, _Seen] = {}
        self._waiting: dict[Look, None] = {}
        self._bounds: dict[tuple[int, bool], Bounds] = {}

    def of_the_run(self) -> list[Verdict]:
        """Verdicts on the recorded run itself."""
        return [verdict for verdict in judge_run(self._recording) if verdict.oracle in self.applicable]

    def of_state(self, state: CrashState, disk: Disk, tree: Look) -> list[Verdict]:
        """Verdicts on one crash state; none when an earlier one with the same stores and bounds has given them.  ``tree`` stands for the disk."""
        if self._memory is None or self._recoverer is None:
            return []
        bounds = self._bounds_at(state)
        stores = self._stores.of(disk)
        seen = self._seen.get((stores, tree) if stores in self._waiting else stores)
        if seen is None:
            self.starts += 1
            seen = _Seen(self._recoverer.recover(disk), [])
            if seen.remembered.taken or seen.remembered.waiting:
                self._waiting[stores] = None
            self._seen[(stores, tree) if stores in self._waiting else stores] = seen
        elif any(_covers(earlier, bounds) for earlier in seen.bounds):
            return []
        seen.bounds.append(bounds)
        return self.judge(seen.remembered, bounds)

    def judge(self, remembered: Remembered, bounds: Bounds) -> list[Verdict]:
        """Every oracle that has something to say."""
        assert self._memory is not None
        case = MemoryEvidence(self._memory, remembered, *bounds)
        verdicts = [judge_memory(name, case) for name in self.applicable]
        return [verdict for verdict in verdicts if verdict is not None]

    def _bounds_at(self, state: CrashState) -> Bounds:
        key = (state.point, state.model != "kill")
        found = self._bounds.get(key)
        if found is None:
            found = self._bounds[key] = memory_bounds(self._recording, state)
        return found


def memory_bounds(recording: Recording, state: CrashState) -> Bounds:
    """What was promised and begun when the run was cut."""
    power = state.model != "kill"
    changes = bounds_at(recording.ops, MEMORY, state.point, power=power)
    return (*changes, *bounds_at(recording.ops, TURNS, state.point, power=power))


def look_at(
    recording: Recording, state: CrashState, disk: Disk, product: Product, scenario: Scenario
) -> tuple[Remembered | None, Sequence[Verdict]]:
    """One crash state alone, as a replay shows it: what memory made of it, and every verdict; the run's own among them."""
    sweep = MemorySweep(recording, product, scenario)
    run = sweep.of_the_run()
    if recording.memory is None:
        return None, run
    remembered = MemoryRecoverer(product, scenario.settings, recording.memory).recover(disk)
    return remembered, [*run, *sweep.judge(remembered, memory_bounds(recording, state))]


def _covers(earlier: Bounds, now: Bounds) -> bool:
    return earlier[0] >= now[0] and earlier[1] <= now[1] and earlier[2] >= now[2] and earlier[3] <= now[3]
