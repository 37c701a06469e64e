"""Crash: from a recording, every disk that a power cut or a kill could leave.  Pure: recording in, disks out.

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

import itertools
from collections.abc import Iterator
from typing import Literal

import msgspec

from simulator.values import MUTATIONS, CrashState, Disk, Fill, Op, Recording, Tear

Model = Literal["kill", "posix-min"]
Tears = Literal["classes", "every_byte", "ends"]
MODELS: tuple[Model, ...] = ("kill", "posix-min")

BLOCK_BYTES = 4096
SECTOR_BYTES = 512
SUBSETS_ALL_UP_TO = 12
BOUNDARIES_MAX = 8
"""Of the block boundaries inside one long write, the first and last few are tear points; the rest are counted as left out."""
STALE = (b'\xa5stale\xa5{"type":"' * 64)[:1023] + b"\n"
"""What lay in a block before: no text, and a newline now and then."""


class Bounds(msgspec.Struct):
    """What the enumeration of one recording did not try."""

    subsets_left_out: int = 0
    tears_left_out: int = 0


def crash_states(
    recording: Recording, model: Model, *, tears: Tears = "classes", first_point: int = 0, bounds: Bounds | None = None
) -> Iterator[CrashState]:
    """Every crash state of ``model``, in a fixed order, from ``first_point`` on."""
    bounds = bounds if bounds is not None else Bounds()
    for point in range(first_point, len(recording.ops) + 1):
        interrupted = point if point < len(recording.ops) and recording.ops[point].kind in MUTATIONS else None
        if interrupted is None and point and not _newly_visible(recording.ops, point, first_point):
            continue
        if model == "kill":
            yield from _kill_states(recording, point, interrupted, tears, bounds)
        else:
            yield from _power_states(recording, point, interrupted, tears, bounds)


def _newly_visible(ops: tuple[Op, ...], point: int, first_point: int) -> bool:
    """A point between calls differs from the one before it only if an issue, ack or certificate lies between them."""
    return point == first_point or ops[point - 1].kind not in ("close",)


# --- kill ------------------------------------------------------------------------------------------------------


def _kill_states(
    recording: Recording, point: int, interrupted: int | None, tears: Tears, bounds: Bounds
) -> Iterator[CrashState]:
    done = tuple(i for i in range(point) if recording.ops[i].kind in MUTATIONS)
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


def _power_states(
    recording: Recording, point: int, interrupted: int | None, tears: Tears, bounds: Bounds
) -> Iterator[CrashState]:
    waiting = pending(recording.ops, point)
    if interrupted is not None:
        waiting = [*waiting, interrupted]
    forced = _half_certified(recording.ops, waiting, point)
    free = [i for i in waiting if i not in forced]
    for chosen in _subsets(free, bounds):
        kept = tuple(sorted((*chosen, *forced)))
        yield CrashState("posix-min", point, kept)
        for index in kept:
            op = recording.ops[index]
            if op.kind == "rename" and op.parent != op.target_parent:
                yield CrashState("posix-min", point, kept, doubled=index)
            if op.kind == "write":
                for tear in _tears_of(index, op, tears, bounds):
                    yield CrashState("posix-min", point, kept, tear)


def pending(ops: tuple[Op, ...], point: int) -> list[int]:
    """Indexes of the changes before ``point`` that no sync before ``point`` certified.

    A write that was in flight at a failed sync is never certified by a later one: the kernel may have dropped it and marked it clean.
    """
    open_data: list[int] = []
    open_names: list[int] = []
    doomed: list[int] = []
    for index in range(point):
        op = ops[index]
        if op.kind in ("write", "truncate"):
            open_data.append(index)
        elif op.kind in MUTATIONS:
            open_names.append(index)
        elif op.kind == "fsync":
            mine = [i for i in open_data if ops[i].inode == op.inode]
            open_data = [i for i in open_data if ops[i].inode != op.inode]
            if op.error:
                doomed += mine
        elif op.kind == "fsync_dir" and not op.error:
            open_names = [i for i in open_names if not _certified_by(ops, i, index)]
    return sorted([*open_data, *open_names, *doomed])


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
    points: list[int] = []
    for lead, width in ((0xC0, 2), (0xE0, 3), (0xF0, 4)):
        mask = 0xE0 if width == 2 else 0xF0 if width == 3 else 0xF8
        found = next((i for i, byte in enumerate(data) if byte & mask == lead), None)
        if found is not None:
            points += [found + step for step in range(1, width)]
    return points


def _few(items: list[int], most: int, bounds: Bounds) -> list[int]:
    if len(items) <= most:
        return items
    bounds.tears_left_out += len(items) - most
    half = most // 2
    return items[:half] + items[-half:]


# --- building a disk -------------------------------------------------------------------------------------------


def build_disk(recording: Recording, state: CrashState) -> Disk:
    """The disk of one crash state, from nothing but the recording."""
    return DiskBuilder(recording).build(state)


class _Base(msgspec.Struct):
    """What is certified at one crash point."""

    key: tuple[bool, int]
    files: dict[int, bytes]
    folders: dict[int, dict[str, int]]
    certified: frozenset[int]
    late: tuple[int, ...]
    """Certified changes of what a pending change before them touches: applied with the kept ones, in order."""
    names: dict[tuple[int, ...], dict[int, dict[str, int]]]
    """Folders after some of the pending entries were applied; most states of a point share them."""


class DiskBuilder:
    """Builds many disks of one recording.  States that differ only in file contents share their folders, as the same object."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._current: _Base | None = None
        self._made_folders = frozenset(op.inode for op in recording.ops if op.kind == "mkdir")

    def build(self, state: CrashState) -> Disk:
        ops = self._recording.ops
        base = self._base(state)
        files: dict[int, bytes] = dict(base.files)
        entries: list[int] = []
        for index in sorted((*state.kept, *base.late)) if base.late else state.kept:
            if index in base.certified:
                continue
            op = ops[index]
            if op.kind == "write":
                tear = state.tear if state.tear is not None and state.tear.op == index else None
                files[op.inode] = _written(files.get(op.inode, b""), op, tear)
            elif op.kind == "truncate":
                files[op.inode] = _truncated(files.get(op.inode, b""), op)
            else:
                entries.append(index)
                if (
                    op.kind in ("create", "rename")
                    and op.inode not in base.folders
                    and op.inode not in self._made_folders
                ):
                    files.setdefault(op.inode, b"")
        return Disk(files, self._folders(base, entries, state.doubled))

    def _folders(self, base: _Base, entries: list[int], doubled: int | None) -> dict[int, dict[str, int]]:
        key = (*entries, -1 if doubled is None else doubled)
        found = base.names.get(key)
        if found is None:
            found = {inode: dict(names) for inode, names in base.folders.items()}
            for index in entries:
                op = self._recording.ops[index]
                if op.inode in self._made_folders:
                    found.setdefault(op.inode, {})
                _apply_entry(op, found, twice=index == doubled)
            base.names[key] = found
        return found

    def _base(self, state: CrashState) -> _Base:
        key = (state.model == "kill", state.point)
        if self._current is None or self._current.key != key:
            ops, point = self._recording.ops, state.point
            waiting: set[int] = set() if state.model == "kill" else set(pending(ops, point))
            files: dict[int, bytes] = dict(self._recording.base.files)
            folders = {inode: dict(names) for inode, names in self._recording.base.folders.items()}
            late = _late(ops, point, waiting)
            left = waiting | set(late)
            certified = [i for i in range(point) if ops[i].kind in MUTATIONS and i not in left]
            for index in certified:
                _apply(ops[index], files, folders)
            self._current = _Base(key, files, folders, frozenset(certified), late, {})
        return self._current


