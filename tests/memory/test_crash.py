"""One update of both stores, stopped at every call in every way; what must hold is in ``crashing.fault_in``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import pytest

from simulator.build import DiskBuilder
from simulator.crash import crash_states
from simulator.disk import DiskFault, FaultPlan, OpLog, SimFileSystem
from simulator.disk.faults import CallKind
from simulator.values import Disk, Recording
from tests.memory.build import TURN, ScriptedModel, answer, manager, operation
from tests.memory.crashing import (
    NEW,
    PROJECT,
    SECOND,
    base_disk,
    bodies,
    fault_in,
    recording,
    recovered,
    states,
    updated,
    visible,
)


@pytest.fixture(scope="module")
def base() -> Disk:
    return base_disk()


@pytest.fixture(scope="module")
def taken(base: Disk) -> Recording:
    log = OpLog()
    fs = SimFileSystem(base, log=log)
    assert updated(fs).take_reports() == ()
    assert (bodies(fs), fs.open_files) == (NEW, 0)
    return recording(base, log)


@pytest.mark.slow
def test_after_a_crash_both_stores_are_old_or_both_are_new(taken: Recording) -> None:
    for model, fewest in (("kill", 50), ("posix-min", 150)):
        outcomes = []
        for state, disk in states(taken, model):
            fs = SimFileSystem(disk)
            told = recovered(fs).take_reports()
            assert (fault_in(fs), told, fs.open_files) == ("", (), 0), state
            outcomes.append(bodies(fs) == NEW)
            if state.point == len(taken.ops):
                assert bodies(fs) == NEW, "the update had ended"
        assert len(outcomes) > fewest
        assert {True, False} == set(outcomes)


@pytest.mark.slow
def test_a_crash_during_recovery_changes_nothing(taken: Recording) -> None:
    recoveries = 0
    for state, disk in itertools.islice(states(taken, "posix-min"), 0, None, 7):
        log = OpLog()
        first = SimFileSystem(disk, log=log)
        recovered(first)
        for again, left in states(recording(disk, log), "posix-min"):
            fs = SimFileSystem(left)
            recovered(fs)
            assert fault_in(fs) == "", (state, again)
            if again.point == len(log.ops):
                assert bodies(fs) == bodies(first)
            recoveries += 1
    assert recoveries > 500


@pytest.mark.slow
def test_what_a_killed_process_left_visible_is_made_durable_before_it_is_built_on(taken: Recording) -> None:
    """Kill, start with the pending operations kept, then power loss."""
    for point in (i + 1 for i, op in enumerate(taken.ops) if op.kind in ("rename", "unlink")):
        log = OpLog()
        first = SimFileSystem(killed_at(taken, point), log=log)
        recovered(first)
        both = Recording("memory", "", 0, "", taken.base, taken.ops[:point] + tuple(log.ops), (), "anthropic", "always")
        builder = DiskBuilder(both)
        seen: set[int] = set()
        for state in crash_states(both, "posix-min", first_point=point):
            disk = builder.build(state)
            ended = state.point == len(both.ops)
            if not ended and hash(visible(disk)) in seen:
                continue
            seen.add(hash(visible(disk)))
            fs = SimFileSystem(disk)
            recovered(fs)
            assert fault_in(fs) == "", (point, state)
            if ended:
                assert bodies(fs) == bodies(first)


@pytest.mark.slow
def test_a_journal_that_was_removed_never_comes_back_over_newer_notes(taken: Recording) -> None:
    """Kill, then another update of the project alone with the pending operations kept, then power loss."""
    last = range(next(i for i, op in enumerate(taken.ops) if op.kind == "unlink"), len(taken.ops) + 1)
    for point in last:
        log = OpLog()
        first = SimFileSystem(killed_at(taken, point), log=log)
        third = answer(operation("delete", "project", "deploy"), operation("update", "project", "build", "ninja"))
        made = manager("", third, fs=first)
        made.update_async(TURN, session_id="s2", range=(1, 2))
        if made.take_reports():
            continue
        both = Recording("memory", "", 0, "", taken.base, taken.ops[:point] + tuple(log.ops), (), "anthropic", "always")
        builder = DiskBuilder(both)
        for state in crash_states(both, "posix-min", first_point=len(both.ops)):
            fs = SimFileSystem(builder.build(state))
            assert (recovered(fs).take_reports(), bodies(fs)) == ((), bodies(first)), (point, state)
            assert bodies(fs)[PROJECT] == {"build": "ninja", "layout": "src and tests"}


def killed_at(taken: Recording, point: int) -> Disk:
    """The disk as the next process sees it when one is killed before its call number ``point``."""
    done = Recording("memory", "", 0, "", taken.base, taken.ops[:point], (), "anthropic", "always")
    kept = tuple(i for i in range(point) if taken.ops[i].kind not in ("fsync", "fsync_dir", "close"))
    return DiskBuilder(done).build(next(state for state in crash_states(done, "kill") if state.kept == kept))


def recorded_at(taken: Recording) -> int:
    """The call with which the turn's record is durable."""
    placed = next(i for i, op in enumerate(taken.ops) if op.kind == "rename" and op.target_name.endswith(".json"))
    return next(i for i, op in enumerate(taken.ops) if i > placed and op.kind == "fsync_dir")


@pytest.mark.slow
def test_an_interrupted_turn_is_finished_once(taken: Recording) -> None:
    taken_up = []
    recorded = recorded_at(taken)
    for state, disk in [*states(taken, "kill"), *states(taken, "posix-min")]:
        fs = SimFileSystem(disk)
        model = ScriptedModel(SECOND)
        made = manager("", fs=fs, provider=model)
        made.refresh_index()
        before = bodies(fs)
        count = made.finish_pending(
            lambda session, first, last: TURN if (session, first, last) == ("s1", 1, 2) else None
        )
        taken_up.append(count)
        assert (fault_in(fs), fs.open_files, made.take_reports()) == ("", 0, ())
        assert bodies(fs) == (NEW if count or state.point > recorded else before)
        assert not (count and before == NEW)
        assert fs.listdir(f"{PROJECT}/pending") == []
        assert manager("", fs=fs).finish_pending(lambda *_: TURN) == 0
    assert set(taken_up) == {0, 1}


