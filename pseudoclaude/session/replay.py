"""Replay: the state machine that turns the segments of a log, in file order, into a history and an account of the damage.

File order is the truth.  ``message`` appends, ``replace`` sets the whole history.  Sequence numbers only tell what is missing or doubled:
they are compared since the last applied replace, so that reading from that replace and reading everything give the same history.

- same ``n``, same bytes as a line since then: a ``duplicate``, dropped (a doubled replace only when the numbered record directly before it
  is not lower: that much can be decided without reading what lies further back);
- same or lower ``n`` otherwise: a ``conflict``, kept;
- a missing ``n``: a ``gap``; none before a ``recover``, which exists because something before it may be lost;
- a bad line without a gap is the ended tear of a write that was never acknowledged: a settled note.  With a gap it is damage.

In ``batch`` logs each line says in ``s`` what was durable when it was written.  A gap above every later ``s`` was never acknowledged; the
history is cut there, because what follows the hole was not either.
"""

from __future__ import annotations

import zlib

import msgspec
from msgspec import UNSET

from pseudoclaude.errors import InvalidMessage
from pseudoclaude.messages import Message
from pseudoclaude.session.records import BOM, BadLine, FindingKind, Line, decode_line, salvage

EXCERPT_CHARS = 60


class Finding(msgspec.Struct, frozen=True):
    """One thing a reader should know about the bytes at ``offset``.

    ``settled``: nothing is to be done about it - a whole replace follows it, or it is the ended tear of an unacknowledged write.
    ``text`` says in words what it means and, where something readable was lost, quotes it.
    """

    kind: FindingKind
    offset: int
    length: int
    settled: bool
    text: str


class _Draft:
    """A finding whose ``settled`` is not yet known.  ``bad`` ones wait for the next numbered record."""

    __slots__ = ("bad", "kind", "length", "offset", "settled", "text")

    def __init__(self, kind: FindingKind, offset: int, length: int, text: str, *, settled: bool, bad: bool) -> None:
        self.kind = kind
        self.offset = offset
        self.length = length
        self.text = text
        self.settled = settled
        self.bad = bad


