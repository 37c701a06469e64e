"""Folders and the lock: making them, making them durable, and saying who holds a session.

A file is only as durable as its name, and a name only as its folder: after a ``mkdir`` or ``create`` the folder above is synced, and opening
for append syncs the whole chain up to the root, because a killed writer may have made a folder that is visible and not durable.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Callable
from functools import lru_cache

from pseudoclaude.errors import SessionLocked
from pseudoclaude.ports import FileSystem

HOLDER_BYTES_MAX = 200


@lru_cache(64)
def ancestors(path: str) -> tuple[str, ...]:
    """``path`` and every folder above it, the root last."""
    found = []
    while path not in ("/", ""):
        found.append(path)
        path = path[: path.rfind("/")]
    return (*found, "/")


def make_folders(path: str, fs: FileSystem, *, durable: bool) -> None:
    """Make ``path`` and what is missing above it, each entry durable before the next is made in it."""
    missing = []
    for folder in ancestors(path):
        try:
            fs.stat(folder)
            break
        except FileNotFoundError:
            missing.append(folder)
    for folder in reversed(missing):
        try:
            fs.mkdir(folder)
        except FileExistsError:
            continue  # another process made it in between; its chain is synced by sync_chain
        if durable:
            fs.fsync_dir(posixpath.dirname(folder))


def sync_chain(path: str, fs: FileSystem) -> None:
    """Make the entry of ``path`` and of every folder above it durable.

    A folder that may not be opened was not made by this user and is passed over.
    """
    for folder in ancestors(path):
        try:
            fs.fsync_dir(folder)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM):
                raise


def take_lock(path: str, owner: str, fs: FileSystem, *, durable: bool, what: str = "the session is") -> int:
    """Lock ``path``, leaving ``owner`` in it for people to read; ``SessionLocked`` names the holder.

    The kernel frees the lock when the process dies, so the text may be stale or torn and decides nothing.
    """
    fd = fs.open(path, "lock")
    try:
        if not fs.lock(fd):
            raise SessionLocked(
                f"{what} in use by {_holder(fd, fs)}",
                where=posixpath.dirname(path),
                still_true="Nothing was read or written",
                do_next="Close the other program, or fork the session",
            )
        text = owner.encode() + b"\n"
        if fs.pread(fd, HOLDER_BYTES_MAX, 0) != text:
            fs.truncate(fd, 0)
            fs.write(fd, text)
            if durable:
                fs.fsync(fd)
    except BaseException as error:
        close_after(error, lambda: fs.close(fd))
        raise
    return fd


def close_after(error: BaseException, close: Callable[[], None]) -> None:
    """Close something on the way out of ``error``.  A failing close is noted on it: it must not take the place of what went wrong first."""
    try:
        close()
    except OSError as closing:
        error.add_note(f"closing failed too: {closing.strerror or closing}")


def _holder(fd: int, fs: FileSystem) -> str:
    text = fs.pread(fd, HOLDER_BYTES_MAX, 0).decode("utf-8", errors="replace").strip("\x00 \n")
    return text or "another process (it has not said which)"
