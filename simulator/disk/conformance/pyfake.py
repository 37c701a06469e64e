"""``ports.FileSystem`` on pyfakefs, a file system in memory that others keep and test against the real one.

The adapter gives the fake ``os`` the very flags that ``RealFileSystem`` gives the real one, and corrects nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Literal

from pyfakefs.fake_filesystem import FakeFilesystem
from pyfakefs.fake_os import FakeOsModule
from pyfakefs.helpers import FakeStatResult

from pseudoclaude.ports import OpenMode, Stat

_FLAGS: dict[str, int] = {
    "create": os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND,
    "append": os.O_WRONLY | os.O_APPEND,
    "read": os.O_RDONLY,
    "lock": os.O_RDWR | os.O_CREAT,
}


class PyFakeFileSystem:
    """``pread`` is seek, read, seek back: the fake ``os`` has none.  ``lock`` always succeeds: it has no locks either."""

    def __init__(self) -> None:
        self._fs = FakeFilesystem(path_separator="/")
        self._os = FakeOsModule(self._fs)

    def mkdir(self, path: str) -> None:
        self._os.mkdir(path, 0o700)

    def open(self, path: str, mode: OpenMode) -> int:
        return self._os.open(path, _FLAGS[mode] | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def write(self, fd: int, data: bytes) -> int:
        return self._os.write(fd, data)

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        if count < 0 or offset < 0:
            raise OSError(errno.EINVAL, "EINVAL")
        handle = self._fs.get_open_file(fd)
        before = handle.tell() if hasattr(handle, "tell") else 0
        self._os.lseek(fd, offset, os.SEEK_SET)
        data = self._os.read(fd, count)
        self._os.lseek(fd, before, os.SEEK_SET)
        return bytes(data)

    def truncate(self, fd: int, size: int) -> None:
        self._os.ftruncate(fd, size)

    def fstat(self, fd: int) -> Stat:
        return _stat_value(self._os.fstat(fd))

    def fsync(self, fd: int) -> None:
        self._os.fsync(fd)

    def fdatasync(self, fd: int) -> None:
        self._os.fdatasync(fd)

    def close(self, fd: int) -> None:
        self._os.close(fd)

    def lock(self, fd: int) -> bool:
        self._fs.get_open_file(fd)
        return True

    def stat(self, path: str) -> Stat:
        return _stat_value(self._os.lstat(path))

    def listdir(self, path: str) -> list[str]:
        return self._os.listdir(path)

    def rename(self, source: str, target: str) -> None:
        self._os.rename(source, target)

    def unlink(self, path: str) -> None:
        self._os.unlink(path)

    def rmdir(self, path: str) -> None:
        self._os.rmdir(path)

    def fsync_dir(self, path: str) -> None:
        fd = self._os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._os.fsync(fd)
        finally:
            self._os.close(fd)


def _stat_value(result: FakeStatResult) -> Stat:
    kind: Literal["file", "dir", "other"] = "other"
    if stat.S_ISREG(result.st_mode):
        kind = "file"
    elif stat.S_ISDIR(result.st_mode):
        kind = "dir"
    return Stat(kind, result.st_size, result.st_ino or 0, result.st_mtime)
