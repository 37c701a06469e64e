"""One update of both stores on the simulated disk, and what must hold of every disk that a crash can leave of it."""

from __future__ import annotations

from collections.abc import Iterator

from pseudoclaude.memory import MemoryManager
from pseudoclaude.memory.index import linked_slugs
from pseudoclaude.memory.notes import parse
from simulator.build import DiskBuilder
from simulator.crash import Model, crash_states
from simulator.disk import FaultPlan, OpLog, SimFileSystem
from simulator.values import CrashState, Disk, Recording
from tests.memory.build import TURN, answer, manager, operation

PROJECT, USER = "/project/.pseudoclaude/memory", "/home/memory"
HAND_LINES = {PROJECT: "Always run the linter first.", USER: "Call me Ann."}
FIRST = answer(
    operation("create", "project", "build", "make"),
    operation("create", "project", "layout", "src and tests"),
    operation("create", "user", "tabs", "likes tabs"),
    operation("create", "user", "tone", "short answers"),
)
SECOND = answer(
    operation("update", "project", "build", "make -j2"),
    operation("create", "project", "deploy", "by tag, größer als 世界"),
    operation("delete", "user", "tabs"),
    operation("create", "user", "spaces", "likes spaces"),
)

Bodies = dict[str, dict[str, str]]
OLD: Bodies = {
    PROJECT: {"build": "make", "layout": "src and tests"},
    USER: {"tabs": "likes tabs", "tone": "short answers"},
}
NEW: Bodies = {
    PROJECT: {"build": "make -j2", "deploy": "by tag, größer als 世界", "layout": "src and tests"},
    USER: {"spaces": "likes spaces", "tone": "short answers"},
}


def base_disk() -> Disk:
    """Both stores with notes, and a line by hand in each index; everything durable."""
    fs = SimFileSystem()
    fs.mkdir("/project")
    made = manager("", FIRST, fs=fs)
    made.update_async(TURN, session_id="s0", range=(1, 2))
    for folder, line in HAND_LINES.items():
        append(fs, f"{folder}/MEMORY.md", f"{line}\n".encode())
    assert not made.take_reports()
    return fs.disk()


def append(fs: SimFileSystem, path: str, data: bytes) -> None:
    fd = fs.open(path, "append")
    fs.write(fd, data)
    fs.fsync(fd)
    fs.close(fd)


def read(fs: SimFileSystem, path: str) -> bytes:
    fd = fs.open(path, "read")
    try:
        return fs.pread(fd, 1 << 20, 0)
    finally:
        fs.close(fd)


def updated(fs: SimFileSystem) -> MemoryManager:
    """Run the second update on a disk."""
    made = manager("", SECOND, fs=fs)
    made.update_async(TURN, session_id="s1", range=(1, 2))
    return made


def recovered(fs: SimFileSystem) -> MemoryManager:
    """Start on a disk."""
    made = manager("", SECOND, fs=fs)
    made.refresh_index()
    return made


def recording(base: Disk, log: OpLog) -> Recording:
    return Recording("memory", "", 0, "", base, tuple(log.ops), (), "anthropic", "always")


def bodies(fs: SimFileSystem) -> Bodies:
    found: Bodies = {}
    for folder in (PROJECT, USER):
        names = sorted(name for name in fs.listdir(folder) if name.endswith(".md") and name != "MEMORY.md")
        found[folder] = {name[:-3]: parse(name[:-3], read(fs, f"{folder}/{name}")).body for name in names}
    return found


def fault_in(fs: SimFileSystem) -> str:
    """What is wrong with a started disk; empty when nothing is."""
    found = bodies(fs)
    if found not in (OLD, NEW):
        return f"neither old nor new: {found}"
    for folder, notes in found.items():
        index = read(fs, f"{folder}/MEMORY.md").decode("utf-8")
        if sorted(linked_slugs(index)) != sorted(notes):
            return f"{folder}: lines {linked_slugs(index)} for notes {sorted(notes)}"
        if HAND_LINES[folder] not in index.split("\n"):
            return f"{folder}: the line by hand is gone"
        left = [name for name in fs.listdir(folder) if name.startswith((".aside", "journal-"))]
        if left:
            return f"{folder}: left behind {left}"
    return ""


def states(taken: Recording, model: Model) -> Iterator[tuple[CrashState, Disk]]:
    """Every crash state once per disk that can be seen."""
    builder = DiskBuilder(taken)
    seen: set[int] = set()
    for state in crash_states(taken, model):
        disk = builder.build(state)
        key = hash(visible(disk))
        if key not in seen:
            seen.add(key)
            yield state, disk


def visible(disk: Disk, inode: int = 1) -> tuple[object, ...]:
    """Names and contents, whatever the inodes."""
    entries: list[object] = []
    for name, child in sorted(disk.folders[inode].items()):
        entries.append((name, visible(disk, child) if child in disk.folders else disk.files.get(child, b"")))
    return tuple(entries)


def faulty(base: Disk, plan: FaultPlan, log: OpLog | None = None) -> SimFileSystem:
    return SimFileSystem(base, log=log, faults=plan)
