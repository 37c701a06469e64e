"""What a crash may leave, computed the slow way: every fate of every call, applied from the first call on.

Written from FAULT-MODEL.md §2.3 and not from ``simulator/crash.py``, of which it uses nothing but the text of a stale block.  A state has
at most one oddity: a torn write, or a rename across folders that shows under both names.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from simulator.build import STALE
from simulator.values import ROOT, Disk, Op

DATA = ("write", "truncate")
NAMES = ("create", "mkdir", "rename", "unlink", "rmdir")
BLOCK = 4096
Tree = tuple[tuple[str, bytes | None], ...]
Write = Callable[[bytes, Op], bytes]


def power_trees(base: Disk, ops: tuple[Op, ...]) -> set[Tree]:
    """Every visible tree that a power cut at any point may leave."""
    found: set[Tree] = set()
    for point in range(len(ops) + 1):
        upto = [i for i in range(min(point + 1, len(ops))) if ops[i].kind in DATA + NAMES]
        for fates in itertools.product(*(_fates(ops, i, point) for i in upto)):
            if sum(fate == "both" for fate in fates) > 1:
                continue
            chosen = dict(zip(upto, fates, strict=True))
            found.add(_tree(base, ops, chosen, {}))
            if "both" in fates:
                continue
            for i in upto:
                if chosen[i] == "yes" and ops[i].kind == "write" and not _durable(ops, i, point):
                    found |= {_tree(base, ops, chosen, {i: torn}) for torn in _torn_writes(ops[i])}
    return found


def kill_trees(base: Disk, ops: tuple[Op, ...]) -> set[Tree]:
    """Every visible tree that the death of the process may leave: all that was done, and any beginning of a write in flight."""
    found: set[Tree] = set()
    for point in range(len(ops) + 1):
        done = {i: "yes" for i in range(point) if ops[i].kind in DATA + NAMES}
        found.add(_tree(base, ops, done, {}))
        if point < len(ops) and ops[point].kind == "write":
            for kept in range(1, len(ops[point].data)):
                found.add(_tree(base, ops, {**done, point: "yes"}, {point: _prefix(kept)}))
    return found


def _fates(ops: tuple[Op, ...], index: int, point: int) -> tuple[str, ...]:
    op = ops[index]
    if _durable(ops, index, point):
        return ("yes",)
    if op.kind == "rename" and op.parent != op.target_parent:
        return ("yes", "both") if _synced(ops, index, point, op.target_parent) else ("no", "yes", "both")
    return ("no", "yes")


def _durable(ops: tuple[Op, ...], index: int, point: int) -> bool:
    """Data: the first sync of its inode afterwards worked.  Names: a sync of the folder they were in worked."""
    op = ops[index]
    if op.kind in DATA:
        first = next((o for o in ops[index + 1 : point] if o.kind == "fsync" and o.inode == op.inode), None)
        return first is not None and not first.error
    return _synced(ops, index, point, op.parent)


def _synced(ops: tuple[Op, ...], index: int, point: int, folder: int) -> bool:
    return any(o.kind == "fsync_dir" and o.inode == folder and not o.error for o in ops[index + 1 : point])


def _tree(base: Disk, ops: tuple[Op, ...], fates: dict[int, str], writes: dict[int, Write]) -> Tree:
    files = dict(base.files)
    names = {(folder, name): inode for folder, entries in base.folders.items() for name, inode in entries.items()}
    folders = set(base.folders) | {op.inode for op in ops if op.kind == "mkdir"}
    for index in sorted(fates):
        op = ops[index]
        if fates[index] == "no":
            continue
        before = files.get(op.inode, b"")
        if op.kind == "write":
            files[op.inode] = writes.get(index, _whole)(before, op)
        elif op.kind == "truncate":
            files[op.inode] = before[: op.size].ljust(op.size, b"\0")
        elif op.kind in ("create", "mkdir"):
            names[op.parent, op.name] = op.inode
        else:
            if names.get((op.parent, op.name)) == op.inode and fates[index] != "both":
                del names[op.parent, op.name]
            if op.kind == "rename":
                names[op.target_parent, op.target_name] = op.inode
    return tuple(sorted(_walk("", ROOT, files, names, folders), key=lambda entry: entry[0]))


def _walk(
    path: str, folder: int, files: dict[int, bytes], names: dict[tuple[int, str], int], folders: set[int]
) -> Iterator[tuple[str, bytes | None]]:
    for (parent, name), inode in names.items():
        if parent == folder:
            inside = f"{path}/{name}"
            yield inside, None if inode in folders else files.get(inode, b"")
            if inode in folders:
                yield from _walk(inside, inode, files, names, folders)


# --- writes ----------------------------------------------------------------------------------------------------


def _placed(before: bytes, offset: int, piece: bytes) -> bytes:
    padded = before.ljust(offset, b"\0")
    return padded[:offset] + piece + padded[offset + len(piece) :]


def _whole(before: bytes, op: Op) -> bytes:
    return _placed(before, op.offset, op.data)


def _prefix(kept: int) -> Write:
    return lambda before, op: _placed(before, op.offset, op.data[:kept])


def _torn_writes(op: Op) -> Iterator[Write]:
    length = len(op.data)
    for kept in range(length):
        blocks = [z for z in range(kept + 1, length) if (op.offset + z) % BLOCK == 0]
        for reach, stale in itertools.product((kept, *blocks, length), (False, True)):
            if reach:
                yield _short(kept, reach, stale)
        if kept:
            yield _hole(kept)


def _short(kept: int, reach: int, stale: bool) -> Write:
    def write(before: bytes, op: Op) -> bytes:
        old = before[op.offset + kept : op.offset + reach]
        missing = reach - kept
        fresh = (STALE * (missing // len(STALE) + 1))[:missing] if stale else bytes(missing)
        return _placed(before, op.offset, op.data[:kept] + old + fresh[len(old) :])

    return write


def _hole(kept: int) -> Write:
    return lambda before, op: _placed(before, op.offset, bytes(kept) + op.data[kept:])