ERRORS: dict[CallKind, tuple[str, ...]] = {
    "open": ("EMFILE", "EACCES"),
    "write": ("ENOSPC",),
    "pread": ("EIO",),
    "fsync": ("EIO",),
    "rename": ("EIO",),
    "unlink": ("EIO",),
    "listdir": ("EIO",),
    "stat": ("EIO",),
    "fsync_dir": ("EIO",),
    "lock": ("EIO",),
    "close": ("EIO",),
}


def failing_runs(base: Disk, kind: CallKind) -> Iterator[tuple[DiskFault, SimFileSystem, OpLog, tuple[str, ...]]]:
    """The update with the first, second, ... call of a kind failing, once or for good, until there is none left to fail."""
    for error, sticky in itertools.product(ERRORS[kind], (False, True)):
        for nth in itertools.count(1):
            fault = DiskFault(kind, nth, error, partial=3 if kind == "write" else 0, sticky=sticky)
            plan = FaultPlan((fault,))
            log = OpLog()
            fs = SimFileSystem(base, log=log, faults=plan)
            told = updated(fs).take_reports()
            if not plan.fired:
                break
            plan.clear()
            yield fault, fs, log, told


@pytest.mark.slow
@pytest.mark.parametrize("kind", ERRORS)
def test_one_failing_call_is_told_and_leaves_both_old_or_both_new(base: Disk, kind: CallKind) -> None:
    runs = 0
    for fault, fs, _, told in failing_runs(base, kind):
        assert fs.open_files == 0, fault
        again = SimFileSystem(fs.disk())
        recovered(again)
        assert fault_in(again) == "", fault
        assert told or bodies(again) == NEW, fault
        updated(fs)
        assert (fault_in(fs), bodies(fs) == NEW) == ("", True), fault
        runs += 1
    assert runs >= 2


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("exception", ["KeyboardInterrupt", "MemoryError"])
def test_an_exception_at_any_call_leaves_both_old_or_both_new(
    base: Disk, exception: str, when: Literal["before", "after"]
) -> None:
    interrupted = 0
    for kind in ERRORS:
        for nth in itertools.count(1):
            plan = FaultPlan((DiskFault(kind, nth, exception=exception, when=when),))
            fs = SimFileSystem(base, faults=plan)
            try:
                updated(fs)
            except (KeyboardInterrupt, MemoryError):
                interrupted += 1
            if not plan.fired:
                break
            plan.clear()
            updated(fs)
            assert (fault_in(fs), bodies(fs) == NEW) == ("", True), (kind, nth)
    assert interrupted


@pytest.mark.slow
@pytest.mark.parametrize("kind", ERRORS)
def test_a_start_never_raises(taken: Recording, kind: CallKind) -> None:
    """On a disk with a turn and a journal to finish, each call failing once or for good; the next start finishes both."""
    placed = next(i for i, op in enumerate(taken.ops) if op.kind == "rename" and op.target_name.startswith("journal-"))
    disk = killed_at(taken, placed + 2)
    for sticky in (False, True):
        for nth in itertools.count(1):
            plan = FaultPlan((DiskFault(kind, nth, ERRORS[kind][0], sticky=sticky),))
            fs = SimFileSystem(disk, faults=plan)
            made = recovered(fs)
            made.finish_pending(lambda *_: TURN)
            if not plan.fired:
                break
            assert made.take_reports(), (kind, nth)
            assert fs.open_files == 0
            plan.clear()
            made.refresh_index()
            made.finish_pending(lambda *_: TURN)
            assert (fault_in(fs), bodies(fs) == NEW) == ("", True), (kind, nth)


def test_a_short_write_is_continued(base: Disk) -> None:
    fs = SimFileSystem(base, faults=FaultPlan((DiskFault("write", 1, partial=1, sticky=True),)))
    assert updated(fs).take_reports() == ()
    assert (fault_in(fs), bodies(fs) == NEW) == ("", True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fsync", "fsync_dir", "write", "rename"])
def test_a_failing_call_and_then_a_power_loss(base: Disk, kind: CallKind) -> None:
    for fault, _, log, told in itertools.islice(failing_runs(base, kind), 0, None, 4):
        for state, disk in states(recording(base, log), "posix-min"):
            fs = SimFileSystem(disk)
            recovered(fs)
            assert fault_in(fs) == "", (fault, state)
            if state.point == len(log.ops):
                assert told or bodies(fs) == NEW, (fault, state)


# --- the harness itself: what it must catch


class WithoutFileSync(SimFileSystem):
    def fsync(self, fd: int) -> None:
        pass


class WithoutFolderSync(SimFileSystem):
    def fsync_dir(self, path: str) -> None:
        pass


@pytest.mark.slow
@pytest.mark.parametrize("planted", [WithoutFileSync, WithoutFolderSync])
def test_a_store_that_does_not_sync_is_caught(base: Disk, planted: type[SimFileSystem]) -> None:
    log = OpLog()
    updated(planted(base, log=log))

    def wrong(disk: Disk) -> bool:
        fs = SimFileSystem(disk)
        recovered(fs)
        try:
            return fault_in(fs) != ""
        except UnicodeDecodeError:
            return True

    assert any(wrong(disk) for _, disk in itertools.islice(states(recording(base, log), "posix-min"), 3_000))
