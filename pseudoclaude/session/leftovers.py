"""Leftovers: making and removing whole sessions, one process at a time, and clearing what a crash left of an earlier one.

A session is made in, and removed from, a folder beside it whose name begins with a dot; one rename puts it into the list or takes it out.  A process
that dies on the way leaves such a folder.  Whoever holds the lock of the sessions' folder knows that nobody is at work in it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import contextmanager

from pseudoclaude.ports import FileSystem
from pseudoclaude.session.folders import take_lock

FORKING = ".forking-"
DELETING = ".deleting-"
CATALOG_LOCK = ".lock"


@contextmanager
def changing(sessions: str, owner: str, fs: FileSystem) -> Iterator[None]:
    """Hold the folder ``sessions`` while a session is made or removed in it; first remove what a crash left there.

    Raises ``SessionLocked`` while another process does the same, and ``OSError``.
    """
    lock_fd = take_lock(
        posixpath.join(sessions, CATALOG_LOCK), owner, fs, durable=False, what="the list of sessions is"
    )
    try:
        clear(sessions, fs)
        yield
    finally:
        fs.close(lock_fd)


def clear(sessions: str, fs: FileSystem) -> None:
    """Remove what is in the making or in removal; only for who holds the folder."""
    for name in sorted(fs.listdir(sessions)):
        if name.startswith((FORKING, DELETING)):
            remove_tree(posixpath.join(sessions, name), fs)


def remove_tree(folder: str, fs: FileSystem, prefix: str = "") -> list[str]:
    """Remove a folder and all in it; the relative paths of the files removed, sorted.  Links are removed, not followed."""
    removed = []
    for name in sorted(fs.listdir(folder)):
        path = posixpath.join(folder, name)
        if fs.stat(path).kind == "dir":
            removed += remove_tree(path, fs, f"{prefix}{name}/")
        else:
            fs.unlink(path)
            removed.append(prefix + name)
    fs.rmdir(folder)
    return removed
