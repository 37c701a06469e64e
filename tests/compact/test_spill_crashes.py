"""A spill that was acknowledged is there after every crash; nothing else ever stands under its name.

Kills are exceptions at a call: the page cache lives on and a new process meets it.  Power cuts are the states of ``posix-min``.
"""

import pytest

from pseudoclaude.compact.spill import SpillFolder
from pseudoclaude.errors import SpillFailed
from pseudoclaude.messages import Spill
from simulator.build import build_disk
from simulator.crash import crash_states
from simulator.disk import DiskFault, FaultPlan, OpLog, SimFileSystem
from simulator.values import ROOT, CrashState, Disk, Recording

BASE = Disk(files={}, folders={ROOT: {"s": 2}, 2: {}})
TEXTS = {"first": "é" * 3_000, "second": "a second text"}
CALLS = ["mkdir", "open", "write", "fsync", "close", "rename", "fsync_dir"]


def _recording(log: OpLog) -> Recording:
    return Recording("spill", "", 0, "product", BASE, tuple(log.ops), (), "anthropic", "always")


def _machine(*faults: DiskFault) -> tuple[SimFileSystem, OpLog]:
    log = OpLog()
    return SimFileSystem(BASE, log=log, faults=FaultPlan(faults)), log


def _files(disk: Disk) -> dict[str, bytes]:
    names = disk.folders[disk.folders[2]["tool-results"]] if "tool-results" in disk.folders[2] else {}
    return {f"tool-results/{name}": disk.files[inode] for name, inode in names.items() if name != "spill.tmp"}


def _assert_holds(disk: Disk, spills: dict[str, Spill], state: CrashState) -> None:
    files = _files(disk)
    for text, spill in spills.items():
        assert files.get(spill.path) == text.encode(), state


@pytest.mark.parametrize("model", ["kill", "posix-min"])
def test_at_every_crash_point_acknowledged_files_are_whole_and_no_other_name_is_wrong(model):
    fs, log = _machine()
    folder = SpillFolder(fs, "/s")
    returned: list[tuple[int, str, Spill]] = []
    for text in (*TEXTS.values(), TEXTS["first"]):
        spill = folder.store("call_0", text)
        returned.append((len(log.ops), text, spill))
    right = {spill.path: text.encode() for _, text, spill in returned}
    states = 0
    for state in crash_states(_recording(log), model):
        disk = build_disk(_recording(log), state)
        _assert_holds(disk, {text: spill for at, text, spill in returned if at <= state.point}, state)
        assert all(right[path] == data for path, data in _files(disk).items()), state
        again = SimFileSystem(disk)
        assert SpillFolder(again, "/s").store("call_0", TEXTS["first"]) == returned[0][2]
        states += 1
    assert states > 30


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", CALLS)
def test_killed_at_any_call_then_stored_by_a_new_process_then_power_lost(call, when, nth):
    fs, log = _machine(DiskFault(call, nth=nth, exception="KeyboardInterrupt", when=when))
    _store_until_it_works_and_lose_power(fs, log)


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize(
    ("call", "dialect"), [*((call, "ext4") for call in CALLS), ("fsync", "btrfs"), ("fsync", "false-failure")]
)
def test_after_an_error_at_any_call_the_next_try_is_durable(call, dialect, nth):
    fs, log = _machine(DiskFault(call, nth=nth, error="EIO", dialect=dialect))
    _store_until_it_works_and_lose_power(fs, log)


def _store_until_it_works_and_lose_power(fs: SimFileSystem, log: OpLog) -> None:
    """Each try is a new process, and one more comes after the one that worked: what it finds is published again."""
    spill = None
    for _ in range(3):
        try:
            spill = SpillFolder(fs, "/s").store("call_0", TEXTS["first"])
        except (SpillFailed, KeyboardInterrupt):
            assert fs.faults.fired == 1
            continue
        states = [state for state in crash_states(_recording(log), "posix-min") if state.point == len(log.ops)]
        assert states
        for state in states:
            _assert_holds(build_disk(_recording(log), state), {TEXTS["first"]: spill}, state)
    assert spill is not None
