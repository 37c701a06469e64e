"""The ports on this machine: private files, links not followed, locks that die with their holder, work in the background."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pseudoclaude.ports import OpenMode
from pseudoclaude.realworld import RealClock, RealFileSystem, RealIds, ThreadBackground

FS = RealFileSystem()
PATIENCE_SECONDS = 5.0


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


# --- files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o022, 0])
def test_files_and_folders_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        FS.mkdir(str(tmp_path / "folder"))
        for mode in ("create", "lock"):
            FS.close(FS.open(str(tmp_path / mode), mode))
    finally:
        os.umask(before)
    assert permissions(tmp_path / "folder") == 0o700
    assert permissions(tmp_path / "create") == permissions(tmp_path / "lock") == 0o600


@pytest.mark.parametrize(
    ("mode", "error"),
    [("create", errno.EEXIST), ("append", errno.ELOOP), ("read", errno.ELOOP), ("lock", errno.ELOOP)],
)
@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_is_never_opened(tmp_path: Path, mode: OpenMode, error: int, dangling: bool) -> None:
    target = tmp_path / "target"
    if not dangling:
        target.write_bytes(b"theirs")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(OSError, match="link") as caught:
        FS.open(str(tmp_path / "link"), mode)
    assert caught.value.errno == error
    assert target.exists() is not dangling


def test_a_stat_tells_the_kinds_apart_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "dir").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "dir")
    os.mkfifo(tmp_path / "other")
    assert {name: FS.stat(str(tmp_path / name)).kind for name in FS.listdir(str(tmp_path))} == {
        "file": "file",
        "dir": "dir",
        "link": "link",
        "other": "other",
    }
    seen = FS.stat(str(tmp_path / "file"))
    real = (tmp_path / "file").stat()
    assert (seen.size, seen.inode, seen.modified) == (5, real.st_ino, real.st_mtime)


def test_a_folder_above_a_session_may_be_a_link_and_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "dir")
    (tmp_path / "file").write_bytes(b"")
    FS.fsync_dir(str(tmp_path / "link"))
    with pytest.raises(NotADirectoryError):
        FS.fsync_dir(str(tmp_path / "file"))


# --- locks -----------------------------------------------------------------------------------------------------


def lock_again(path: Path) -> bool:
    """Could another process take the lock?  A second descriptor is as good as one."""
    fd = FS.open(str(path), "lock")
    try:
        return FS.lock(fd)
    finally:
        FS.close(fd)


def test_a_lock_is_held_by_one_and_freed_by_close(tmp_path: Path) -> None:
    fd = FS.open(str(tmp_path / "lock"), "lock")
    assert FS.lock(fd) is True
    assert lock_again(tmp_path / "lock") is False
    FS.close(fd)
    assert lock_again(tmp_path / "lock") is True


def test_a_lock_is_not_inherited_by_a_child_that_gets_every_descriptor(tmp_path: Path) -> None:
    fd = FS.open(str(tmp_path / "lock"), "lock")
    assert FS.lock(fd)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"ready\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"ready\n"
        FS.close(fd)
        assert lock_again(tmp_path / "lock") is True
        child.stdin.close()


HOLDER = """
import sys
from pseudoclaude.realworld import RealFileSystem
fs = RealFileSystem()
print(fs.lock(fs.open(sys.argv[1], "lock")), flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_lock_is_freed_by_the_death_of_its_holder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        assert lock_again(tmp_path / "lock") is False
        holder.kill()
        holder.wait(PATIENCE_SECONDS)
        assert lock_again(tmp_path / "lock") is True


# --- clock and ids ---------------------------------------------------------------------------------------------


def test_a_sleep_takes_the_time_it_says() -> None:
    clock = RealClock()
    before, wall = clock.monotonic(), clock.now()
    clock.sleep(0.01)
    assert clock.monotonic() - before >= 0.01
    assert wall > 1_700_000_000


def test_ids_sort_by_the_second_they_were_made_and_differ_within_it() -> None:
    ids = RealIds()
    moments = [0, 1, 59, 60, 86_399, 86_400, 1_709_251_199, 1_709_251_200, 1_735_689_599, 1_735_689_600]
    made = [ids.session_id(moment + 0.5) for moment in moments]
    assert made == sorted(made)
    assert made[-1].startswith("20250101-000000-")
    assert len({ids.session_id(0) for _ in range(500)}) == 500
    assert {len(one) for one in made} == {26}


def test_ids_do_not_follow_the_time_zone_of_the_machine() -> None:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "FAR-9"
    time.tzset()
    try:
        assert RealIds().session_id(0).startswith("19700101-000000-")
    finally:
        del os.environ["TZ"]
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


def test_the_jitter_lies_between_0_and_1_and_differs() -> None:
    ids = RealIds()
    drawn = [ids.fraction() for _ in range(50)]
    assert all(0 <= fraction < 1 for fraction in drawn)
    assert len(set(drawn)) > 1


def test_the_owner_of_a_lock_is_this_process_on_this_machine() -> None:
    assert RealIds().owner() == f"pid {os.getpid()} on {socket.gethostname()}"


# --- background ------------------------------------------------------------------------------------------------


@contextmanager
def reported() -> Iterator[list[threading.ExceptHookArgs]]:
    """What reaches ``threading.excepthook``, the interpreter's own place to listen for errors of threads."""
    caught: list[threading.ExceptHookArgs] = []
    before = threading.excepthook
    threading.excepthook = caught.append
    try:
        yield caught
    finally:
        threading.excepthook = before


def test_jobs_run_one_after_the_other_in_another_thread() -> None:
    background = ThreadBackground()
    ran: list[tuple[int, threading.Thread]] = []
    for number in range(50):
        background.submit(lambda number=number: ran.append((number, threading.current_thread())))  # type: ignore[misc]
    assert background.drain(PATIENCE_SECONDS) is True
    assert [number for number, _ in ran] == list(range(50))
    threads = {thread for _, thread in ran}
    assert len(threads) == 1
    assert threading.current_thread() not in threads
    assert all(thread.daemon for thread in threads)


def test_draining_gives_up_after_its_timeout_and_can_be_tried_again() -> None:
    background = ThreadBackground()
    assert background.drain(0) is True
    release, ran = threading.Event(), threading.Event()

    def slow() -> None:
        release.wait(PATIENCE_SECONDS)

    background.submit(slow)
    background.submit(ran.set)
    assert background.drain(0.01) is False
    assert not ran.is_set()
    release.set()
    assert background.drain(PATIENCE_SECONDS) is True
    assert ran.is_set()


@pytest.mark.parametrize("error", [KeyError("lost"), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_a_job_that_raises_is_reported_and_the_next_ones_run(error: BaseException) -> None:
    background = ThreadBackground()
    ran: list[str] = []

    def broken() -> None:
        raise error

    with reported() as caught:
        background.submit(broken)
        background.submit(lambda: ran.append("after"))
        assert background.drain(PATIENCE_SECONDS) is True
    assert ran == ["after"]
    assert [(report.exc_type, report.exc_value) for report in caught] == [(type(error), error)]
    assert caught[0].thread is not None
    assert caught[0].thread.name == "pseudoclaude-background"
    assert caught[0].exc_traceback is not None


def test_a_thread_that_cannot_start_loses_only_the_job_that_was_refused() -> None:
    background = ThreadBackground()
    before = threading.stack_size(2**47 - 2**20)  # larger than any address space
    try:
        with pytest.raises(RuntimeError, match="can't start new thread"):
            background.submit(lambda: None)
    finally:
        threading.stack_size(before)
    assert background.drain(0) is True
    ran = threading.Event()
    background.submit(ran.set)
    assert background.drain(PATIENCE_SECONDS) is True
    assert ran.is_set()
