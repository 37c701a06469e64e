"""Crash: from a recording, every state that a power cut or a kill could leave.  Pure: recording in, states out; ``build`` makes the disk of one.

Semantics are FAULT-MODEL.md §2.3.  A *certificate* is a sync that succeeded: ``fsync`` certifies all earlier writes and truncations of its inode,
``fsync_dir`` all earlier entries of its folder.  What happened before the crash point and is not certified is *pending*; so is the call
that the crash interrupted.  A crash state is everything certified plus one allowed choice over what is pending.

- ``kill``: the process dies, the machine does not.  Every finished call survives; of the interrupted write any prefix may.
- ``posix-min``: the least that POSIX promises.  Any subset of what is pending, in any combination across files and folders, with at most one
  write torn: cut short, followed by NUL or stale bytes up to a block boundary, or with its beginning missing.  A rename over a name is
  atomic; a rename across folders may show in both or in one, never in neither.  Bytes outside a write never change.

Tear points are ``classes`` by default (first and last byte, inside the first multi-byte character, one of each JSON structure kind, disk block
boundaries), ``every_byte``, or only the ``ends`` for a crash within a crash.  ``Bounds`` says what was left out and how much.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from simulator.values import MUTATIONS, CrashState, Op, Recording, Tear

Model = Literal["kill", "posix-min"]
Tears = Literal["classes", "every_byte", "ends"]
MODELS: tuple[Model, ...] = ("kill", "posix-min")

_LEADS = {2: re.compile(rb"[\xc0-\xdf]"), 3: re.compile(rb"[\xe0-\xef]"), 4: re.compile(rb"[\xf0-\xf7]")}
"""The first byte of a character of each width."""

BLOCK_BYTES = 4096
SECTOR_BYTES = 512
SUBSETS_ALL_UP_TO = 12
BOUNDARIES_MAX = 8
"""Of the block boundaries inside one long write, the first and last few are tear points; the rest are counted as left out."""


class Bounds(msgspec.Struct):
    """What the enumeration of one recording did not try."""

    subsets_left_out: int = 0
    tears_left_out: int = 0


def crash_states(
    recording: Recording, model: Model, *, tears: Tears = "classes", first_point: int = 0, bounds: Bounds | None = None
) -> Iterator[CrashState]:
    """Every crash state of ``model``, in a fixed order, from ``first_point`` on."""
    bounds = bounds if bounds is not None else Bounds()
    at_point = Pending(recording.ops)
    changes = changes_of(recording.ops)
    write_tears = _WriteTears(recording.ops, tears, bounds)
    for point in range(first_point, len(recording.ops) + 1):
        interrupted = point if point < len(recording.ops) and recording.ops[point].kind in MUTATIONS else None
        if interrupted is None and point and not _newly_visible(recording.ops, point, first_point):
            continue
        if model == "kill":
            done = tuple(changes[: bisect.bisect_left(changes, point)])
            yield from _kill_states(recording, point, done, interrupted, tears, bounds)
        else:
            waiting = at_point.at(point)
            if interrupted is not None:
                waiting.append(interrupted)
            yield from _power_states(recording.ops, point, waiting, write_tears)


def _newly_visible(ops: tuple[Op, ...], point: int, first_point: int) -> bool:
    """A point between calls differs from the one before it only if an issue, ack or certificate lies between them."""
    return point == first_point or ops[point - 1].kind not in ("close",)


# --- kill ------------------------------------------------------------------------------------------------------


def _kill_states(
    recording: Recording, point: int, done: tuple[int, ...], interrupted: int | None, tears: Tears, bounds: Bounds
) -> Iterator[CrashState]:
    yield CrashState("kill", point, done)
    if interrupted is None:
        return
    op = recording.ops[interrupted]
    if op.kind != "write":
        yield CrashState("kill", point, (*done, interrupted))
        return
    for kept in _tear_points(op, tears, bounds):
        yield CrashState("kill", point, (*done, interrupted), Tear(interrupted, "torn", kept, kept, "old"))
    yield CrashState("kill", point, (*done, interrupted))


# --- power -----------------------------------------------------------------------------------------------------


def _power_states(ops: tuple[Op, ...], point: int, waiting: list[int], tears: _WriteTears) -> Iterator[CrashState]:
    forced = _half_certified(ops, waiting, point)
    free = [i for i in waiting if i not in forced]
    for chosen in _subsets(free, tears.bounds):
        kept = tuple(sorted((*chosen, *forced))) if forced else chosen
        yield CrashState("posix-min", point, kept)
        for index in kept:
            op = ops[index]
            if op.kind == "rename" and op.parent != op.target_parent:
                yield CrashState("posix-min", point, kept, doubled=index)
            if op.kind == "write":
                for tear in tears.of(index):
                    yield CrashState("posix-min", point, kept, tear)


class _WriteTears:
    """The tears of each write, found once: a write is pending at many points."""

    def __init__(self, ops: tuple[Op, ...], tears: Tears, bounds: Bounds) -> None:
        self.bounds = bounds
        self._ops = ops
        self._tears = tears
        self._known: dict[int, tuple[list[Tear], int]] = {}

    def of(self, index: int) -> list[Tear]:
        found = self._known.get(index)
        if found is None:
            bounds = Bounds()
            tears = list(_tears_of(index, self._ops[index], self._tears, bounds))
            found = self._known[index] = (tears, bounds.tears_left_out)
        self.bounds.tears_left_out += found[1]
        return found[0]


def changes_of(ops: tuple[Op, ...]) -> list[int]:
    """Indexes of the calls that changed a disk."""
    return [index for index, op in enumerate(ops) if op.kind in MUTATIONS]


def pending(ops: tuple[Op, ...], point: int) -> list[int]:
    """Indexes of the changes before ``point`` that no sync before ``point`` certified."""
    return Pending(ops).at(point)


class Pending:
    """What is pending at each point of a run, for points that are asked for in order.

    A write that was in flight at a failed sync is never certified by a later one: the kernel may have dropped it and marked it clean.
    """

    def __init__(self, ops: tuple[Op, ...]) -> None:
        self._ops = ops
        self._restart()

    def _restart(self) -> None:
        self._point = 0
        self._data: list[int] = []
        self._names: list[int] = []
        self._doomed: list[int] = []

    def at(self, point: int) -> list[int]:
        """Indexes of the changes before ``point`` that no sync before ``point`` certified."""
        if point < self._point:
            self._restart()
        for index in range(self._point, point):
            self._pass(index)
        self._point = point
        return sorted([*self._data, *self._names, *self._doomed])

    def _pass(self, index: int) -> None:
        ops, op = self._ops, self._ops[index]
        if op.kind in ("write", "truncate"):
            self._data.append(index)
        elif op.kind in MUTATIONS:
            self._names.append(index)
        elif op.kind == "fsync":
            if op.error:
                self._doomed += [i for i in self._data if ops[i].inode == op.inode]
            self._data = [i for i in self._data if ops[i].inode != op.inode]
        elif op.kind == "fsync_dir" and not op.error:
            self._names = [i for i in self._names if not _certified_by(ops, i, index)]


def _certified_by(ops: tuple[Op, ...], entry: int, sync: int) -> bool:
    """Is the entry gone or come for good?  A rename is when its old folder is synced: it cannot be in neither."""
    return ops[sync].inode == ops[entry].parent


def _half_certified(ops: tuple[Op, ...], waiting: list[int], point: int) -> list[int]:
    """Renames across folders whose new folder alone was synced: the new name is there, the old one may be too."""
    return [
        i
        for i in waiting
        if ops[i].kind == "rename"
        and ops[i].parent != ops[i].target_parent
        and any(op.kind == "fsync_dir" and not op.error and op.inode == ops[i].target_parent for op in ops[i:point])
    ]


def _subsets(items: list[int], bounds: Bounds) -> Iterator[tuple[int, ...]]:
    """All subsets while they are few; else the shapes that find most: prefixes, and all but or only one or two."""
    if len(items) <= SUBSETS_ALL_UP_TO:
        for size in range(len(items) + 1):
            yield from itertools.combinations(items, size)
        return
    chosen: dict[tuple[int, ...], None] = {}
    for length in range(len(items) + 1):
        chosen[tuple(items[:length])] = None
        for left_out in range(length):
            chosen[tuple(items[:left_out] + items[left_out + 1 : length])] = None
    for size in (1, 2):
        for few in itertools.combinations(items, size):
            chosen[few] = None
            chosen[tuple(i for i in items if i not in few)] = None
    bounds.subsets_left_out += 2 ** len(items) - len(chosen)
    yield from chosen


def _tears_of(index: int, op: Op, tears: Tears, bounds: Bounds) -> Iterator[Tear]:
    """Torn at each point, and at 0: the file grew but nothing of the write arrived (FAULT-MODEL.md §3.2, first two rows)."""
    length = len(op.data)
    for kept in (0, *_tear_points(op, tears, bounds)):
        if kept:
            yield Tear(index, "torn", kept, kept, "nul")
            yield Tear(index, "hole", kept, length, "nul")
        for reach in (*_block_ends(op, kept, bounds), length):
            yield Tear(index, "torn", kept, reach, "nul")
            yield Tear(index, "torn", kept, reach, "stale")


def _block_ends(op: Op, kept: int, bounds: Bounds) -> list[int]:
    """Lengths of the write at which the file would end on a block boundary."""
    first = BLOCK_BYTES - op.offset % BLOCK_BYTES
    return _few([end for end in range(first, len(op.data), BLOCK_BYTES) if end > kept], 2, bounds)


def _tear_points(op: Op, tears: Tears, bounds: Bounds) -> list[int]:
    data, length = op.data, len(op.data)
    if tears == "every_byte":
        return list(range(1, length))
    points = {1, length - 1}
    if tears == "ends":
        return sorted(point for point in points if 0 < point < length)
    for structure in (b"{", b"}", b"[", b"]", b":", b",", b'"', b"\\"):
        found = data.find(structure)
        if found >= 0:
            points.add(found + 1)
    for middle in _inside_characters(data):
        points.add(middle)
    sectors = range(SECTOR_BYTES - op.offset % SECTOR_BYTES, length, SECTOR_BYTES)
    blocks = range(BLOCK_BYTES - op.offset % BLOCK_BYTES, length, BLOCK_BYTES)
    points.update(_few(list(sectors), BOUNDARIES_MAX, bounds))
    points.update(_few(list(blocks), BOUNDARIES_MAX, bounds))
    return sorted(point for point in points if 0 < point < length)


def _inside_characters(data: bytes) -> list[int]:
    """The points inside the first multi-byte character of each width."""
    found = [(lead.search(data), width) for width, lead in _LEADS.items()]
    return [match.start() + step for match, width in found if match is not None for step in range(1, width)]


def _few(items: list[int], most: int, bounds: Bounds) -> list[int]:
    if len(items) <= most:
        return items
    bounds.tears_left_out += len(items) - most
    half = most // 2
    return items[:half] + items[-half:]
