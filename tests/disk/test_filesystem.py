"""SimFileSystem beyond what conformance compares: its log, its harness calls, processes that die, the root."""

from __future__ import annotations

import pytest

from simulator.disk import OpLog, ProcessKilled, SimFileSystem
from simulator.values import ROOT, Disk, Op

BASE = Disk(files={10: b"old"}, folders={ROOT: {"d": 2}, 2: {"f": 10}})


def _logged(log: OpLog) -> list[Op]:
    return [Op(*[getattr(op, name) if name != "site" else "" for name in op.__struct_fields__]) for op in log.ops]


def test_every_change_and_sync_is_logged_with_inode_and_name_and_nothing_else_is():
    log = OpLog()
    fs = SimFileSystem(BASE, log=log)
    fs.mkdir("/e")
    fd = fs.open("/e/tmp", "create")
    fs.write(fd, b"ab")
    fs.write(fd, b"c")
    fs.truncate(fd, 2)
    fs.fdatasync(fd)
    fs.close(fd)
    fs.rename("/e/tmp", "/d/f")
    fs.fsync_dir("/d")
    fs.stat("/d/f")
    fs.listdir("/d")
    fs.close(fs.open("/d/f", "read"))
    fs.unlink("/d/f")
    fs.rmdir("/e")
    assert _logged(log) == [
        Op("mkdir", inode=11, parent=ROOT, name="e"),
        Op("create", inode=12, parent=11, name="tmp"),
        Op("write", inode=12, offset=0, data=b"ab"),
        Op("write", inode=12, offset=2, data=b"c"),
        Op("truncate", inode=12, size=2),
        Op("fsync", inode=12),
        Op("close", inode=12),
        Op("rename", inode=12, parent=11, name="tmp", target_parent=2, target_name="f"),
        Op("fsync_dir", inode=2),
        Op("close", inode=12),
        Op("unlink", inode=12, parent=2, name="f"),
        Op("rmdir", inode=11, parent=ROOT, name="e"),
    ]


def test_a_call_that_fails_or_changes_nothing_leaves_no_entry():
    log = OpLog()
    fs = SimFileSystem(BASE, log=log)
    with pytest.raises(FileExistsError):
        fs.mkdir("/d")
    with pytest.raises(FileNotFoundError):
        fs.unlink("/d/none")
    fs.rename("/d/f", "/d/f")
    fd = fs.open("/d/f", "append")
    assert fs.write(fd, b"") == 0
    assert log.ops == []


def test_the_sync_of_an_opened_folder_is_a_sync_of_its_names():
    log = OpLog()
    fs = SimFileSystem(BASE, log=log)
    fs.fsync(fs.open("/d", "read"))
    assert [(op.kind, op.inode) for op in log.ops] == [("fsync_dir", 2)]


@pytest.mark.parametrize(
    ("call", "name"),
    [("mkdir", "EEXIST"), ("unlink", "EISDIR"), ("rmdir", "EBUSY"), ("rename", "EBUSY"), ("open", "EISDIR")],
)
def test_the_root_is_a_folder_without_a_name(call, name):
    fs = SimFileSystem(BASE)
    more = {"rename": ("/d/x",), "open": ("append",)}.get(call, ())
    with pytest.raises(OSError, match=name):
        getattr(fs, call)("/", *more)
    assert fs.listdir("/") == ["d"]
    assert fs.stat("/").kind == "dir"


def test_relative_paths_are_refused_and_not_taken_from_the_root():
    fs = SimFileSystem(BASE)
    for path in ("d/f", "", "d"):
        with pytest.raises(FileNotFoundError):
            fs.stat(path)
        with pytest.raises(FileNotFoundError):
            fs.mkdir(path + "new")


def test_a_descriptor_number_is_given_out_once():
    fs = SimFileSystem(BASE)
    first = fs.open("/d/f", "append")
    fs.close(first)
    assert fs.open("/d/f", "append") != first
    with pytest.raises(OSError, match="EBADF"):
        fs.write(first, b"x")


def test_peek_and_files_under_see_everything_and_are_no_calls_of_the_product():
    log = OpLog()
    fs = SimFileSystem(BASE, log=log)
    fs.mkdir("/d/s")
    fd = fs.open("/d/s/b", "create")
    fs.write(fd, b"B")
    before = len(log.ops)
    assert fs.peek("/d/f") == b"old"
    assert fs.peek("/d") is None
    assert fs.peek("/none/x") is None
    assert fs.files_under("/d") == [("/d/f", b"old"), ("/d/s/b", b"B")]
    assert fs.files_under("/none") == []
    assert fs.files_under("/d/f") == []
    assert len(log.ops) == before


def test_a_disk_is_a_copy():
    fs = SimFileSystem(BASE)
    disk = fs.disk()
    assert disk == BASE
    fs.write(fs.open("/d/f", "append"), b"+")
    fs.unlink("/d/f")
    assert disk == BASE
    assert SimFileSystem(disk).peek("/d/f") == b"old"


def test_a_new_inode_is_never_one_that_the_disk_knew():
    fs = SimFileSystem(BASE)
    fs.unlink("/d/f")
    assert fs.fstat(fs.open("/d/f", "create")).inode == 11


def test_the_death_of_a_process_frees_descriptors_and_locks_without_a_call():
    log = OpLog()
    fs = SimFileSystem(BASE, log=log)
    fd = fs.open("/d/f", "lock")
    assert fs.lock(fd)
    assert not fs.lock(fs.open("/d/f", "lock"))
    assert fs.open_files == 2
    fs.kill()
    assert fs.open_files == 0
    assert log.ops == []
    with pytest.raises(OSError, match="EBADF"):
        fs.pread(fd, 1, 0)
    assert fs.lock(fs.open("/d/f", "lock"))


def test_a_dead_process_does_nothing_more_until_it_is_cleared_away():
    fs = SimFileSystem(BASE)
    fd = fs.open("/d/f", "lock")
    with pytest.raises(ProcessKilled):
        fs.die()
    for call in (
        lambda: fs.write(fd, b"x"),
        lambda: fs.pread(fd, 1, 0),
        lambda: fs.fstat(fd),
        lambda: fs.fsync(fd),
        lambda: fs.close(fd),
        lambda: fs.lock(fd),
        lambda: fs.mkdir("/x"),
        lambda: fs.open("/x", "create"),
        lambda: fs.stat("/d"),
        lambda: fs.listdir("/d"),
        lambda: fs.rename("/d/f", "/d/g"),
        lambda: fs.unlink("/d/f"),
        lambda: fs.rmdir("/d"),
        lambda: fs.fsync_dir("/d"),
    ):
        with pytest.raises(ProcessKilled):
            call()
    assert fs.dead
    fs.kill()
    assert not fs.dead
    assert fs.disk() == BASE
    assert fs.peek("/d/f") == b"old"
