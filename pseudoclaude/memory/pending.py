"""Records of turns whose extraction has begun and not ended: session id and range of record numbers, nothing of their text.

A record is in the project's store from before the model is asked until the update that it led to is durable; its removal is part
of that update.  Its maker holds the record's lock while it works, so a later process takes up only what a dead one left.
"""

from __future__ import annotations

import hashlib
import posixpath

import msgspec

from pseudoclaude.memory import files
from pseudoclaude.memory.store import PENDING_FOLDER, Store
from pseudoclaude.ports import FileSystem


class PendingTurn(msgspec.Struct, frozen=True):
    """The messages of one turn: those with record numbers ``first`` to ``last`` of a session's log, both included."""

    session_id: str
    first: int
    last: int


class Held:
    """A record that this process holds.  ``release`` once the turn is done or given up."""

    def __init__(self, fs: FileSystem, store: Store, turn: PendingTurn, fd: int) -> None:
        self._fs = fs
        self._fd: int | None = fd
        self._path = posixpath.join(store.folder, PENDING_FOLDER, name_of(turn))
        self.turn = turn
        self.name = name_of(turn)

    def exists(self) -> bool:
        """Whether the turn is still to be done."""
        with files.disk_errors("looking", self._path):
            return files.kind_of(self._fs, self._path) == "file"

    def release(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with files.disk_errors("closing", self._path):
                self._fs.close(fd)


def name_of(turn: PendingTurn) -> str:
    """The record's file name: the same turn has one record."""
    key = f"{turn.session_id}\n{turn.first}\n{turn.last}"
    return hashlib.sha256(key.encode()).hexdigest()[:24] + ".json"


def record(fs: FileSystem, store: Store, turn: PendingTurn) -> Held | None:
    """Write a turn's record durably and hold it.  None when another holds the record of this turn.

    Raises ``MemoryFailed``; then the turn is done in this process or never.
    """
    folder = posixpath.join(store.folder, PENDING_FOLDER)
    store.prepare()
    files.make_folders(fs, folder, store.folder)
    path = posixpath.join(folder, name_of(turn))
    with files.disk_errors("recording a turn", path):
        if files.kind_of(fs, path) != "missing":
            return _take(fs, store, folder, name_of(turn))
        aside = posixpath.join(folder, f".{name_of(turn)}")
        files.remove(fs, aside)
        fd = fs.open(aside, "create")
        try:
            fs.lock(fd)
            files.write_all(fs, fd, msgspec.json.encode(turn))
            fs.fsync(fd)
            fs.rename(aside, path)
            fs.fsync_dir(folder)
        except BaseException:  # an interrupted record must not keep its lock
            fs.close(fd)
            raise
    return Held(fs, store, turn, fd)


def take_all(fs: FileSystem, store: Store) -> tuple[list[Held], list[str]]:
    """Hold every record that nobody works on, in the order of the turns; and a sentence for each file that is no record (it is removed)."""
    folder = posixpath.join(store.folder, PENDING_FOLDER)
    held: list[Held] = []
    problems: list[str] = []
    with files.disk_errors("looking for pending turns", folder):
        if files.kind_of(fs, folder) != "dir":
            return held, problems
        for name in sorted(fs.listdir(folder)):
            taken = _take(fs, store, folder, name)
            if taken is not None and taken.name == name:
                held.append(taken)
            elif taken is not None:
                taken.release()
                files.drop_file(fs, posixpath.join(folder, name))
                if not name.startswith("."):
                    problems.append(f"{posixpath.join(folder, name)} was no record of a turn and was removed")
    held.sort(key=lambda one: (one.turn.session_id, one.turn.first))  # ids sort by time; the names of the files do not
    return held, problems


def _take(fs: FileSystem, store: Store, folder: str, name: str) -> Held | None:
    """Hold one file; None when another does, when it is gone, or when it is no file.  Not a record: a turn of other name."""
    path = posixpath.join(folder, name)
    if files.kind_of(fs, path) != "file":
        return None
    try:
        fd = fs.open(path, "append")
    except FileNotFoundError:
        return None
    turn: PendingTurn | None = None
    try:
        if fs.lock(fd) and files.kind_of(fs, path) != "missing":
            turn = _decoded(files.read_file(fs, path))
    finally:
        if turn is None:
            fs.close(fd)
    return None if turn is None else Held(fs, store, turn, fd)


def _decoded(data: bytes | None) -> PendingTurn:
    try:
        return msgspec.json.decode(data or b"", type=PendingTurn)
    except (msgspec.DecodeError, RecursionError):
        return PendingTurn("", 0, 0)
