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

Memory is bounded by the live history: a replace lets go of all before it, findings are counted beyond a limit (``findings.py``), and of records
that add nothing to the history only the last number is remembered.
"""

from __future__ import annotations

import bisect
from functools import lru_cache

import msgspec
from msgspec import UNSET

from pseudoclaude.messages import Message
from pseudoclaude.session.findings import Account, BadLine, Finding, Hole
from pseudoclaude.session.plain import PlainRun, plain_run
from pseudoclaude.session.records import BOM, REMEMBERED_BYTES, Line, around_nuls, decode_line
from pseudoclaude.session.salvage import salvage

EXCERPT_CHARS = 200
PLAIN_LINES_MIN = 16
"""Fewer lines than this are not worth looking at in bulk."""


class _Cut(msgspec.Struct):
    """A gap that no later ``s`` covers so far: the history ended before it."""

    missing: int
    messages: int
    hole: Hole


class Replay:
    """Feed it segments; call ``finish``; then read ``messages`` and the rest."""

    header: Line | None = None
    first_model = ""
    model = ""
    highest = 0
    records = 0
    sealed = False
    """A record of the v1 writer was seen (it has an ``n``)."""
    replace_offset = -1
    records_end = 0
    was_cut = False
    """The history was cut at a hole that was never acknowledged (``batch``)."""
    _previous = (0, 0)
    """Number and checksum of the last numbered record."""
    _from_replace = False
    """The first run of ``_origins`` is a snapshot: one record for all its messages."""
    _bare_marker: tuple[int, int, int] | None = None

    def __init__(self, *, from_start: bool) -> None:
        self.messages: list[Message] = []
        self.account = Account()
        self._numbered = from_start
        self._seen: dict[int, int] = {}
        """Checksums of the message records since the last replace, by number; those of ``_fresh`` are still to come."""
        self._fresh: list[tuple[int, list[int]]] = []
        """Runs of them: the first number and one checksum each."""
        self._origins: list[tuple[int, int, list[int]]] = []
        """Where the messages came from: position of the first of a run, offset of its record, and the length of each record."""
        self._cuts: list[_Cut] = []

    # --- input -------------------------------------------------------------------------------------------------

    def block(self, data: bytes, offset: int) -> None:
        """The lines of ``data``; what stands behind its last newline is the last line of the file, and has no end."""
        lines = data.split(b"\n")
        last = lines.pop()
        if lines and not offset and data.startswith(BOM):
            first = lines.pop(0)
            self._line(first, 0, ended=True)
            data = data[len(first) + 1 :]
            offset = len(first) + 1
        offset = self._one_by_one(lines, offset) if len(lines) < PLAIN_LINES_MIN else self._in_bulk(data, lines, offset)
        if last:
            self._line(last, offset, ended=False)

    def _one_by_one(self, lines: list[bytes], offset: int) -> int:
        """Take lines from ``offset`` on; where the next one begins."""
        for raw in lines:
            line = decode_line(raw)
            if isinstance(line, BadLine):
                if b"\x00" in raw:
                    self._line(raw, offset, ended=True)
                else:
                    self._no_record(line, offset, raw, ended=True)
            elif (
                (message := line.message) is not None
                and line.n == self.highest + 1
                and self._numbered
                and not (self._cuts or line.healed)
            ):
                self._next(message, line, offset, len(raw))
            else:
                self._record(line, offset, raw)
            offset += len(raw) + 1
        return offset

    def _in_bulk(self, data: bytes, lines: list[bytes], offset: int) -> int:
        """The same, with runs of plain records taken at once."""
        base = offset
        view = memoryview(data)
        position = 0
        while position < len(lines):
            tried = 0
            if self._numbered and not self._cuts and offset > len(BOM):
                run = plain_run(view[offset - base :], lines, position, self.highest + 1)
                taken = len(run.messages)
                tried = run.tried - taken
                position += taken
                offset = self._take_plain(run, offset) if taken else offset
            following = lines[position : position + max(tried, 1)]
            offset = self._one_by_one(following, offset)
            position += len(following)
        return offset

    def _take_plain(self, run: PlainRun, offset: int) -> int:
        """Take records about which there is nothing to say: what ``_line`` would do with each, for all of them."""
        count = len(run.messages)
        self._origins.append((len(self.messages), offset, run.lengths))
        self._fresh.append((self.highest + 1, run.checksums))
        self.messages += run.messages
        self.highest += count
        self._previous = (self.highest, run.checksums[-1])
        self.model = run.model or self.model
        self.records += count
        end = offset + sum(run.lengths) + count
        self.records_end = end - 1
        self.sealed = True
        self.account.no_gap()
        self._bare_marker = None
        return end

    def origin(self, position: int) -> tuple[int, int]:
        """Offset and length of the record that the message at ``position`` came from; of the last record for a position beyond."""
        index = bisect.bisect_right(self._origins, position, key=_first) - 1
        if index < 0:
            return 0, 0
        first, offset, lengths = self._origins[index]
        if index == 0 and self._from_replace:
            return offset, lengths[0]
        place = min(position - first, len(lengths) - 1)
        return offset + sum(lengths[:place]) + place, lengths[place]

    def _line(self, raw: bytes, offset: int, *, ended: bool) -> None:
        if b"\x00" not in raw:
            self._segment(offset, raw, ended=ended)
            return
        for position, part, is_nul in around_nuls(raw, offset):
            if is_nul:
                length = len(part)
                text = f"{length} NUL bytes: space the disk allocated and never wrote"
                self.account.bad("nul", position, length, text)
            else:
                self._segment(position, part, ended=ended)

    def _segment(self, offset: int, raw: bytes, *, ended: bool) -> None:
        """One segment.  ``ended``: a separator follows it in the file."""
        if offset == 0 and raw.startswith(BOM):
            raw, offset = raw[len(BOM) :], len(BOM)
        line = decode_line(raw)
        if isinstance(line, BadLine):
            self._no_record(line, offset, raw, ended=ended)
        else:
            self._record(line, offset, raw)

    def _no_record(self, bad: BadLine, offset: int, raw: bytes, *, ended: bool) -> None:
        if not raw.strip(b" \t\r"):
            self.account.note("json", offset, max(len(raw), 1), "an empty line", settled=True)
            return
        whole = salvage(raw)
        if not whole:
            self._bad(bad, offset, raw, "" if ended else "; the file ends with them")
            return
        done = 0
        for start, end, record in whole:
            if start > done:
                self._bad_part(bad, offset + done, raw[done:start], "; a whole record was glued to it and counts")
            self._record(record, offset + start, raw[start:end])
            done = end
        if done < len(raw):
            self._bad_part(bad, offset + done, raw[done:], "" if ended else "; the file ends with them")

    def _bad_part(self, bad: BadLine, offset: int, raw: bytes, more: str) -> None:
        """A part of a bad segment, named by what it is alone."""
        alone = decode_line(raw)
        self._bad(alone if isinstance(alone, BadLine) else bad, offset, raw, more)

    def _bad(self, bad: BadLine, offset: int, raw: bytes, more: str) -> None:
        text = _describe(bad, raw) + more if self.account.lists(bad.kind) else ""
        self.account.bad(bad.kind, offset, len(raw), text)

    # --- records -----------------------------------------------------------------------------------------------

    def _next(self, message: Message, line: Line, offset: int, length: int) -> None:
        """Take a message about whose record there is nothing to say: what ``_record`` would do with it, in one step."""
        self.highest = n = self.highest + 1
        checksum = line.checksum
        self._origins.append((len(self.messages), offset, [length]))
        self._fresh.append((n, [checksum]))
        self.messages.append(message)
        self._previous = (n, checksum)
        if line.model:
            self._name_model(line, offset)
        self.records += 1
        self.records_end = offset + length
        self.sealed = True
        if self.account.bad_lines:
            self.account.no_gap()
        self._bare_marker = None

    def _record(self, line: Line, offset: int, raw: bytes) -> None:
        length = len(raw)
        self.records_end = offset + length
        if line.type == "session":
            self._session(line, offset, length)
            return
        self.records += 1
        if line.n is None:
            self.account.unknown_gap()
        elif not self._in_order(line, line.n, offset, raw):
            return
        if line.healed:
            text = "half a character (a lone surrogate) in it was replaced by U+FFFD"
            self.account.note("utf8", offset, length, text, settled=True)
        if line.type == "message":
            self._message(line, offset, length)
        elif line.type == "replace":
            self._replace(line, offset, raw)
        else:
            text = f"a record of unknown type {line.type!r}: kept on disk, skipped"
            self.account.note("unknown_entry", offset, length, text, settled=True)

    def _session(self, line: Line, offset: int, length: int) -> None:
        if self.header is None:
            self.header = line
        else:
            self.account.note("header", offset, length, "a second header; the first one counts", settled=True)

    def _message(self, line: Line, offset: int, length: int) -> None:
        if line.message is None:
            self.account.bad_lines += 1
            self.account.note("schema", offset, length, f"not a message: {line.problem}", settled=False)
            return
        self._origins.append((len(self.messages), offset, [length]))
        self.messages.append(line.message)
        if line.model:
            self._name_model(line, offset)
        self._bare_marker = None

    def _name_model(self, line: Line, offset: int) -> None:
        self.model = line.model
        if offset <= len(BOM):
            self.first_model = line.model

    def _replace(self, line: Line, offset: int, raw: bytes) -> None:
        length = len(raw)
        before = len(self.messages)
        snapshot = () if line.messages is UNSET else line.messages
        self.messages = list(snapshot)
        self._origins = [(0, offset, [length])] if snapshot else []
        self._from_replace = bool(snapshot)
        self.model = line.model or self.first_model
        self.replace_offset = offset
        self._previous = (0, 0) if line.n is None else (line.n, line.checksum)
        self._seen = {} if line.n is None else {line.n: line.checksum}
        self._fresh = []
        self._numbered = line.n is not None
        self.highest = line.n or 0
        self.account.no_gap()
        self._cuts = []
        self._bare_marker = (offset, length, before) if line.messages is UNSET else None

    def _in_order(self, line: Line, n: int, offset: int, raw: bytes) -> bool:
        """Note what the number says; False when the record is a duplicate and must be dropped."""
        self.sealed = True
        checksum = line.checksum
        previous, self._previous = self._previous, (n, checksum)
        if self._cuts and line.s is not None:
            covered = line.s
            self._cuts = [cut for cut in self._cuts if cut.missing > covered]
        if not self._numbered or n == self.highest + 1:
            self.account.no_gap()
        elif n <= self.highest:
            if self._is_duplicate(line, n, checksum, previous):
                text = f"record {n} a second time, the same bytes: dropped"
                self.account.note("duplicate", offset, len(raw), text, settled=True)
                return False
            text = f"record {n} comes after record {self.highest}, with other bytes: kept"
            self.account.note("conflict", offset, len(raw), text, settled=False)
        elif line.reason == "recover":
            self.account.no_gap()
        else:
            self._gap(line, n, offset)
        if line.type == "message":
            self._fresh.append((n, [checksum]))
        self._numbered = True
        self.highest = max(self.highest, n)
        return True

    def _is_duplicate(self, line: Line, n: int, checksum: int, previous: tuple[int, int]) -> bool:
        for first, checksums in self._fresh:
            self._seen.update(enumerate(checksums, first))
        self._fresh = []
        if self._seen.get(n) != checksum and previous != (n, checksum):
            return False
        return line.type != "replace" or previous[0] >= n

    def _gap(self, line: Line, n: int, offset: int) -> None:
        missing = self.highest + 1
        names = f"record {missing} is" if n == missing + 1 else f"records {missing} to {n - 1} are"
        hole = self.account.gap(offset, f"{names} missing before this")
        if line.s is not None and line.s < missing:
            self._cuts.append(_Cut(missing, len(self.messages), hole))

    # --- the end -----------------------------------------------------------------------------------------------

    def finish(self, *, ends_open: bool) -> tuple[Finding, ...]:
        """Apply what only the end of the log decides, and return all findings in file order."""
        if self._cuts:
            self._apply_cut(self._cuts[0])
        if self._bare_marker is not None:
            offset, length, before = self._bare_marker
            text = f"a bare replace marker cleared {before} messages and no snapshot follows it"
            self.account.note("incomplete_replace", offset, length, text, settled=False)
        return self.account.close(
            replaced_before=self.replace_offset, records_end=self.records_end, ends_open=ends_open
        )

    def _apply_cut(self, cut: _Cut) -> None:
        self.was_cut = True
        dropped = len(self.messages) - cut.messages
        self.messages = self.messages[: cut.messages]
        text = (
            f"record {cut.missing} and more were never acknowledged (batch durability) and are not there; "
            f"the history ends before them; what was written after them ({dropped} of the messages) was not acknowledged either"
        )
        for later in self._cuts:
            self.account.excuse(later.hole, text)


def _first(run: tuple[int, int, list[int]]) -> int:
    return run[0]


def _describe(bad: BadLine, raw: bytes) -> str:
    return _short_described(bad, raw) if len(raw) <= REMEMBERED_BYTES else _described(bad, raw)


def _described(bad: BadLine, raw: bytes) -> str:
    text = raw[: EXCERPT_CHARS * 4].decode("utf-8", errors="replace")[:EXCERPT_CHARS]
    more = "…" if len(raw) > EXCERPT_CHARS else ""
    return f"{len(raw)} bytes that are no record: {bad.why}; they begin {text!r}{more}"


_short_described = lru_cache(128)(_described)
