"""The few ways in which memory touches a disk, all through ``ports.FileSystem``.

A file is only ever put in place whole: written aside, synced, renamed, its folder synced.  A name therefore never stands for bytes
that a successful sync did not cover.  Symbolic links are not followed: neither the file nor the store's own folders may be one.
Every ``OSError`` becomes ``MemoryFailed`` with the path in it.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager

from pseudoclaude.errors import MemoryFailed
from pseudoclaude.ports import Clock, FileSystem

ASIDE = ".aside"
"""The one name for a file that is being written; whoever holds the store's lock may remove it."""
LOCK_POLL_SECONDS = 0.005
_READ_BYTES = 1 << 20


@contextmanager
def disk_errors(what: str, where: str) -> Iterator[None]:
    """Turn an ``OSError`` inside into ``MemoryFailed``: ``what`` could not be done to ``where``."""
    try:
        yield
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown error")
        raise MemoryFailed(
            f"{what} failed: {error.strerror or error} [{name}]",
            where=where,
            still_true="No note is half written; what was begun is finished by the next start or update",
            do_next="Make the folder writable and the disk healthy; nothing else needs to be done",
        ) from error


def kind_of(fs: FileSystem, path: str) -> str:
    """``file``, ``dir``, ``link``, ``other``, or ``missing``."""
    try:
        return fs.stat(path).kind
    except (FileNotFoundError, NotADirectoryError):
        return "missing"


def read_file(fs: FileSystem, path: str) -> bytes | None:
    """The bytes of a regular file, None when there is none.  Raises ``MemoryFailed`` for a link or what else is not a file."""
    with disk_errors("reading", path):
        kind = kind_of(fs, path)
        if kind == "missing":
            return None
        if kind != "file":
            raise MemoryFailed(
                f"it is a {'symbolic link' if kind == 'link' else kind}, not a file; it is neither read nor replaced",
                where=path,
                do_next="Put a regular file there, or remove it",
            )
        fd = fs.open(path, "read")
        try:
            return _read_all(fs, fd)
        finally:
            fs.close(fd)


def _read_all(fs: FileSystem, fd: int) -> bytes:
    parts: list[bytes] = []
    offset = 0
    while part := fs.pread(fd, _READ_BYTES, offset):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


def write_all(fs: FileSystem, fd: int, data: bytes) -> None:
    """Write everything; a short count is not an error, the rest is written."""
    view = memoryview(data)
    while view:
        written = fs.write(fd, bytes(view))
        if written <= 0:
            raise OSError(errno.EIO, "the disk took no bytes")
        view = view[written:]


def put_file(fs: FileSystem, folder: str, name: str, data: bytes) -> None:
    """Put a whole file in place durably.  Raises ``MemoryFailed``; then the name stands for its old or its new bytes."""
    target = posixpath.join(folder, name)
    aside = posixpath.join(folder, ASIDE)
    with disk_errors("writing", target):
        remove(fs, aside)
        fd = fs.open(aside, "create")
        try:
            write_all(fs, fd, data)
            fs.fsync(fd)
        finally:
            fs.close(fd)
        fs.rename(aside, target)
        fs.fsync_dir(folder)


def remove(fs: FileSystem, path: str) -> None:
    """Remove a name if it is there.  Raises ``OSError``; not durable until its folder is synced."""
    if kind_of(fs, path) != "missing":
        fs.unlink(path)


def drop_file(fs: FileSystem, path: str) -> None:
    """Remove a name and sync its folder, also when the name is gone already: its removal may not be durable."""
    with disk_errors("removing", path):
        remove(fs, path)
        fs.fsync_dir(posixpath.dirname(path))


def make_folders(fs: FileSystem, path: str, base: str) -> None:
    """Make ``path`` and the folders between ``base`` and it, and sync the chain of their entries, found or made.

    ``base`` has to exist.  A folder below it that is a symbolic link is refused.
    """
    chain = [path]
    while chain[-1] != base:
        chain.append(posixpath.dirname(chain[-1]))
    with disk_errors("opening", base):
        if kind_of(fs, base) == "missing":
            raise MemoryFailed("the folder does not exist", where=base, still_true="Nothing was created in its place")
    for folder in reversed(chain[:-1]):
        with disk_errors("making a folder", folder):
            if kind_of(fs, folder) == "missing":
                _make_folder(fs, folder)
            if kind_of(fs, folder) != "dir":
                raise MemoryFailed("it is not a folder of its own (a link is not followed)", where=folder)
    for folder in chain:
        with disk_errors("syncing a folder", folder):
            fs.fsync_dir(folder)


def _make_folder(fs: FileSystem, folder: str) -> None:
    try:
        fs.mkdir(folder)
    except FileExistsError:
        return  # another process made it in between, which is as good


@contextmanager
def locked(fs: FileSystem, clock: Clock, path: str, wait_seconds: float) -> Iterator[bool]:
    """Hold the lock file ``path`` (made if absent, never removed); False when it could not be had in time.

    With a wait of 0 the lock is tried once.
    """
    with disk_errors("locking", path):
        fd = fs.open(path, "lock")
    try:
        yield _acquire(fs, clock, fd, path, wait_seconds)
    finally:
        with disk_errors("unlocking", path):
            fs.close(fd)


def _acquire(fs: FileSystem, clock: Clock, fd: int, path: str, wait_seconds: float) -> bool:
    deadline = clock.monotonic() + wait_seconds
    while True:
        with disk_errors("locking", path):
            if fs.lock(fd):
                return True
        if clock.monotonic() >= deadline:
            return False
        clock.sleep(LOCK_POLL_SECONDS)
