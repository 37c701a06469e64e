"""Sweep: a recording -> every crash state -> recover -> judge -> one result a scenario.

States that leave the same visible disk are recovered once.  What the disk alone decides is judged once; what depends on the crash point is
judged again for every pair (acknowledged, issued) that no earlier pair of the same disk covers.  So ``checks`` counts verdicts really given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from simulator.again import Promises, second_recording
from simulator.crash import BLOCK_BYTES, Bounds, Model, Tears, changes_of, crash_states
from simulator.digest import Look, TreeDigest
from simulator.disk import OpLog
from simulator.looks import Looks
from simulator.memory_sweep import MemorySweep
from simulator.oracles import (
    BOUND_ORACLES,
    DISK_ORACLES,
    ORACLES,
    Evidence,
    Judge,
    applicable,
    bounds_along,
    excused_along,
)
from simulator.product import Product
from simulator.recover import Recoverer
from simulator.scenario import Crash, Scenario
from simulator.token import token_of, token_of_recovery
from simulator.values import CrashState, Op, OracleName, Recording, Recovered, SessionRecord, Verdict

AGAIN: tuple[OracleName, ...] = ("O1", "O2", "O3", "O5", "O11")
"""What must hold after a crash of the recovery, for O10 to hold."""
FAILURES_KEPT = 200
"""Failures whose token is kept, a scenario; all are counted."""


class Failure(msgspec.Struct, frozen=True):
    """One broken verdict: how to see it again, and which lines of the product were in flight."""

    token: str
    oracle: str
    model: str
    message: str
    call_sites: tuple[str, ...]


class Tally(msgspec.Struct):
    """Verdicts of one oracle."""

    held: int = 0
    broken: int = 0
    not_run: int = 0


class SweepResult(msgspec.Struct):
    """Everything one sweep of one scenario found.  ``model_states`` counts states by model."""

    states: int = 0
    trees: int = 0
    checks: int = 0
    deep_checks: int = 0
    oracles: dict[str, Tally] = {}
    failures: list[Failure] = []
    samples: dict[str, str] = {}
    """A token of the last state of each model, whatever its verdict, for whoever wants to look at one."""
    broken: int = 0
    mixtures: int = 0
    lost: int = 0
    excused: int = 0
    """States in which a lying disk left what was promised to nobody's power; O3 and O5 say nothing about them."""
    model_states: dict[str, int] = {}
    bounds: Bounds = msgspec.field(default_factory=Bounds)


class _Seen(msgspec.Struct):
    recovered: Recovered
    bounds: list[_Bounds]


_Bounds = tuple[int, int, bool]
"""Changes promised and begun, and whether the disk had lied (``excused_at``)."""


class _Judges:
    """The oracles of one session with their tallies: all of them, and those that depend on the crash point."""

    def __init__(self, names: Iterable[OracleName], tallies: dict[str, Tally]) -> None:
        self.names = frozenset(names)
        for name in sorted(self.names):
            tallies.setdefault(name, Tally())
        self.of_bounds = [(name, oracle, tallies[name]) for name, oracle in BOUND_ORACLES.items() if name in self.names]
        of_disk = [(name, oracle, tallies[name]) for name, oracle in DISK_ORACLES.items() if name in self.names]
        self.all = [*self.of_bounds, *of_disk]


