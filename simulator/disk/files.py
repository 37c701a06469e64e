"""Files: bytes by inode, and descriptors.  What a failed sync left of the bytes is kept beside them."""

from __future__ import annotations

import msgspec

from pseudoclaude.ports import OpenMode


class File:
    """The bytes of an inode as programs see them.

    ``synced`` is kept only where faults may strike: what ``evict`` and a btrfs failure fall back to.  ``lost``: where the bytes lie that
    were in flight at a failed sync; no later sync makes them durable.
    """

    __slots__ = ("data", "late_error", "locked_by", "lost", "synced")

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.synced = bytes(data)
        self.locked_by: int | None = None
        self.late_error = False
        self.lost: list[tuple[int, int]] = []

    def resize(self, size: int) -> None:
        """Cut, or fill up with NUL."""
        if size < len(self.data):
            del self.data[size:]
            self.lost = [(start, min(end, size)) for start, end in self.lost if start < size]
        else:
            self.data.extend(bytes(size - len(self.data)))

    def lose(self) -> None:
        """A sync failed and the kernel called the bytes clean."""
        appended = self.data.startswith(self.synced)
        self.lost.append((len(self.synced) if appended else 0, len(self.data)))

    def fail_sync(self, dialect: str) -> None:
        """What each way of failing leaves in the cache (FAULT-MODEL.md §2.5)."""
        if dialect == "false-failure":
            self.sync()
        elif dialect == "btrfs":
            self.data[:] = self.synced
        elif dialect in ("ext4", "ext4-journal"):
            self.late_error = dialect == "ext4-journal"
            self.lose()

    def sync(self) -> None:
        """A sync worked: all is durable but what was lost, which stays as it was, NUL where nothing was."""
        if not self.lost:
            self.synced = bytes(self.data)
            return
        durable = bytearray(self.data)
        for start, end in self.lost:
            durable[start:end] = self.synced[start:end].ljust(end - start, b"\0")
        self.synced = bytes(durable)


class Handle(msgspec.Struct):
    """An open descriptor."""

    inode: int
    file: File
    mode: OpenMode
    path: str
    position: int = 0
    """Where the next write goes in ``lock`` mode; the other writing modes append."""
