"""Findings: the account of what is wrong with a log, kept small however much is wrong with it.

A bad line is first of all *waiting*: whether it is the ended tear of a write that was never acknowledged (a settled note) or damage is told by
the next numbered record, through its number.  Bytes behind the last record may be a tear that nothing has ended yet; only the end of the log
tells.  A whole replace settles everything before it, because the history it set does not depend on what was there.

Of each kind the first ``EACH_MAX`` are listed one by one; the rest are counted in one closing finding of that kind, so that a log of garbage costs
no more memory than a good one.
"""

from __future__ import annotations

from typing import Literal

import msgspec

FindingKind = Literal[
    "torn", "nul", "utf8", "json", "schema", "crc", "header", "gap", "duplicate", "conflict",
    "unknown_entry", "incomplete_replace", "missing_spill", "repair",
]  # fmt: skip

EACH_MAX = 100
_TEAR_KINDS = frozenset({"torn", "incomplete_replace", "nul"})


class Finding(msgspec.Struct, frozen=True, gc=False):
    """One thing a reader should know about the bytes at ``offset``.

    ``settled``: nothing is to be done about it - a whole replace follows it, or it is the ended tear of an unacknowledged write.
    ``text`` says in words what it means and, where something readable was lost, quotes it.
    """

    kind: FindingKind
    offset: int
    length: int
    settled: bool
    text: str


class BadLine(msgspec.Struct, frozen=True):
    """Bytes that are no record, and why."""

    kind: FindingKind
    why: str


class _Draft(msgspec.Struct, gc=False):
    """A finding in the making.  ``excused``: not settled yet, but nothing that was ever acknowledged is lost by it."""

    kind: FindingKind
    offset: int
    length: int
    text: str
    settled: bool
    excused: bool = False


class _Rest(msgspec.Struct):
    """The findings of one kind beyond the listed ones, as numbers."""

    first: int
    count: int = 0
    bytes: int = 0
    unsettled: int = 0
    unsettled_last: int = -1
    waiting: int = 0
    waiting_last: int = -1


class Hole(msgspec.Struct):
    """A gap, with the bad lines that lie in it."""

    offset: int
    drafts: list[_Draft]


class Account:
    """Takes findings in file order; ``close`` gives them back when the end of the log is known."""

    def __init__(self) -> None:
        self.bad_lines = 0
        self.damaged = False
        """After ``close``: something that may have been acknowledged is lost and nothing has made up for it."""
        self._drafts: list[_Draft] = []
        self._listed: dict[FindingKind, int] = {}
        self._rest: dict[FindingKind, _Rest] = {}
        self._waiting: list[_Draft] = []

    # --- in file order -----------------------------------------------------------------------------------------

    def note(self, kind: FindingKind, offset: int, length: int, text: str, *, settled: bool) -> None:
        """A finding whose meaning is known."""
        if self._add(kind, offset, length, text, settled) is None and not settled:
            rest = self._rest[kind]
            rest.unsettled += 1
            rest.unsettled_last = offset

    def lists(self, kind: FindingKind) -> bool:
        """Whether the next finding of this kind is listed, so that its text is worth making."""
        return self._listed.get(kind, 0) < EACH_MAX

    def bad(self, kind: FindingKind, offset: int, length: int, text: str) -> None:
        """Bytes that are no record; the next numbered record tells what they were."""
        self.bad_lines += 1
        draft = self._add(kind, offset, length, text, False)
        if draft is not None:
            self._waiting.append(draft)
        else:
            rest = self._rest[kind]
            rest.waiting += 1
            rest.waiting_last = offset

    def no_gap(self) -> None:
        """The next record follows without a gap: what waits is the ended tear of a write that was never acknowledged."""
        if not self.bad_lines:
            return
        for draft in self._waiting:
            draft.settled = True
        self._waiting = []
        for rest in self._rest.values():
            rest.waiting = 0

    def unknown_gap(self) -> None:
        """A record without a number follows: nothing says that what waits was never acknowledged."""
        self._waiting = []
        for rest in self._rest.values():
            if rest.waiting:
                rest.unsettled += rest.waiting
                rest.unsettled_last = rest.waiting_last
                rest.waiting = 0

    def gap(self, offset: int, text: str) -> Hole:
        """Records are missing before ``offset``; what waits is where they stood."""
        drafts = self._waiting
        self.unknown_gap()
        draft = self._add("gap", offset, 0, text, False)
        if draft is None:
            self._rest["gap"].unsettled += 1
            self._rest["gap"].unsettled_last = offset
            return Hole(offset, drafts)
        return Hole(offset, [*drafts, draft])

    def excuse(self, hole: Hole, text: str) -> None:
        """What lay in ``hole`` was never acknowledged."""
        for draft in hole.drafts:
            draft.excused = True
            if draft.kind == "gap":
                draft.text = text

    def _add(self, kind: FindingKind, offset: int, length: int, text: str, settled: bool) -> _Draft | None:
        listed = self._listed.get(kind, 0)
        if listed < EACH_MAX:
            self._listed[kind] = listed + 1
            draft = _Draft(kind, offset, length, text, settled)
            self._drafts.append(draft)
            return draft
        rest = self._rest.get(kind)
        if rest is None:
            rest = self._rest[kind] = _Rest(offset)
        rest.count += 1
        rest.bytes += length
        return None

    # --- at the end --------------------------------------------------------------------------------------------

    def close(self, *, replaced_before: int, records_end: int, ends_open: bool) -> tuple[Finding, ...]:
        """All findings, in file order.

        ``replaced_before``: offset of the last whole replace; ``records_end``: where the last record ends; ``ends_open``: the last line has
        no end.
        """
        self.unknown_gap()
        if not self._drafts:
            return ()
        found = []
        for draft in self._drafts:
            settled = draft.settled or draft.offset < replaced_before + (draft.kind == "gap")
            found.append(Finding(draft.kind, draft.offset, draft.length, settled, draft.text))
            tail = draft.offset >= records_end and (ends_open or draft.kind in _TEAR_KINDS)
            self.damaged = self.damaged or not (settled or draft.excused or tail)
        for kind, rest in self._rest.items():
            settled = not rest.unsettled or rest.unsettled_last < replaced_before
            found.append(Finding(kind, rest.first, rest.bytes, settled, _rest_text(rest)))
            self.damaged = self.damaged or not settled
        return tuple(sorted(found, key=_offset_of)) if self._rest else tuple(found)


def _offset_of(finding: Finding) -> int:
    return finding.offset


def _rest_text(rest: _Rest) -> str:
    return (
        f"{rest.count:,} more of this kind from here on, {rest.bytes:,} bytes in all, "
        f"{rest.unsettled:,} of them not settled when they were found; only the first {EACH_MAX} are listed one by one"
    )