class Sweep:
    """Sweeps one recording; ``run`` may be called for several models."""

    def __init__(self, recording: Recording, product: Product, scenario: Scenario, *, tears: Tears = "classes") -> None:
        self.result = SweepResult(oracles={}, failures=[], model_states={})
        self._recording = recording
        self._recoverer = Recoverer(product, scenario.settings)
        self._scenario = scenario
        self._tears = tears
        self._seen: dict[tuple[Look, str], _Seen] = {}
        self._second: dict[tuple[Look, str, str], None] = {}
        self._recovered_again: dict[tuple[Look, str], Recovered] = {}
        self._matches: dict[tuple[str, int, tuple[str, ...]], list[int]] = {}
        """Which steps a loaded history is.  The recoverer gives equal histories as one object, and keeps it."""
        self._trees: set[Look] = set()
        self._digest = TreeDigest(small=tears == "every_byte")
        self._looks = Looks(recording, self._digest)
        self._memory = MemorySweep(recording, product, scenario)
        self._bounds: dict[tuple[str, bool], list[_Bounds]] = {}
        self._parts = _parts_of(recording)
        """What each session sees of a disk, where that is not all there is."""
        self._oracles = {session.folder: applicable(recording, session) for session in recording.sessions}
        self._judges: dict[str, _Judges] = {}

    def run(self, crash: Crash, *, until: Collection[OracleName] = ()) -> SweepResult:
        """Every crash of every model the scenario asks for; or, with ``until``, only up to where each of these oracles has broken."""
        wanted = self._scenario.expect.oracles
        for folder, names in self._oracles.items():
            self._judges[folder] = _Judges(names if wanted == "all" else names & set(wanted), self.result.oracles)
        self._take(self._memory.of_the_run(), _at_the_end(self._recording))
        last: dict[str, CrashState] = {}
        for model in crash.models:
            points = _replace_points(self._recording) if crash.during == "replace" else None
            for state in crash_states(self._recording, model, tears=self._tears, bounds=self.result.bounds):
                if points is None or state.point in points:
                    self._state(state, crash)
                    last[model] = state
                    if until and self._all_broke(until):
                        return self._summed_up()
        for name in self._memory.applicable:
            self.result.oracles.setdefault(name, Tally())
        for tally in self.result.oracles.values():
            if not tally.held and not tally.broken:
                tally.not_run += 1
        self.result.samples = {model: token_of(self._recording, state) for model, state in last.items()}
        self.result.deep_checks += self._memory.starts
        return self._summed_up()

    def _summed_up(self) -> SweepResult:
        self.result.trees = len(self._trees)
        self.result.states = sum(self.result.model_states.values())
        self.result.checks = sum(tally.held + tally.broken for tally in self.result.oracles.values())
        return self.result

    def _all_broke(self, names: Collection[OracleName]) -> bool:
        return all(name in self.result.oracles and self.result.oracles[name].broken for name in names)

    def _state(self, state: CrashState, crash: Crash) -> None:
        counts = self.result.model_states
        counts[state.model] = counts.get(state.model, 0) + 1
        tree = self._looks.of(state)
        self._trees.add(tree)
        if self._recording.memory is not None:
            self._take(self._memory.of_state(state, self._looks.disk(state), tree), state)
        for session in self._recording.sessions:
            part = self._parts[session.folder].of(self._looks.disk(state)) if self._parts else tree
            bounds = self._bounds_along(session.folder, power=state.model != "kill")[state.point]
            self.result.excused += bounds[2]
            seen = self._seen.get((part, session.folder))
            if seen is None:
                log = OpLog() if crash.again else None
                recovered = self._first_time(state, session, part, bounds, log)
                if log is not None:
                    self._crash_again(state, session, recovered, log)
            elif bounds not in seen.bounds and not any(_covers(known, bounds) for known in seen.bounds):
                seen.bounds.append(bounds)
                self._judge(state, session, seen.recovered, bounds, self._judges[session.folder].of_bounds)

    def _bounds_along(self, folder: str, *, power: bool) -> list[_Bounds]:
        """What was promised and begun at each point of the run."""
        found = self._bounds.get((folder, power))
        if found is None:
            ops = self._recording.ops
            promised = bounds_along(ops, folder, power=power)
            excused = excused_along(ops, power=power)
            found = [(*bounds, lied) for bounds, lied in zip(promised, excused, strict=True)]
            self._bounds[(folder, power)] = found
        return found

    def _first_time(
        self, state: CrashState, session: SessionRecord, part: Look, bounds: _Bounds, log: OpLog | None
    ) -> Recovered:
        recovered = self._recoverer.recover(self._looks.disk(state), session.folder, log)
        self.result.deep_checks += 1
        self._seen[(part, session.folder)] = _Seen(recovered, [bounds])
        self._judge(state, session, recovered, bounds, self._judges[session.folder].all)
        return recovered

    def _judge(
        self,
        state: CrashState,
        session: SessionRecord,
        recovered: Recovered,
        bounds: _Bounds,
        judges: Iterable[tuple[OracleName, Judge, Tally]],
    ) -> None:
        case = Evidence(self._recording, session, recovered, *bounds)
        key = (session.folder, id(recovered.loaded.messages), recovered.loaded.truncated)
        case.matches = self._matches[key] = self._matches.get(key) or case.matches
        failed: list[tuple[OracleName, str]] = []
        for name, oracle, tally in judges:
            broken = oracle(case)
            if broken:
                tally.broken += 1
                failed.append((name, broken))
            elif broken is not None:
                tally.held += 1
        if failed:
            self.result.mixtures += any(name == "O6" for name, _ in failed)
            self.result.lost += any(name == "O3" for name, _ in failed)
            self._fail(token_of(self._recording, state), state, failed, self._recording.ops)

    def _take(self, verdicts: Iterable[Verdict], state: CrashState) -> None:
        """Count verdicts on memory."""
        failed: list[tuple[OracleName, str]] = []
        for verdict in verdicts:
            self._count(verdict.oracle, verdict.outcome == "broken")
            if verdict.outcome == "broken":
                failed.append((verdict.oracle, verdict.message))
        if failed:
            self._fail(token_of(self._recording, state), state, failed, self._recording.ops)

    def _count(self, name: str, broken: bool) -> None:
        tally = self.result.oracles.setdefault(name, Tally())
        if broken:
            tally.broken += 1
        else:
            tally.held += 1

    def _fail(self, token: str, state: CrashState, failed: list[tuple[OracleName, str]], ops: tuple[Op, ...]) -> None:
        self.result.broken += len(failed)
        for name, message in failed:
            if len(self.result.failures) < FAILURES_KEPT:
                self.result.failures.append(Failure(token, name, state.model, message, in_flight(ops, state)))

    # --- a crash of the recovery -------------------------------------------------------------------------------

    def _crash_again(self, state: CrashState, session: SessionRecord, recovered: Recovered, log: OpLog) -> None:
        """Crash the recovery from ``state`` at every point, and recover again (O10).

        After a kill the machine goes on: what was pending is visible and still not durable.  After a power cut the disk is all there is.
        """
        second = second_recording(self._recording, state, session, self._looks.disk(state), recovered, log)
        if second is None:
            return
        recording, first_point = second
        looks = Looks(recording, self._digest)
        promises = Promises(recording)
        models: tuple[Model, ...] = ("kill", "posix-min") if state.model == "kill" else ("posix-min",)
        for model in models:
            for later in crash_states(
                recording, model, tears="ends", first_point=first_point, bounds=self.result.bounds
            ):
                self._judge_again(state, later, recording, looks, promises)

    def _judge_again(
        self, state: CrashState, later: CrashState, recording: Recording, looks: Looks, promises: Promises
    ) -> None:
        self.result.model_states["again"] = self.result.model_states.get("again", 0) + 1
        tree = looks.of(later)
        session = recording.sessions[0]
        bounds, promised = promises.at(later)
        key = (tree, session.folder, promised)
        self._trees.add(tree)
        if key in self._second:
            return
        self._second[key] = None
        recovered = self._recovered_again.get((tree, session.folder))
        if recovered is None:
            recovered = self._recovered_again[(tree, session.folder)] = self._recoverer.recover(
                looks.disk(later), session.folder
            )
            self.result.deep_checks += 1
        case = Evidence(recording, session, recovered, *bounds)
        broken = [(name, message) for name in AGAIN if (message := ORACLES[name](case))]
        self._count("O10", bool(broken))
        if broken:
            token = token_of_recovery(self._recording, state, session.folder, recording.ops, later)
            name, message = broken[0]
            self._fail(token, later, [("O10", f"after a crash of the recovery, {name}: {message}")], recording.ops)