class Replay:
    """Feed it segments; read ``messages`` and the rest when all were fed."""

    def __init__(self, *, from_start: bool) -> None:
        self.messages: list[Message] = []
        self.origins: list[tuple[int, int]] = []
        """Offset and length of the record each message came from."""
        self.header: Line | None = None
        self.first_model = ""
        self.model = ""
        self.highest = 0
        self.records = 0
        self.bad_lines = 0
        self.sealed = False
        """A record of the v1 writer was seen (it has an ``n``)."""
        self.replace_offset = -1
        self.last_record_end = 0
        self.was_cut = False
        """The history was cut at a hole that was never acknowledged (``batch``)."""
        self._numbered = from_start
        self._previous_n = 0
        self._seen: dict[int, int] = {}
        self._drafts: list[_Draft] = []
        self._waiting: list[_Draft] = []
        self._cut: tuple[int, int, int] | None = None
        self._bare_marker: _Draft | None = None

    # --- input -------------------------------------------------------------------------------------------------

    def nul_run(self, offset: int, length: int) -> None:
        self._bad("nul", offset, length, f"{length} NUL bytes: space the disk allocated and never wrote")

    def segment(self, offset: int, raw: bytes, *, ended: bool) -> None:
        """One segment.  ``ended``: a separator follows it in the file."""
        if offset == 0 and raw.startswith(BOM):
            raw, offset = raw[len(BOM) :], len(BOM)
        if not raw:
            self._add("json", offset, 1, "an empty line", settled=True)
            return
        line = decode_line(raw)
        if isinstance(line, Line):
            self._record(line, offset, raw)
            return
        whole = salvage(raw)
        done = 0
        for start, end, record in whole:
            if start > done:
                self._glued(line, offset + done, raw[done:start])
            self._record(record, offset + start, raw[start:end])
            done = end
        if done < len(raw):
            rest = line if not whole else decode_line(raw[done:])
            kind = rest if isinstance(rest, BadLine) else line
            self._bad(kind.kind, offset + done, len(raw) - done, _describe(kind, raw[done:], ended=ended))

    def _glued(self, bad: BadLine, offset: int, raw: bytes) -> None:
        rest = decode_line(raw)
        kind = rest if isinstance(rest, BadLine) else bad
        self._bad(
            kind.kind,
            offset,
            len(raw),
            _describe(kind, raw, ended=True) + "; a whole record was glued to it and counts",
        )

    # --- records -----------------------------------------------------------------------------------------------

    def _record(self, line: Line, offset: int, raw: bytes) -> None:
        self.last_record_end = offset + len(raw)
        if line.type == "session":
            self._session(line, offset, len(raw))
            return
        self.records += 1
        if line.n is not None and not self._in_order(line, offset, raw):
            return
        if line.n is None:
            self._waiting = []
        if line.healed:
            self._add(
                "utf8",
                offset,
                len(raw),
                "half a character (a lone surrogate) in it was replaced by U+FFFD",
                settled=True,
            )
        if line.type == "message":
            self._message(line, offset, len(raw))
        elif line.type == "replace":
            self._replace(line, offset, raw)
        else:
            self._add(
                "unknown_entry",
                offset,
                len(raw),
                f"a record of unknown type {line.type!r}: kept on disk, skipped",
                settled=True,
            )

    def _session(self, line: Line, offset: int, length: int) -> None:
        if self.header is None:
            self.header = line
        else:
            self._add("header", offset, length, "a second header; the first one counts", settled=True)

    def _message(self, line: Line, offset: int, length: int) -> None:
        try:
            message = line.message()
        except InvalidMessage as problem:
            self._bad("schema", offset, length, f"not a message: {problem.what}")
            return
        self.messages.append(message)
        self.origins.append((offset, length))
        if line.model:
            self.model = line.model
            if offset <= len(BOM):
                self.first_model = line.model
        self._bare_marker = None

    def _replace(self, line: Line, offset: int, raw: bytes) -> None:
        length = len(raw)
        before = len(self.messages)
        snapshot = () if line.messages is UNSET or line.messages is None else line.messages
        self.messages = list(snapshot)
        self.origins = [(offset, length)] * len(snapshot)
        self.model = line.model or self.first_model
        self.replace_offset = offset
        self._seen = {} if line.n is None else {line.n: zlib.crc32(raw)}
        self._numbered = line.n is not None
        self.highest = line.n or 0
        self._previous_n = self.highest
        self._waiting = []
        self._cut = None
        self._bare_marker = None
        if line.messages is UNSET:
            text = f"a bare replace marker cleared {before} messages and no snapshot follows it"
            self._bare_marker = _Draft("incomplete_replace", offset, length, text, settled=False, bad=False)

    def _in_order(self, line: Line, offset: int, raw: bytes) -> bool:
        """Note what the number says; False when the record is a duplicate and must be dropped."""
        n = line.n
        assert n is not None
        self.sealed = True
        checksum = zlib.crc32(raw)
        previous, self._previous_n = self._previous_n, n
        if line.s is not None and self._cut is not None and line.s >= self._cut[0]:
            self._cut = None
        if self._numbered and n <= self.highest:
            replayed = line.type == "replace" and previous < n
            if self._seen.get(n) == checksum and not replayed:
                self._add(
                    "duplicate", offset, len(raw), f"record {n} a second time, the same bytes: dropped", settled=True
                )
                return False
            self._add(
                "conflict",
                offset,
                len(raw),
                f"record {n} comes after record {self.highest}, with other bytes: kept",
                settled=False,
            )
        elif self._numbered and n > self.highest + 1 and line.reason != "recover":
            self._gap(line, n, offset)
        else:
            for draft in self._waiting:
                draft.settled = True
            self._waiting = []
        self._seen[n] = checksum
        self._numbered = True
        self.highest = max(self.highest, n)
        return True

    def _gap(self, line: Line, n: int, offset: int) -> None:
        missing = self.highest + 1
        names = f"record {missing} is" if n == missing + 1 else f"records {missing} to {n - 1} are"
        self._waiting = []
        self._add("gap", offset, 0, f"{names} missing before this", settled=False)
        if line.s is not None and line.s < missing and self._cut is None:
            self._cut = (missing, len(self.messages), offset)

    # --- findings ----------------------------------------------------------------------------------------------

    def _add(self, kind: FindingKind, offset: int, length: int, text: str, *, settled: bool) -> None:
        self._drafts.append(_Draft(kind, offset, length, text, settled=settled, bad=False))

    def _bad(self, kind: FindingKind, offset: int, length: int, text: str) -> None:
        self.bad_lines += 1
        draft = _Draft(kind, offset, length, text, settled=False, bad=True)
        self._drafts.append(draft)
        self._waiting.append(draft)

    def finish(self) -> tuple[Finding, ...]:
        """Apply what only the end of the log decides, and return all findings in file order."""
        if self._cut is not None:
            missing, count, offset = self._cut
            self.was_cut = True
            dropped = len(self.messages) - count
            self.messages = self.messages[:count]
            self.origins = self.origins[:count]
            self._settle_gap(offset, missing, dropped)
        if self._bare_marker is not None:
            self._drafts.append(self._bare_marker)
        return tuple(
            Finding(draft.kind, draft.offset, draft.length, draft.settled or self._replaced(draft), draft.text)
            for draft in self._drafts
        )

    def _replaced(self, draft: _Draft) -> bool:
        if draft.kind == "gap":
            return draft.offset <= self.replace_offset
        return draft.offset < self.replace_offset

    def _settle_gap(self, offset: int, missing: int, dropped: int) -> None:
        for draft in self._drafts:
            if draft.kind == "gap" and draft.offset == offset:
                draft.text = (
                    f"record {missing} and more were never acknowledged (batch durability) and are not there; "
                    f"the history ends before them and {dropped} later messages, not acknowledged either, are left out"
                )


def _describe(bad: BadLine, raw: bytes, *, ended: bool) -> str:
    text = raw[: EXCERPT_CHARS * 4].decode("utf-8", errors="replace")[:EXCERPT_CHARS]
    where = "" if ended else ", at the end of the file"
    more = "…" if len(raw) > EXCERPT_CHARS else ""
    return f"{len(raw)} bytes that are no record{where}: {bad.why}; they begin {text!r}{more}"
