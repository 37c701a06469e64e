"""The ports on a real machine.  The only file that opens, renames, syncs, locks, sleeps or draws ids.

It uses ``os.open``/``os.write``/``os.fsync`` and never a buffered file object: a buffer's flush, its close errors and its flush by
the garbage collector would be writes that nobody sees.  Imported only by package facades and ``cli.py``.  POSIX only.
"""

from __future__ import annotations

import fcntl
import os
import queue
import random
import socket
import stat
import threading
import time
from collections.abc import Callable
from typing import Literal

from pseudoclaude.ports import OpenMode, Stat

_FLAGS: dict[str, int] = {
    "create": os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND,
    "append": os.O_WRONLY | os.O_APPEND,
    "read": os.O_RDONLY,
    "lock": os.O_RDWR | os.O_CREAT,
}
FILE_MODE = 0o600
FOLDER_MODE = 0o700


class RealFileSystem:
    """``ports.FileSystem`` on the operating system.  ``fsync`` is ``F_FULLFSYNC`` where that exists (macOS)."""

    def __init__(self) -> None:
        self._locked: set[int] = set()

    def mkdir(self, path: str) -> None:
        os.mkdir(path, FOLDER_MODE)

    def open(self, path: str, mode: OpenMode) -> int:
        return os.open(path, _FLAGS[mode] | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)

    def write(self, fd: int, data: bytes) -> int:
        return os.write(fd, data)

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        return os.pread(fd, count, offset)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def fstat(self, fd: int) -> Stat:
        return _stat_value(os.fstat(fd))

    def fsync(self, fd: int) -> None:
        if hasattr(fcntl, "F_FULLFSYNC"):
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fsync(fd)

    def fdatasync(self, fd: int) -> None:
        if hasattr(fcntl, "F_FULLFSYNC"):
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(fd)

    def close(self, fd: int) -> None:
        if fd in self._locked:
            # A child that was forked since shares the lock through its copy of the descriptor; closing alone would leave it held.
            self._locked.discard(fd)
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)

    def lock(self, fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._locked.add(fd)
        return True

    def stat(self, path: str) -> Stat:
        return _stat_value(os.lstat(path))

    def listdir(self, path: str) -> list[str]:
        return os.listdir(path)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def fsync_dir(self, path: str) -> None:
        # A link is followed here: the folders above a session are the user's, and any of them may be one.
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _stat_value(result: os.stat_result) -> Stat:
    kind: Literal["file", "dir", "link", "other"] = "other"
    if stat.S_ISREG(result.st_mode):
        kind = "file"
    elif stat.S_ISDIR(result.st_mode):
        kind = "dir"
    elif stat.S_ISLNK(result.st_mode):
        kind = "link"
    return Stat(kind, result.st_size, result.st_ino, result.st_mtime)


class RealClock:
    """``ports.Clock`` on the machine's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class RealIds:
    """``ports.Ids``: session ids are the UTC second, then 40 random bits, so that they sort by time and do not collide."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def session_id(self, now: float) -> str:
        return time.strftime("%Y%m%d-%H%M%S", time.gmtime(now)) + f"-{self._random.getrandbits(40):010x}"

    def fraction(self) -> float:
        return self._random.random()

    def owner(self) -> str:
        return f"pid {os.getpid()} on {socket.gethostname()}"


class ThreadBackground:
    """``ports.Background``: one daemon thread, started with the first job.

    A daemon, so that a job that never ends cannot keep the process alive; whoever must not lose work calls ``drain`` and keeps a
    record of what is pending.  A job that raises is reported through ``threading.excepthook``; the next ones run all the same.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._idle = threading.Condition()
        self._open_jobs = 0
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[], None]) -> None:
        with self._idle:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="pseudoclaude-background", daemon=True)
                thread.start()  # may fail; then nothing was submitted, and the next job tries again
                self._thread = thread
            self._open_jobs += 1
        self._jobs.put(job)

    def drain(self, timeout: float) -> bool:
        with self._idle:
            return self._idle.wait_for(lambda: self._open_jobs == 0, timeout)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job()
            except BaseException as error:  # noqa: BLE001 (whatever ends one job must not end the worker of the others)
                threading.excepthook(
                    threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread()))
                )
            finally:
                with self._idle:
                    self._open_jobs -= 1
                    self._idle.notify_all()