def _covers(known: _Bounds, bounds: _Bounds) -> bool:
    """Was a verdict at ``known`` at least as strict as one at ``bounds`` would be?"""
    return known[0] >= bounds[0] and known[1] <= bounds[1] and (bounds[2] or not known[2])


# --- small -----------------------------------------------------------------------------------------------------


def _parts_of(recording: Recording) -> dict[str, TreeDigest]:
    """Beside other sessions, or the stores of memory, a session is recovered once for each look of its own folder."""
    if recording.memory is None and len(recording.sessions) == 1:
        return {}
    return {session.folder: TreeDigest(under=(session.folder,)) for session in recording.sessions}


def _at_the_end(recording: Recording) -> CrashState:
    """Nothing is lost: the state that stands for the run itself."""
    return CrashState("kill", len(recording.ops), tuple(changes_of(recording.ops)))


def in_flight(ops: tuple[Op, ...], state: CrashState) -> tuple[str, ...]:
    """The lines of the product whose calls were lost, torn or interrupted, in order."""
    sites: dict[str, None] = {}
    kept = set(state.kept)
    for index in range(min(state.point + 1, len(ops))):
        op = ops[index]
        lost = op.kind in ("write", "truncate", "create", "mkdir", "rename", "unlink", "rmdir") and index not in kept
        torn = state.tear is not None and state.tear.op == index
        if torn or index == state.point or (lost and index >= state.point - BLOCK_BYTES and _near(index, state)):
            sites[op.site] = None
    return tuple(site for site in sites if site)


def _near(index: int, state: CrashState) -> bool:
    return state.model != "kill" and index > max(state.kept, default=-1)


def _replace_points(recording: Recording) -> set[int]:
    """Crash points from the issue of a replace to its acknowledgement."""
    points: set[int] = set()
    replaces = {(session.folder, step) for session in recording.sessions for step in session.replaces}
    inside = False
    for index, op in enumerate(recording.ops):
        if op.mark is not None and (op.mark.folder, op.mark.step) in replaces:
            inside = op.kind == "issue"
            points.add(index)
            points.add(index + 1)
        if inside:
            points.add(index)
    return points


__all__ = ["Failure", "Model", "Sweep", "SweepResult", "Tally", "TreeDigest", "in_flight"]