def _late(ops: tuple[Op, ...], point: int, waiting: set[int]) -> tuple[int, ...]:
    """The certified changes that must come after a pending one, because both, or others between, touch the same bytes or name."""
    touched: dict[tuple[int, str], None] = {}
    late: list[int] = []
    for index in range(min(waiting, default=point), point):
        op = ops[index]
        if op.kind not in MUTATIONS:
            continue
        things = _touches(op)
        if index not in waiting:
            if not any(thing in touched for thing in things):
                continue
            late.append(index)
        touched.update(dict.fromkeys(things))
    return tuple(late)


def _touches(op: Op) -> list[tuple[int, str]]:
    """The bytes of an inode (no name), or names in folders."""
    if op.kind in ("write", "truncate"):
        return [(op.inode, "")]
    if op.kind == "rename":
        return [(op.parent, op.name), (op.target_parent, op.target_name)]
    return [(op.parent, op.name)]


def _apply(op: Op, files: dict[int, bytes], folders: dict[int, dict[str, int]]) -> None:
    if op.kind == "write":
        files[op.inode] = _written(files.get(op.inode, b""), op, None)
    elif op.kind == "truncate":
        files[op.inode] = _truncated(files.get(op.inode, b""), op)
    else:
        if op.kind == "create":
            files.setdefault(op.inode, b"")
        _apply_entry(op, folders)


def _truncated(data: bytes, op: Op) -> bytes:
    return data[: op.size] + bytes(max(0, op.size - len(data)))


def _apply_entry(op: Op, folders: dict[int, dict[str, int]], *, twice: bool = False) -> None:
    """Apply one change of a name.  ``twice``: a rename whose old name is still there."""
    names = folders.setdefault(op.parent, {})
    if op.kind == "create":
        names[op.name] = op.inode
    elif op.kind == "mkdir":
        folders.setdefault(op.inode, {})
        names[op.name] = op.inode
    elif op.kind == "rename":
        if names.get(op.name) == op.inode and not twice:
            del names[op.name]
        folders.setdefault(op.target_parent, {})[op.target_name] = op.inode
    elif names.get(op.name) == op.inode:
        del names[op.name]


def _written(data: bytes, op: Op, tear: Tear | None) -> bytes:
    start = op.offset
    if len(data) < start:
        data = data + bytes(start - len(data))
    new = op.data if tear is None else _torn(data, op, tear)
    return data[:start] + new + data[start + len(new) :] if start + len(new) < len(data) else data[:start] + new


def _torn(data: bytes, op: Op, tear: Tear) -> bytes:
    if tear.shape == "hole":
        return bytes(tear.kept) + op.data[tear.kept :]
    missing = tear.reach - tear.kept
    return op.data[: tear.kept] + _filler(tear.fill, missing, data[op.offset + tear.kept : op.offset + tear.reach])


def _filler(fill: Fill, count: int, old: bytes) -> bytes:
    if fill == "old":
        return old[:count]
    fresh = bytes(count) if fill == "nul" else (STALE * (count // len(STALE) + 1))[:count]
    return old[:count] + fresh[len(old[:count]) :]
