"""Build: the disk of a crash state, from nothing but the recording.

What is certified at a point is applied once; a state adds what it keeps of the rest, with one write torn.  Pure: recording and state in, disk out.
"""

from __future__ import annotations

import bisect

import msgspec

from simulator.crash import Pending, changes_of
from simulator.values import MUTATIONS, CrashState, Disk, Fill, Op, Recording, Tear

STALE = (b'\xa5stale\xa5{"type":"' * 64)[:1023] + b"\n"
"""What lay in a block before: no text, and a newline now and then."""

Key = tuple[int, tuple[int, ...], Tear | None, int | None]
"""Which certified changes, which pending ones, and how they arrived."""


def build_disk(recording: Recording, state: CrashState) -> Disk:
    """The disk of one crash state, from nothing but the recording."""
    return DiskBuilder(recording).build(state)


class _Base(msgspec.Struct):
    """What is certified at one crash point.  Points at which the same is share one, with its ``number``."""

    number: int
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
        self._pending = Pending(recording.ops)
        self._changes = changes_of(recording.ops)
        self._point: tuple[bool, int] | None = None
        self._current: _Base | None = None
        self._made_folders = frozenset(op.inode for op in recording.ops if op.kind == "mkdir")

    def key(self, state: CrashState) -> Key:
        """What the disk of a state is made of: states with equal keys leave equal disks."""
        base = self._base(state)
        kept = state.kept
        if state.model == "kill":
            kept = tuple([index for index in kept if index not in base.certified])
        return base.number, kept, state.tear, state.doubled

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
        point = (state.model == "kill", state.point)
        if self._current is None or self._point != point:
            self._point = point
            self._current = self._base_at(state.point, killed=point[0], before=self._current)
        return self._current

    def _base_at(self, point: int, *, killed: bool, before: _Base | None) -> _Base:
        ops = self._recording.ops
        waiting: set[int] = set() if killed else set(self._pending.at(point))
        late = _late(ops, point, waiting)
        left = waiting.union(late)
        changes = self._changes[: bisect.bisect_left(self._changes, point)]
        certified = [i for i in changes if i not in left] if left else changes
        if before is not None and before.late == late and before.certified == frozenset(certified):
            return before
        files: dict[int, bytes] = dict(self._recording.base.files)
        folders = {inode: dict(names) for inode, names in self._recording.base.folders.items()}
        for index in certified:
            _apply(ops[index], files, folders)
        number = 0 if before is None else before.number + 1
        return _Base(number, files, folders, frozenset(certified), late, {})


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
