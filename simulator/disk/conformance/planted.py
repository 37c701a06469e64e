"""Deliberately wrong file systems: what a comparison that works must find."""

from __future__ import annotations

from simulator.disk.faults import os_error
from simulator.disk.filesystem import SimFileSystem


class RenameReplacesNothing(SimFileSystem):
    """A rename onto an existing file is refused, as on some other systems."""

    def rename(self, source: str, target: str) -> None:
        if source != target and self.peek(source) is not None and self.peek(target) is not None:
            raise os_error("EEXIST", target)
        super().rename(source, target)


class UnlinkEmptiesOpenFiles(SimFileSystem):
    """A file that loses its name loses its bytes, although it is open."""

    def unlink(self, path: str) -> None:
        inode = self.stat(path).inode
        super().unlink(path)
        self._files[inode].data.clear()


class LockWritesAtTheStart(SimFileSystem):
    """Every write in ``lock`` mode goes to offset 0 (SimFileSystem once did this)."""

    def write(self, fd: int, data: bytes) -> int:
        self._handles[fd].position = 0
        return super().write(fd, data)


PLANTED: tuple[type[SimFileSystem], ...] = (RenameReplacesNothing, UnlinkEmptiesOpenFiles, LockWritesAtTheStart)
