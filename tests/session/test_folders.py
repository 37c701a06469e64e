"""Folders, their durability, and the lock."""

import os
import stat

import pytest

from pseudoclaude.errors import NotDurable, SessionLocked, SessionUnreadable
from pseudoclaude.session import SessionWriter
from pseudoclaude.session.folders import ancestors, make_folders, sync_chain, take_lock
from simulator.disk import OpLog, SimFileSystem
from simulator.disk.faults import DiskFault, FaultPlan
from simulator.values import ROOT, Disk
from tests.session.build import FOLDER, machine, opened

EMPTY = Disk({}, {ROOT: {}})


def test_each_folder_is_durable_before_the_next_is_made_in_it():
    log = OpLog()
    make_folders("/a/b/c", SimFileSystem(EMPTY, log=log), durable=True)
    assert [op.kind for op in log.ops] == ["mkdir", "fsync_dir"] * 3
    log = OpLog()
    make_folders("/a/b/c", SimFileSystem(EMPTY, log=log), durable=False)
    assert [op.kind for op in log.ops] == ["mkdir"] * 3


def test_opening_syncs_the_whole_chain_of_folders_that_a_killed_process_may_have_made():
    log = OpLog()
    fs = SimFileSystem(EMPTY, log=log)
    make_folders("/a/b", fs, durable=False)
    sync_chain("/a/b", fs)
    assert [op.inode for op in log.ops if op.kind == "fsync_dir"] == [3, 2, ROOT]
    assert list(ancestors("/a/b")) == ["/a/b", "/a", "/"]


@pytest.mark.parametrize(("error", "raises"), [("EACCES", False), ("EPERM", False), ("EIO", True)])
def test_a_folder_that_belongs_to_somebody_else_is_passed_over_and_an_error_is_not(error, raises):
    fs = SimFileSystem(EMPTY, faults=FaultPlan((DiskFault("fsync_dir", nth=2, error=error),)))
    make_folders("/a", fs, durable=False)
    if raises:
        with pytest.raises(OSError, match=error):
            sync_chain("/a", fs)
    else:
        sync_chain("/a", fs)


@pytest.mark.parametrize("text", ["pid 7 on host", "é" * 150])
def test_a_second_holder_is_told_who_is_first_and_nothing_is_left_open(text):
    fs = machine(None)
    fd = take_lock("/s/lock", text, fs, durable=True)
    with pytest.raises(SessionLocked, match=text[:60]):
        take_lock("/s/lock", "pid 8 on host", fs, durable=True)
    assert fs.open_files == 1
    fs.close(fd)
    fs.close(take_lock("/s/lock", "pid 8 on host", fs, durable=True))
    assert fs.peek("/s/lock") == b"pid 8 on host\n"


def test_a_holder_that_has_not_said_who_it_is():
    fs = machine(None)
    take_lock("/s/lock", "", fs, durable=False)
    with pytest.raises(SessionLocked, match="has not said which"):
        take_lock("/s/lock", "x", fs, durable=False)


@pytest.mark.parametrize("call", ["mkdir", "open", "lock", "write", "fsync", "truncate"])
def test_a_session_that_cannot_be_opened_for_append_says_so_and_leaves_nothing_open(call):
    fs = SimFileSystem(EMPTY, faults=FaultPlan((DiskFault(call, nth=1, error="ENOSPC"),)))
    with pytest.raises(SessionUnreadable, match="opened for append"):
        opened(fs)
    assert fs.open_files == 0
    opened(fs).close()
    assert fs.listdir(FOLDER) == ["lock"]


def test_an_error_of_closing_does_not_take_the_place_of_what_went_wrong_first():
    faults = DiskFault("fsync_dir", nth=2, error="EIO"), DiskFault("close", nth=1, error="EIO", path_suffix="lock")
    fs = SimFileSystem(EMPTY, faults=FaultPlan(faults))
    with pytest.raises(NotDurable) as caught:
        opened(fs)
    assert caught.value.__notes__ == ["closing failed too: EIO"]
    assert fs.open_files == 0
    opened(fs).close()


def test_modes_on_a_real_disk_whatever_the_umask(tmp_path):
    before = os.umask(0o022)
    try:
        with SessionWriter.open(tmp_path / "x" / "s") as writer:
            writer.append_replace("compact", [])
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "x").rglob("*")}
    assert modes == {"s": 0o700, "conversation.jsonl": 0o600, "lock": 0o600}
