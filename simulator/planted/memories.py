"""Planted bugs of memory: in the manager, or by a layer between it and its disk that leaves out, moves or spoils what the stores need."""

from __future__ import annotations

import posixpath
from typing import Any

from msgspec.structs import replace

from pseudoclaude.memory import MemoryManager
from pseudoclaude.memory.index import Joined
from pseudoclaude.memory.manager import TurnMessages
from pseudoclaude.messages import Message
from pseudoclaude.ports import Clock, FileSystem, Ids
from pseudoclaude.session import SessionWriter
from pseudoclaude.settings import Dangling, Settings
from simulator.planted.disks import PassThrough
from simulator.product import Product, Writer

STORE = "/memory"


class _Slicing(MemoryManager):
    def _read_index(self) -> Joined:
        whole = "\n\n".join(
            f"## {title} Memory\n{store.index_text()}"
            for title, store in zip(("Project", "User"), self._stores(), strict=True)
            if store.exists()
        )
        data = whole.encode("utf-8", errors="surrogateescape")[: self._settings.memory_bytes_max]
        return Joined(data.decode("utf-8", errors="replace"))


class SlicesBytes(Product):
    """Cuts the index by bytes, as a slice of an encoded string does."""

    def memory(self, **given: Any) -> MemoryManager:
        return _Slicing(**given)


class _Forgetful(MemoryManager):
    def finish_pending(self, turn_messages: TurnMessages | None = None) -> int:
        del turn_messages
        return 0


class ForgetsPendingTurns(Product):
    """A turn whose process died is never taken up."""

    def memory(self, **given: Any) -> MemoryManager:
        return _Forgetful(**given)


class _Silent(MemoryManager):
    @property
    def prompt_section(self) -> str:
        return ""


class IndexNeverArrives(Product):
    """The next session's prompt says nothing of memory."""

    def memory(self, **given: Any) -> MemoryManager:
        return _Silent(**given)


class _LogsIndex(SessionWriter):
    def append_message(self, message: Message) -> None:
        if message.role == "user":
            message = replace(message, content=f"## Project Memory\n\n{message.content}")
        super().append_message(message)


class IndexInLog(Product):
    """The index goes into the session with the user's message."""

    def open(
        self, folder: str, *, settings: Settings, fs: FileSystem, clock: Clock, ids: Ids, dangling: Dangling
    ) -> Writer:
        return _LogsIndex.open(folder, settings=settings, fs=fs, clock=clock, ids=ids, dangling=dangling)


# --- between memory and its disk -------------------------------------------------------------------------------


def _is_store(folder: str) -> bool:
    return folder.endswith(STORE)


def _is_journal(path: str) -> bool:
    return posixpath.basename(path).startswith("journal-")


class _NoJournal(PassThrough):
    def rename(self, source: str, target: str) -> None:
        if _is_journal(target):
            self._inner.unlink(source)
        else:
            self._inner.rename(source, target)


class NoJournal(Product):
    """Changes one store after the other, and nothing tells of the second one while the first is changed."""

    def file_system(self, fs: FileSystem) -> FileSystem:
        return _NoJournal(fs)


class _UnsyncedStores(PassThrough):
    """Syncs journals and nothing else in a store."""

    def __init__(self, inner: FileSystem) -> None:
        super().__init__(inner)
        self._journals: set[int] = set()
        self._sync_next = False

    def write(self, fd: int, data: bytes) -> int:
        if data.startswith(b'{"version"'):
            self._journals.add(fd)
        return self._inner.write(fd, data)

    def fsync(self, fd: int) -> None:
        if fd in self._journals or not _is_store(posixpath.dirname(self._paths.get(fd, ""))):
            self._inner.fsync(fd)

    def rename(self, source: str, target: str) -> None:
        self._sync_next = _is_journal(target)
        self._inner.rename(source, target)

    def unlink(self, path: str) -> None:
        self._sync_next = _is_journal(path)
        self._inner.unlink(path)

    def fsync_dir(self, path: str) -> None:
        if self._sync_next or not _is_store(path):
            self._inner.fsync_dir(path)


class JournalGoesFirst(Product):
    """The journal is removed before the notes and indexes are durable."""

    def file_system(self, fs: FileSystem) -> FileSystem:
        return _UnsyncedStores(fs)


class _IndexFirst(_NoJournal):
    """Holds every note back until the index of its store is in place."""

    def __init__(self, inner: FileSystem) -> None:
        super().__init__(inner)
        self._held: list[tuple[str, str]] = []

    def rename(self, source: str, target: str) -> None:
        folder, name = posixpath.split(target)
        if not (_is_store(folder) and name.endswith(".md")):
            super().rename(source, target)
            return
        if name != "MEMORY.md":
            held = posixpath.join(folder, f".held-{name}")
            self._inner.rename(source, held)
            self._held.append((held, target))
            return
        self._inner.rename(source, target)
        for held, note in self._held:
            self._inner.rename(held, note)
        self._held = []


class LineBeforeNote(Product):
    """The index names a note that is not there yet."""

    def file_system(self, fs: FileSystem) -> FileSystem:
        return _IndexFirst(fs)


class _OwnLinesOnly(PassThrough):
    def write(self, fd: int, data: bytes) -> int:
        path = self._paths.get(fd, "")
        if _is_store(posixpath.dirname(path)) and b"](" in data and not data.startswith((b"---", b"{")):
            kept = [line for line in data.splitlines(keepends=True) if line.startswith(b"- [")]
            self._inner.write(fd, b"".join(kept))
            return len(data)
        return self._inner.write(fd, data)


class DropsHandLines(Product):
    """An index is written from the notes alone."""

    def file_system(self, fs: FileSystem) -> FileSystem:
        return _OwnLinesOnly(fs)


class _KeepsRecords(PassThrough):
    def unlink(self, path: str) -> None:
        if posixpath.basename(posixpath.dirname(path)) != "pending":
            self._inner.unlink(path)


class TakesTurnsTwice(Product):
    """The record of a turn stays when its update is made."""

    def file_system(self, fs: FileSystem) -> FileSystem:
        return _KeepsRecords(fs)
