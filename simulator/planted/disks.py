"""Planted bugs of durability: a call the product needs is left out, by a layer between it and its disk."""

from __future__ import annotations

from pseudoclaude.ports import FileSystem, OpenMode, Stat
from simulator.product import Product


class PassThrough:
    """``ports.FileSystem`` that hands every call on.  Variants override what they leave out."""

    def __init__(self, inner: FileSystem) -> None:
        self._inner = inner
        self._paths: dict[int, str] = {}

    def mkdir(self, path: str) -> None:
        self._inner.mkdir(path)

    def open(self, path: str, mode: OpenMode) -> int:
        fd = self._inner.open(path, mode)
        self._paths[fd] = path
        return fd

    def write(self, fd: int, data: bytes) -> int:
        return self._inner.write(fd, data)

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        return self._inner.pread(fd, count, offset)

    def truncate(self, fd: int, size: int) -> None:
        self._inner.truncate(fd, size)

    def fstat(self, fd: int) -> Stat:
        return self._inner.fstat(fd)

    def fsync(self, fd: int) -> None:
        self._inner.fsync(fd)

    def fdatasync(self, fd: int) -> None:
        self._inner.fdatasync(fd)

    def close(self, fd: int) -> None:
        self._inner.close(fd)

    def lock(self, fd: int) -> bool:
        return self._inner.lock(fd)

    def stat(self, path: str) -> Stat:
        return self._inner.stat(path)

    def listdir(self, path: str) -> list[str]:
        return self._inner.listdir(path)

    def rename(self, source: str, target: str) -> None:
        self._inner.rename(source, target)

    def unlink(self, path: str) -> None:
        self._inner.unlink(path)

    def rmdir(self, path: str) -> None:
        self._inner.rmdir(path)

    def fsync_dir(self, path: str) -> None:
        self._inner.fsync_dir(path)


class _NoSync(PassThrough):
    def fsync(self, fd: int) -> None:
        """Left out: the bytes of files stay in the cache."""


class _NoFolderSync(PassThrough):
    def fsync_dir(self, path: str) -> None:
        """Left out: names stay in the cache."""


class _NoSpillSync(PassThrough):
    def fsync(self, fd: int) -> None:
        if "/tool-results/" not in self._paths.get(fd, ""):
            self._inner.fsync(fd)


class NoSync(Product):
    """Acknowledges without syncing the log."""

    def file_system(self, fs: FileSystem) -> FileSystem:
        return _NoSync(fs)


class NoFolderSync(Product):
    """Never syncs a folder; on ext4, xfs and btrfs this does not show, POSIX allows it to lose the file."""

    def file_system(self, fs: FileSystem) -> FileSystem:
        return _NoFolderSync(fs)


class NoSpillSync(Product):
    """Names a spilled result in the history before its bytes are durable."""

    def file_system(self, fs: FileSystem) -> FileSystem:
        return _NoSpillSync(fs)
