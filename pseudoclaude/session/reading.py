"""Reading a log file: forwards in whole lines, backwards in segments, and where a resume may begin.

Cost is linear in what is read.  One line, however long, is the most that is held at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from pseudoclaude.ports import FileSystem
from pseudoclaude.session.records import BOM, Line, decode_line, segments
from pseudoclaude.session.replay import Replay
from pseudoclaude.session.salvage import salvage

CHUNK_BYTES = 1 << 17
HEAD_BYTES = 1 << 16
"""A first line longer than this is no header that a resume relies on."""


class LogReader:
    """An open log of ``size`` bytes; the caller closes ``fd``."""

    def __init__(self, fd: int, fs: FileSystem, size: int, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._fd = fd
        self._fs = fs
        self._size = size
        self._chunk_bytes = chunk_bytes

    def feed(self, replay: Replay, start: int) -> bool:
        """Give the log from ``start`` on to ``replay``, whole lines at a time; True when the last line has no end yet."""
        count = self._size - start
        if 0 < count <= self._chunk_bytes:
            data = self._fs.pread(self._fd, count, start)
            if len(data) == count:
                replay.block(data, start)
                return _ends_open(data)
        held: list[bytes] = []
        block = b""
        offset = start
        for data in chunks(self._fd, self._fs, start, self._size, self._chunk_bytes):
            cut = data.rfind(b"\n") + 1
            if not cut:
                held.append(data)
                continue
            block = b"".join([*held, data[:cut]]) if held else data[:cut]
            replay.block(block, offset)
            offset += len(block)
            held = [data[cut:]] if cut < len(data) else []
        if held:
            block = b"".join(held)
            replay.block(block, offset)
        return _ends_open(block)

    def header(self) -> Line | None:
        """The first line, if it is a whole header."""
        line = decode_line(self.head())
        return line if isinstance(line, Line) and line.type == "session" else None

    def head(self) -> bytes:
        """The first line without a BOM; empty when it is longer than ``HEAD_BYTES`` or has no end."""
        data = self._read(0, min(HEAD_BYTES, self._size))
        return data[: data.find(b"\n")].removeprefix(BOM) if b"\n" in data else b""

    def resume_offset(self) -> int:
        """Offset of the last whole replace from which replaying gives what replaying everything would; 0 when only all of it does.

        Needed for that: the first line is the header (it fixes id and version), and the numbered record directly before the replace
        is lower (otherwise the replace may be a duplicate, which only what lies further back can tell).
        """
        if self.header() is None:
            return 0
        candidate: tuple[int, int | None] | None = None
        for offset, raw in self._backwards():
            if candidate is not None:
                before = _last_numbered(raw)
                if before is None:
                    continue
                if candidate[1] is not None and before < candidate[1]:
                    return candidate[0]
                candidate = None
            if b'"replace"' in raw:
                candidate = _whole_replace(offset, raw)
                if candidate is not None and candidate[1] is None:
                    return candidate[0]
        return candidate[0] if candidate is not None else 0

    def _backwards(self) -> Iterator[tuple[int, bytes]]:
        """All segments except empty ones and NUL runs, last first."""
        held: list[bytes] = []
        end = self._size
        while end > 0:
            start = max(0, end - self._chunk_bytes)
            data = self._read(start, end - start)
            cut = 0 if start == 0 else data.find(b"\n") + 1
            if start and not cut:
                held.append(data)
            else:
                block = b"".join([data[cut:], *reversed(held)])
                for offset, raw, is_nul in reversed(list(segments(block, start + cut))):
                    if raw and not is_nul:
                        yield offset, raw
                held = [data[:cut]] if cut else []
            end = start

    def _read(self, offset: int, count: int) -> bytes:
        return b"".join(chunks(self._fd, self._fs, offset, offset + count, count))


def chunks(fd: int, fs: FileSystem, start: int, end: int, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes from ``start`` to ``end``, or to the end of a file that became shorter."""
    offset = start
    while offset < end:
        data = fs.pread(fd, min(chunk_bytes, end - offset), offset)
        if not data:
            return
        yield data
        offset += len(data)


def _ends_open(data: bytes) -> bool:
    """Whether the last line in ``data`` has no end."""
    return data[-1:] not in (b"", b"\n", b"\x00")


def _whole_replace(offset: int, raw: bytes) -> tuple[int, int | None] | None:
    """Offset and number of the replace that a segment is, or that was glued into it."""
    line = decode_line(raw)
    if isinstance(line, Line):
        return (offset, line.n) if line.type == "replace" else None
    whole = salvage(raw)
    if len(whole) != 1 or whole[0][2].type != "replace":
        return None
    return offset + whole[0][0], whole[0][2].n


def _last_numbered(raw: bytes) -> int | None:
    line = decode_line(raw)
    if isinstance(line, Line):
        return line.n
    return next((record.n for _, _, record in reversed(salvage(raw)) if record.n is not None), None)
