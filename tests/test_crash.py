"""Crash states against FAULT-MODEL.md §2.3: rule by rule on short logs, and as a whole against an enumeration written apart."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from pseudoclaude.ports import OpenMode
from simulator.build import DiskBuilder, build_disk
from simulator.crash import SUBSETS_ALL_UP_TO, Bounds, Model, crash_states
from simulator.digest import TreeDigest
from simulator.disk import DiskFault, FaultPlan, OpLog, SimFileSystem
from simulator.looks import Looks
from simulator.values import ROOT, CrashState, Disk, Recording, Tear, visible
from tests.disk.exhaustive import Tree, kill_trees, power_trees

BASE = Disk(files={10: b"old", 11: b"other"}, folders={ROOT: {"d": 2, "e": 3}, 2: {"f": 10}, 3: {"g": 11}})
LOST_SYNC = DiskFault("fsync", error="EIO")
Play = Callable[[SimFileSystem], None]


def record(play: Play, *faults: DiskFault, base: Disk = BASE) -> Recording:
    log = OpLog()
    play(SimFileSystem(base, log=log, faults=FaultPlan(faults)))
    return Recording("test", "", 0, "product", base, tuple(log.ops), (), "anthropic", "always")


def states(recording: Recording, model: Model = "posix-min", *, at_end: bool = False) -> list[CrashState]:
    """All states, or those of the last point (one after a ``close`` is the same as before it, and left out)."""
    found = list(crash_states(recording, model, tears="every_byte"))
    return [state for state in found if not at_end or state.point == found[-1].point]


def trees(recording: Recording, model: Model = "posix-min", *, at_end: bool = False) -> set[Tree]:
    return {tuple(sorted(visible(build_disk(recording, state)))) for state in states(recording, model, at_end=at_end)}


def contents(recording: Recording, path: str, model: Model = "posix-min", *, at_end: bool = False) -> set[bytes | None]:
    """What lies under ``path`` in the states, None where nothing does."""
    return {dict(tree).get(path) for tree in trees(recording, model, at_end=at_end)}


def put(
    fs: SimFileSystem,
    path: str,
    data: bytes = b"new",
    *,
    mode: OpenMode = "create",
    sync: bool = True,
    close: bool = True,
) -> int:
    fd = fs.open(path, mode)
    fs.write(fd, data)
    if sync:
        fs.fsync(fd)
    if close:
        fs.close(fd)
    return fd


# --- certificates ----------------------------------------------------------------------------------------------


def test_fsync_certifies_the_bytes_and_not_the_name():
    recording = record(lambda fs: put(fs, "/d/x") and None)
    assert contents(recording, "/d/x", at_end=True) == {None, b"new"}


def test_fsync_dir_certifies_the_name_and_not_the_bytes():
    def play(fs: SimFileSystem) -> None:
        put(fs, "/d/x", b"ab", sync=False)
        fs.fsync_dir("/d")

    assert contents(record(play), "/d/x", at_end=True) == {
        b"",
        b"a",
        b"ab",
        b"a\0",
        b"\0b",
        b"\0\0",
        b"a\xa5",
        b"\xa5s",
    }


def test_fsync_of_another_file_and_fsync_dir_of_another_folder_certify_nothing():
    def play(fs: SimFileSystem) -> None:
        put(fs, "/d/x", b"a", sync=False)
        put(fs, "/e/y", b"b")
        fs.fsync_dir("/e")

    recording = record(play)
    assert contents(recording, "/d/x", at_end=True) == {None, b"", b"a", b"\0", b"\xa5"}
    assert contents(recording, "/e/y", at_end=True) == {b"b"}


@pytest.mark.parametrize(("parent_synced", "seen"), [(False, {None, b"new"}), (True, {b"new"})])
def test_a_new_folder_needs_a_sync_of_the_folder_above(parent_synced, seen):
    def play(fs: SimFileSystem) -> None:
        fs.mkdir("/d/s")
        put(fs, "/d/s/x")
        fs.fsync_dir("/d/s")
        if parent_synced:
            fs.fsync_dir("/d")

    assert contents(record(play), "/d/s/x", at_end=True) == seen


def test_close_certifies_nothing():
    recording = record(lambda fs: put(fs, "/d/f", b"+", mode="append", sync=False) and None)
    assert b"old" in contents(recording, "/d/f", at_end=True)


def test_truncate_is_certified_by_fsync():
    def play(fs: SimFileSystem) -> None:
        fd = fs.open("/d/f", "append")
        fs.truncate(fd, 1)
        fs.fsync(fd)

    recording = record(play)
    assert contents(recording, "/d/f") == {b"old", b"o"}
    assert contents(recording, "/d/f", at_end=True) == {b"o"}


@pytest.mark.parametrize("dialect", ["ext4", "ext4-journal"])
def test_what_was_in_flight_at_a_failed_sync_is_never_certified(dialect):
    def play(fs: SimFileSystem) -> None:
        fd = fs.open("/d/f", "append")
        fs.write(fd, b"1")
        for _ in range(3):
            try:
                fs.fsync(fd)
            except OSError:
                continue
        fs.write(fd, b"2")
        fs.fsync(fd)

    recording = record(play, DiskFault("fsync", error="EIO", dialect=dialect))
    assert contents(recording, "/d/f", at_end=True) == {b"old12", b"old\x002", b"old\xa52"}


def test_what_was_certified_after_a_lost_write_of_the_same_bytes_stands_over_it():
    def play(fs: SimFileSystem) -> None:
        fd = fs.open("/d/f", "append")
        fs.write(fd, b"lost")
        with pytest.raises(OSError, match="EIO"):
            fs.fsync(fd)
        fs.truncate(fd, 3)
        fs.write(fd, b"kept")
        fs.fsync(fd)

    assert contents(record(play, LOST_SYNC), "/d/f", at_end=True) == {b"oldkept"}


# --- renames ---------------------------------------------------------------------------------------------------


def test_a_rename_over_a_name_is_atomic():
    def play(fs: SimFileSystem) -> None:
        put(fs, "/d/tmp")
        fs.rename("/d/tmp", "/d/f")
        fs.fsync_dir("/d")

    recording = record(play)
    assert contents(recording, "/d/f") == {b"old", b"new"}
    assert contents(recording, "/d/f", at_end=True) == {b"new"}


def test_a_rename_of_unsynced_bytes_may_show_an_empty_file():
    def play(fs: SimFileSystem) -> None:
        put(fs, "/d/tmp", sync=False)
        fs.rename("/d/tmp", "/d/f")

    assert {b"old", b"", b"new", b"n"} <= contents(record(play), "/d/f", at_end=True)


@pytest.mark.parametrize(
    ("synced", "seen"),
    [
        ((), {("old", None), (None, "old"), ("old", "old")}),
        (("/e",), {(None, "old"), ("old", "old")}),
        (("/d",), {(None, "old")}),
        (("/d", "/e"), {(None, "old")}),
    ],
)
def test_a_rename_across_folders_shows_in_both_or_in_one_and_never_in_neither(synced, seen):
    def play(fs: SimFileSystem) -> None:
        fs.rename("/d/f", "/e/f")
        for folder in synced:
            fs.fsync_dir(folder)

    found = {(dict(tree).get("/d/f"), dict(tree).get("/e/f")) for tree in trees(record(play), at_end=True)}
    assert found == {tuple(name and name.encode() for name in pair) for pair in seen}


def test_a_certified_unlink_is_not_undone_by_the_pending_rename_that_brought_the_name():
    def play(fs: SimFileSystem) -> None:
        fs.rename("/d/f", "/e/f")
        fs.unlink("/e/f")
        fs.fsync_dir("/e")

    assert contents(record(play), "/e/f", at_end=True) == {None}


# --- torn writes -----------------------------------------------------------------------------------------------


def test_torn_shapes_of_an_append_across_a_block_boundary():
    base = Disk(files={10: b"x" * 4_094}, folders={ROOT: {"f": 10}})
    recording = record(lambda fs: put(fs, "/f", b"abcd", mode="append", sync=False) and None, base=base)
    tails = {data[4_094:] for data in contents(recording, "/f", at_end=True) if data is not None}
    cut = {b"", b"a", b"ab", b"abc", b"abcd"}
    nul = {b"\0\0", b"\0\0\0\0", b"a\0", b"a\0\0\0", b"ab\0\0", b"abc\0"}
    stale = {b"\xa5s", b"\xa5sta", b"a\xa5", b"a\xa5st", b"ab\xa5s", b"abc\xa5"}
    holes = {b"\0bcd", b"\0\0cd", b"\0\0\0d"}
    assert tails == cut | nul | stale | holes
    assert all(data.startswith(b"x" * 4_094) for data in contents(recording, "/f") if data is not None)


def test_one_write_at_most_is_torn_and_a_write_that_is_kept_after_a_lost_one_leaves_nul():
    def play(fs: SimFileSystem) -> None:
        fd = fs.open("/d/f", "append")
        fs.write(fd, b"12")
        fs.write(fd, b"34")

    found = contents(record(play), "/d/f", at_end=True)
    assert b"old\0\x0034" in found
    assert b"old1\x0034" in found
    assert b"old1\x003\0" not in found


def test_a_write_in_place_leaves_the_bytes_around_it_alone():
    base = Disk(files={10: b"0123456789"}, folders={ROOT: {"f": 10}})
    recording = record(lambda fs: put(fs, "/f", b"ab", mode="lock", sync=False) and None, base=base)
    assert {data[2:] for data in contents(recording, "/f") if data is not None} == {b"23456789"}
    assert {data[:2] for data in contents(recording, "/f") if data is not None} == {b"01", b"ab", b"a1", b"\0b"}


def test_tear_classes_hit_blocks_structure_and_the_inside_of_characters():
    text = '{"k":"é世🙂\\n"}'.encode() + b"x" * 600 + b"\n"
    recording = record(lambda fs: put(fs, "/d/x", text, sync=False) and None)
    kept = {state.tear.kept for state in crash_states(recording, "kill") if state.tear is not None}
    inside = {
        text.index(char.encode()) + step for char, width in (("é", 2), ("世", 3), ("🙂", 4)) for step in range(1, width)
    }
    structure = {text.index(byte) + 1 for byte in b'{}:"\\'}
    assert kept == inside | structure | {1, len(text) - 1, 512}


# --- kill ------------------------------------------------------------------------------------------------------


def test_a_kill_keeps_what_was_done_and_any_beginning_of_the_write_in_flight():
    recording = record(lambda fs: put(fs, "/d/f", b"abc", mode="append", sync=False) and None)
    assert contents(recording, "/d/f", "kill") == {b"old", b"olda", b"oldab", b"oldabc"}
    assert contents(recording, "/d/f", "kill", at_end=True) == {b"oldabc"}


# --- as a whole ------------------------------------------------------------------------------------------------


def _replace(fs: SimFileSystem) -> None:
    put(fs, "/d/tmp", b"ab")
    fs.rename("/d/tmp", "/d/f")
    fs.fsync_dir("/d")
    put(fs, "/d/f", b"+", mode="append")


def _move_and_reuse(fs: SimFileSystem) -> None:
    fs.rename("/d/f", "/e/g")
    put(fs, "/d/f", b"n", sync=False)
    fs.fsync_dir("/e")
    fs.unlink("/e/g")


def _folders_come_and_go(fs: SimFileSystem) -> None:
    fs.mkdir("/d/s")
    put(fs, "/d/s/x", b"1", sync=False)
    fs.fsync_dir("/d")
    fs.rename("/d/s", "/e/s")
    fs.unlink("/e/s/x")
    fs.rmdir("/e/s")


def _sync_fails(fs: SimFileSystem) -> None:
    fd = fs.open("/d/f", "append")
    fs.write(fd, b"12")
    with pytest.raises(OSError, match="EIO"):
        fs.fsync(fd)
    fs.truncate(fd, 3)
    fs.write(fd, b"3")
    fs.fsync(fd)
    fs.write(fd, b"4")


def _random_play(number: int) -> Play:
    """A short log, with a sync in every third call or so; calls that a disk refuses leave no mark."""

    def play(fs: SimFileSystem) -> None:
        rng = random.Random(number)
        names = ["/d/f", "/d/x", "/e/g", "/e/x", "/d/s", "/d/s/x"]
        modes: list[OpenMode] = ["append", "create", "lock"]
        fds = [fs.open("/d/f", "append"), fs.open("/e/g", "lock")]
        calls: list[Callable[[], object]] = [
            lambda: fds.append(fs.open(rng.choice(names), rng.choice(modes))),
            lambda: fs.write(rng.choice(fds), rng.randbytes(rng.randint(1, 2))),
            lambda: fs.write(rng.choice(fds), b"w"),
            lambda: fs.truncate(rng.choice(fds), rng.randint(0, 4)),
            lambda: fs.rename(rng.choice(names), rng.choice(names)),
            lambda: fs.rename(rng.choice(names), rng.choice(names)),
            lambda: fs.unlink(rng.choice(names)),
            lambda: fs.mkdir(rng.choice(names)),
            lambda: fs.rmdir(rng.choice(names)),
            lambda: fs.fsync(rng.choice(fds)),
            lambda: fs.fsync(rng.choice(fds)),
            lambda: fs.fsync_dir(rng.choice(["/", "/d", "/e"])),
            lambda: fs.fsync_dir(rng.choice(["/d", "/e"])),
        ]
        for _ in range(14):
            try:
                rng.choice(calls)()
            except OSError:
                continue

    return play


PLAYS: dict[str, Play] = {
    "replace": _replace,
    "move and reuse": _move_and_reuse,
    "folders come and go": _folders_come_and_go,
    "sync fails": _sync_fails,
    **{f"random {number}": _random_play(number) for number in range(40)},
}


def _recorded(name: str) -> Recording:
    number = int(name.rpartition(" ")[2]) if name.startswith("random") else 0
    faults = (LOST_SYNC,) if name == "sync fails" or number % 3 == 1 else ()
    return record(PLAYS[name], *faults)


@pytest.mark.parametrize("name", PLAYS)
def test_the_states_are_those_of_an_exhaustive_enumeration_written_apart(name):
    recording = _recorded(name)
    assert trees(recording) == power_trees(BASE, recording.ops)
    assert trees(recording, "kill") == kill_trees(BASE, recording.ops)


@pytest.mark.parametrize("name", PLAYS)
@pytest.mark.parametrize("tears", ["classes", "every_byte"])
def test_every_kill_state_is_a_power_state_of_the_same_point(name, tears):
    recording = _recorded(name)
    builder = DiskBuilder(recording)

    def by_point(model: Model) -> set[tuple[int, Tree]]:
        found = crash_states(recording, model, tears=tears)
        return {(state.point, tuple(visible(builder.build(state)))) for state in found}

    assert by_point("kill") <= by_point("posix-min")


@pytest.mark.parametrize("name", PLAYS)
def test_a_builder_that_is_used_again_builds_what_a_new_one_does(name):
    recording = _recorded(name)
    everything = [*states(recording, "kill"), *states(recording)][::7]
    builder = DiskBuilder(recording)
    for state in [*everything, *reversed(everything)]:
        assert visible(builder.build(state)) == visible(build_disk(recording, state)), state


@pytest.mark.parametrize("name", PLAYS)
def test_states_with_one_key_leave_one_disk_and_are_built_once(name):
    recording = _recorded(name)
    looks, digest = Looks(recording, TreeDigest()), TreeDigest()
    builder = DiskBuilder(recording)
    everything = [*states(recording, "kill"), *states(recording)]
    for state in everything:
        assert looks.of(state) == digest.of(build_disk(recording, state)), state
        assert visible(looks.disk(state)) == visible(build_disk(recording, state)), state
    assert len({builder.key(state) for state in everything}) < len(everything)


def test_the_disk_that_a_simulated_machine_begins_with_is_never_changed():
    recording = _recorded("folders come and go")
    disk = build_disk(recording, states(recording)[-1])
    before = visible(disk)
    fs = SimFileSystem(disk)
    put(fs, "/d/new")
    fs.mkdir("/d/sub")
    put(fs, "/d/sub/x")
    fs.rename("/d/new", "/d/sub/y")
    fs.unlink("/d/sub/x")
    assert visible(disk) == before
    assert visible(fs.disk()) != before


def test_the_order_of_the_states_is_fixed():
    def play(fs: SimFileSystem) -> None:
        fs.rename("/d/f", "/e/f")
        fd = fs.open("/e/g", "append")
        fs.write(fd, b"ab")
        fs.fsync(fd)

    recording = record(play)
    torn = [
        Tear(1, "torn", 0, 2, "nul"),
        Tear(1, "torn", 0, 2, "stale"),
        Tear(1, "torn", 1, 1, "nul"),
        Tear(1, "hole", 1, 2, "nul"),
        Tear(1, "torn", 1, 2, "nul"),
        Tear(1, "torn", 1, 2, "stale"),
    ]

    def state(point: int, *kept: int, tear: Tear | None = None, doubled: int | None = None) -> CrashState:
        return CrashState("posix-min", point, kept, tear, doubled)

    unsynced = [
        *(state(1), state(1, 0), state(1, 0, doubled=0)),
        *(state(1, 1), *(state(1, 1, tear=tear) for tear in torn)),
        *(state(1, 0, 1), state(1, 0, 1, doubled=0), *(state(1, 0, 1, tear=tear) for tear in torn)),
    ]
    first = [state(0), state(0, 0), state(0, 0, doubled=0)]
    last = [state(3), state(3, 0), state(3, 0, doubled=0)]
    at_two = [CrashState("posix-min", 2, s.kept, s.tear, s.doubled) for s in unsynced]
    assert states(recording) == [*first, *unsynced, *at_two, *last]
    assert states(recording) == states(recording)


def test_what_the_bound_on_subsets_leaves_out_is_counted():
    def play(fs: SimFileSystem) -> None:
        for number in range(SUBSETS_ALL_UP_TO + 1):
            fs.mkdir(f"/d/{number}")

    recording, bounds = record(play), Bounds()
    last = [s for s in crash_states(recording, "posix-min", bounds=bounds) if s.point == len(recording.ops)]
    everything = tuple(range(SUBSETS_ALL_UP_TO + 1))
    kept = {state.kept for state in last}
    assert len(kept) == len(last)
    assert {everything, (), (3,), (3, 7), everything[:5]} <= kept
    assert everything[:3] + everything[4:] in kept
    at_the_end = 2 ** len(everything) - len(last)
    assert at_the_end > 0
    assert bounds.subsets_left_out == 2 * at_the_end
