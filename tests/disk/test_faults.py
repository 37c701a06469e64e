"""Every fault does what ``faults.py`` says of it, once, there, and to nothing else."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from simulator.build import build_disk
from simulator.crash import crash_states
from simulator.disk import DiskFault, FaultPlan, OpLog, SimFileSystem
from simulator.values import ROOT, Disk, Recording

BASE = Disk(files={10: b"old"}, folders={ROOT: {"d": 2}, 2: {"f": 10, "s": 3}, 3: {}})


class Machine:
    """A disk with faults, and one file open for appending and one for reading."""

    def __init__(self, *faults: DiskFault) -> None:
        self.log = OpLog()
        self.plan = FaultPlan()
        self.fs = SimFileSystem(BASE, log=self.log, faults=self.plan)
        self.fd = self.fs.open("/d/f", "append")
        self.read_fd = self.fs.open("/d/f", "read")
        self.fs.faults = self.plan = FaultPlan(faults)

    def on_disk(self) -> set[bytes]:
        """What a power cut now may leave of the file."""
        recording = Recording("t", "", 0, "product", BASE, tuple(self.log.ops), (), "anthropic", "always")
        states = list(crash_states(recording, "posix-min", tears="every_byte"))
        disks = [build_disk(recording, state) for state in states if state.point == len(self.log.ops)]
        return {disk.files[10] for disk in disks}


CALLS: dict[str, Callable[[Machine], object]] = {
    "mkdir": lambda m: m.fs.mkdir("/d/new"),
    "open": lambda m: m.fs.open("/d/f", "read"),
    "write": lambda m: m.fs.write(m.fd, b"1234"),
    "pread": lambda m: m.fs.pread(m.read_fd, 10, 0),
    "truncate": lambda m: m.fs.truncate(m.fd, 1),
    "fsync": lambda m: m.fs.fsync(m.fd),
    "close": lambda m: m.fs.close(m.fd),
    "lock": lambda m: m.fs.lock(m.fd),
    "stat": lambda m: m.fs.stat("/d/f"),
    "listdir": lambda m: m.fs.listdir("/d"),
    "rename": lambda m: m.fs.rename("/d/f", "/d/g"),
    "unlink": lambda m: m.fs.unlink("/d/f"),
    "rmdir": lambda m: m.fs.rmdir("/d/s"),
    "fsync_dir": lambda m: m.fs.fsync_dir("/d"),
}
HAPPENS_ANYWAY = {"close"}
"""A close that fails has closed: Linux gives the number back all the same, and nobody could close it again."""


def _state(machine: Machine) -> tuple[Disk, int, int]:
    return machine.fs.disk(), machine.fs.open_files, len(machine.log.ops)


@pytest.mark.parametrize("call", CALLS)
def test_an_error_is_raised_and_nothing_is_done(call):
    machine = Machine(DiskFault(call, error="EIO"))
    before = machine.fs.disk(), machine.fs.open_files
    with pytest.raises(OSError, match="EIO"):
        CALLS[call](machine)
    assert machine.plan.fired == 1
    assert machine.fs.disk() == before[0]
    assert machine.fs.open_files == before[1] - (call in HAPPENS_ANYWAY)
    assert all(op.error or op.kind in HAPPENS_ANYWAY for op in machine.log.ops)


@pytest.mark.parametrize("call", [call for call in CALLS if call not in HAPPENS_ANYWAY])
def test_a_fault_strikes_once_and_the_next_call_works(call):
    machine = Machine(DiskFault(call, error="EIO"))
    with pytest.raises(OSError, match="EIO"):
        CALLS[call](machine)
    CALLS[call](machine)
    assert machine.plan.fired == 1


@pytest.mark.parametrize("name", ["KeyboardInterrupt", "MemoryError"])
@pytest.mark.parametrize("call", CALLS)
def test_an_exception_before_a_call_leaves_all_as_it_was(call, name):
    machine = Machine(DiskFault(call, exception=name, when="before"))
    well = Machine()
    if call in HAPPENS_ANYWAY:
        CALLS[call](well)
    with pytest.raises((KeyboardInterrupt, MemoryError)) as raised:
        CALLS[call](machine)
    assert raised.type.__name__ == name
    assert _state(machine) == _state(well)


@pytest.mark.parametrize("call", CALLS)
def test_an_exception_after_a_call_comes_when_it_took_effect(call):
    machine, well = Machine(DiskFault(call, exception="KeyboardInterrupt", when="after")), Machine()
    CALLS[call](well)
    with pytest.raises(KeyboardInterrupt):
        CALLS[call](machine)
    assert _state(machine) == _state(well)
    assert machine.plan.fired == 1


def test_a_lock_taken_before_the_exception_is_held():
    machine = Machine(DiskFault("lock", exception="KeyboardInterrupt", when="after"))
    with pytest.raises(KeyboardInterrupt):
        machine.fs.lock(machine.fd)
    assert not machine.fs.lock(machine.fs.open("/d/f", "lock"))


# --- which call --------------------------------------------------------------------------------------------------


def test_the_nth_call_is_hit_and_a_sticky_fault_goes_on_until_it_is_cleared():
    once, sticky = (
        Machine(DiskFault("write", nth=2, error="EIO")),
        Machine(DiskFault("write", nth=2, error="EIO", sticky=True)),
    )

    def write(machine: Machine) -> str:
        try:
            machine.fs.write(machine.fd, b"x")
        except OSError:
            return "fails"
        return "works"

    assert [write(once) for _ in range(4)] == ["works", "fails", "works", "works"]
    assert [write(sticky) for _ in range(4)] == ["works", "fails", "fails", "fails"]
    assert sticky.plan.fired == 3
    sticky.plan.clear()
    assert write(sticky) == "works"


def test_only_paths_with_the_suffix_count():
    machine = Machine(DiskFault("stat", nth=2, error="EIO", path_suffix="/f"))
    fs = machine.fs
    for path in ("/d", "/d/f", "/d/s"):
        fs.stat(path)
    with pytest.raises(OSError, match="EIO"):
        fs.stat("/d/f")


def test_two_faults_count_each_for_itself():
    machine = Machine(DiskFault("write", nth=1, error="ENOSPC"), DiskFault("write", nth=2, error="EIO"))
    for name in ("ENOSPC", "EIO"):
        with pytest.raises(OSError, match=name):
            machine.fs.write(machine.fd, b"x")
    assert machine.fs.write(machine.fd, b"x") == 1


@pytest.mark.parametrize("fault", [DiskFault("write", error="EWRONG"), DiskFault("write", exception="ValueError")])
def test_a_fault_that_cannot_be_is_refused_when_the_plan_is_made(fault):
    with pytest.raises(ValueError, match=r"EWRONG|ValueError"):
        FaultPlan((fault,))


def test_a_fault_of_an_unknown_call_or_member_is_refused_when_read():
    for text in ('{"call":"chmod"}', '{"call":"write","often":true}', '{"call":"fsync","dialect":"zfs"}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text, type=DiskFault)


# --- writes and reads in part --------------------------------------------------------------------------------------


def test_a_short_write_returns_what_was_accepted():
    machine = Machine(DiskFault("write", partial=2))
    assert machine.fs.write(machine.fd, b"1234") == 2
    assert machine.fs.peek("/d/f") == b"old12"
    assert [(op.data, op.error) for op in machine.log.ops] == [(b"12", "")]


def test_a_disk_that_fills_up_takes_the_beginning_and_then_raises():
    machine = Machine(DiskFault("write", error="ENOSPC", partial=2))
    with pytest.raises(OSError, match="ENOSPC"):
        machine.fs.write(machine.fd, b"1234")
    assert machine.fs.peek("/d/f") == b"old12"
    assert [(op.data, op.error) for op in machine.log.ops] == [(b"12", "ENOSPC")]


def test_a_write_that_is_refused_whole_writes_nothing():
    machine = Machine(DiskFault("write", error="ENOSPC"))
    with pytest.raises(OSError, match="ENOSPC"):
        machine.fs.write(machine.fd, b"1234")
    assert machine.fs.peek("/d/f") == b"old"
    assert machine.log.ops == []


def test_a_short_read_returns_fewer_bytes():
    machine = Machine(DiskFault("pread", partial=2))
    assert machine.fs.pread(machine.read_fd, 10, 0) == b"ol"
    assert machine.fs.pread(machine.read_fd, 10, 0) == b"old"


# --- dialects of a failed sync --------------------------------------------------------------------------------------

ANY_OF_1 = {b"old", b"old1", b"old\0", b"old\xa5"}


def _write_and_sync(machine: Machine, data: bytes) -> str:
    machine.fs.write(machine.fd, data)
    return _sync(machine)


def _sync(machine: Machine) -> str:
    try:
        machine.fs.fsync(machine.fd)
    except OSError as error:
        return error.strerror or ""
    return "ok"


def test_ext4_raises_now_keeps_the_bytes_readable_and_never_makes_them_durable():
    machine = Machine(DiskFault("fsync", error="EIO"))
    assert _write_and_sync(machine, b"1") == "EIO"
    assert machine.fs.peek("/d/f") == b"old1"
    assert machine.on_disk() == ANY_OF_1
    assert _sync(machine) == "ok"
    assert machine.on_disk() == ANY_OF_1
    assert _write_and_sync(machine, b"2") == "ok"
    assert machine.on_disk() == {b"old12", b"old\x002", b"old\xa52"}


def test_ext4_journal_returns_0_now_and_raises_at_the_next_sync_of_that_file():
    machine = Machine(DiskFault("fsync", error="EIO", dialect="ext4-journal"))
    assert _write_and_sync(machine, b"1") == "ok"
    assert machine.on_disk() == ANY_OF_1
    other = machine.fs.open("/d/g", "create")
    machine.fs.fsync(other)
    assert _sync(machine) == "EIO"
    assert machine.on_disk() == ANY_OF_1
    assert _sync(machine) == "ok"
    assert machine.on_disk() == ANY_OF_1


def test_the_late_error_of_a_journal_takes_what_came_in_between_with_it():
    machine = Machine(DiskFault("fsync", error="EIO", dialect="ext4-journal"))
    _write_and_sync(machine, b"1")
    assert _write_and_sync(machine, b"2") == "EIO"
    assert _sync(machine) == "ok"
    assert {b"old", b"old1"} <= machine.on_disk()


def test_btrfs_raises_and_the_file_falls_back_to_what_was_synced():
    machine = Machine(DiskFault("fsync", nth=2, error="EIO", dialect="btrfs"))
    assert _write_and_sync(machine, b"1") == "ok"
    assert _write_and_sync(machine, b"2") == "EIO"
    assert machine.fs.peek("/d/f") == b"old1"
    assert _write_and_sync(machine, b"3") == "ok"
    assert machine.fs.peek("/d/f") == b"old13"
    assert machine.on_disk() == {b"old13"}


def test_a_false_failure_raises_although_all_is_durable():
    machine = Machine(DiskFault("fsync", error="EIO", dialect="false-failure"))
    assert _write_and_sync(machine, b"1") == "EIO"
    assert machine.on_disk() == {b"old1"}


@pytest.mark.parametrize(
    ("dialect", "left"), [("ext4", b"old"), ("ext4-journal", b"old"), ("btrfs", b"old"), ("false-failure", b"old1")]
)
def test_the_page_cache_may_drop_what_a_failed_sync_left_in_it(dialect, left):
    machine = Machine(DiskFault("fsync", error="EIO", dialect=dialect))
    _write_and_sync(machine, b"1")
    machine.fs.evict()
    assert machine.fs.peek("/d/f") == left


def test_lost_bytes_stay_lost_when_a_later_sync_works():
    machine = Machine(DiskFault("fsync", error="EIO"))
    _write_and_sync(machine, b"1")
    assert _write_and_sync(machine, b"2") == "ok"
    machine.fs.evict()
    assert machine.fs.peek("/d/f") == b"old\x002"


def test_bytes_written_anew_where_others_were_lost_are_durable():
    machine = Machine(DiskFault("fsync", error="EIO"))
    _write_and_sync(machine, b"1")
    machine.fs.truncate(machine.fd, 3)
    assert _write_and_sync(machine, b"2") == "ok"
    machine.fs.evict()
    assert machine.fs.peek("/d/f") == b"old2"
    assert machine.on_disk() == {b"old2"}


def test_without_a_failure_nothing_is_evicted():
    machine = Machine()
    machine.fs.write(machine.fd, b"1")
    machine.fs.evict()
    assert machine.fs.peek("/d/f") == b"old1"


def test_fdatasync_fails_as_fsync_does():
    machine = Machine(DiskFault("fsync", error="EIO"))
    with pytest.raises(OSError, match="EIO"):
        machine.fs.fdatasync(machine.fd)
