"""The vocabulary of the pipeline.  Every stage takes one of these and returns the next; none of them does anything.

    Scenario -> World -> Recording -> CrashState x N -> Recovered -> Verdict x oracles -> report

A Recording is the whole evidence of one run: the disk it began with, every call the product made to it (with the product's own
line that made it), and, in the same log, when a change of a history was *issued* and when it was *acknowledged*.  All that comes
after is computed from it, so any verdict can be computed again.

The disk is two kinds of object, as on a real one: inodes (bytes) and folders (name -> inode).  A write belongs to an inode, a
name to a folder; that is why a file can be durable without its name, or named without its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pseudoclaude.messages import History, Message

ROOT = 1
"""Inode of ``/``."""

OpKind = Literal[
    "create", "mkdir", "write", "truncate", "rename", "unlink", "rmdir", "fsync", "fsync_dir", "close", "issue", "ack"
]  # fmt: skip

MUTATIONS: frozenset[OpKind] = frozenset({"create", "mkdir", "write", "truncate", "rename", "unlink", "rmdir"})


class Disk(msgspec.Struct, frozen=True):
    """Files and folders by inode.  Treated as immutable: stages copy before they change."""

    files: Mapping[int, bytes]
    folders: Mapping[int, Mapping[str, int]]

    @classmethod
    def empty(cls) -> Disk:
        return cls(files={}, folders={ROOT: {}})


class Mark(msgspec.Struct, frozen=True):
    """What an ``issue`` or ``ack`` speaks of: the ``step``-th change of the history of the session in ``folder``.

    ``durable``: the product promised that it survives a power loss; otherwise only that it survives the death of the process.
    Memory's changes stand under ``MEMORY``, turns handed over to it under ``TURNS``.
    """

    folder: str
    step: int
    durable: bool = True


class Op(msgspec.Struct, frozen=True):
    """One call, as it took effect.  ``site`` is the product's ``file:line``; ``error`` an errno name if the call failed.

    ``inode`` is the file written, synced or named; ``parent``/``name`` the entry that changed, ``target_*`` where a rename went.  A
    failed write with ``data`` wrote that much before it failed.
    """

    kind: OpKind
    site: str = ""
    inode: int = 0
    parent: int = 0
    name: str = ""
    offset: int = 0
    data: bytes = b""
    size: int = 0
    target_parent: int = 0
    target_name: str = ""
    error: str = ""
    mark: Mark | None = None


class SessionRecord(msgspec.Struct, frozen=True):
    """All histories one session went through.  ``histories[k]`` is the history after ``k`` changes; ``[0]`` is before the first."""

    folder: str
    histories: tuple[History, ...]
    replaces: frozenset[int] = frozenset()
    """The steps that replaced the whole history."""


class RequestSeen(msgspec.Struct, frozen=True):
    """What the model was given in one request of the run."""

    purpose: str
    system: str
    messages: History


Notes = Mapping[str, bytes]
"""The ``.md`` files of both stores of memory, by path."""


class Prompt(msgspec.Struct, frozen=True):
    """The system prompt with which one process began, before request number ``first_request`` (from 0).

    ``notes``: what stood in both stores when a new session's prompt was made; None for a session that was resumed.
    """

    folder: str
    first_request: int
    system: str
    notes: Notes | None


MEMORY = "memory"
TURNS = "memory/turns"


class HandEdit(msgspec.Struct, frozen=True):
    """What a person saved in a store, as change ``step``.  ``data`` None: removed.  ``meanwhile``: while an update was under way."""

    step: int
    path: str
    data: bytes | None
    meanwhile: bool = False


class MemoryTurn(msgspec.Struct, frozen=True):
    """A turn handed over to memory: what the model is asked about it, what it answered (None: it never did), and the change of the
    stores that came of it (0: none in this run)."""

    asked: str
    answer: str | None = None
    step: int = 0


class MemoryRecord(msgspec.Struct, frozen=True):
    """Both stores of memory over one run.  ``states[k]`` is what a start makes of them after ``k`` changes; a change is a start, an update or an
    edit, and may change nothing.

    ``folders``: the project's store, the user's.  ``reports``: all that the user was told.
    """

    folders: tuple[str, str]
    states: tuple[Notes, ...]
    edits: tuple[HandEdit, ...]
    turns: tuple[MemoryTurn, ...]
    reports: tuple[str, ...]
    lines_max: int
    bytes_max: int


class Recording(msgspec.Struct, frozen=True):
    """One run of the real product on the simulated disk."""

    scenario: str
    content_hash: str
    seed: int
    variant: str
    base: Disk
    ops: tuple[Op, ...]
    sessions: tuple[SessionRecord, ...]
    dialect: str
    durability: str
    originals: Mapping[str, str] = {}
    """SHA-256 of each full tool output -> the text, for results that may have been spilled."""
    facts: Mapping[str, int] = {}
    violations: tuple[str, ...] = ()
    """What the provider would have refused in the requests of the run itself."""
    requests: tuple[RequestSeen, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    spoken: tuple[str, ...] = ()
    """What the user, the model and the tools said themselves."""
    memory: MemoryRecord | None = None


Fill = Literal["nul", "stale", "old"]


class Tear(msgspec.Struct, frozen=True, gc=False):
    """One write that reached the disk in part.

    ``torn``: the first ``kept`` bytes are right, the file grew to ``reach`` bytes of the write, and between them lies ``fill``.
    ``hole``: the first ``kept`` bytes are NUL and the rest is right.
    """

    op: int
    shape: Literal["torn", "hole"]
    kept: int
    reach: int
    fill: Fill


class CrashState(msgspec.Struct, frozen=True, gc=False):
    """What survived: everything certified before ``point``, the ``kept`` ones of what was pending, one write perhaps torn."""

    model: str
    point: int
    kept: tuple[int, ...] = ()
    tear: Tear | None = None
    doubled: int | None = None
    """A rename across folders that left the file under both names."""


class SpillSeen(msgspec.Struct, frozen=True):
    """A spill that a loaded message names, and what lies under that name (``size`` -1: nothing)."""

    path: str
    bytes: int
    sha256: str
    size: int
    digest: str


class Loaded(msgspec.Struct, frozen=True):
    """What one load of one session folder gave; ``raised`` is set instead when it raised.  ``spills``: of a first look only."""

    folder: str
    state: str = ""
    messages: History = ()
    truncated: tuple[str, ...] = ()
    findings: tuple[Any, ...] = ()
    """The product's own: compared as they are, and printed."""
    spills: tuple[SpillSeen, ...] = ()
    violations: tuple[str, ...] = ()
    raised: str = ""


class Recovered(msgspec.Struct, frozen=True):
    """The real product, run on one crash state the way a user would.

    ``loaded``: what a first look gives.  Then a process opens the session for append, says something (``probe``) and closes: ``reopened`` is
    what it found when it opened, ``untouched`` whether opening left every byte of the session alone, ``usable`` a last look.  ``open_files``:
    descriptors left open.
    """

    loaded: Loaded
    reopened: Loaded
    untouched: bool
    probe: Message
    usable: Loaded
    open_files: int = 0
    marked: bool = False
    """The session carried the mark of a failed sync."""


class Remembered(msgspec.Struct, frozen=True):
    """Memory, started on one crash state.

    ``notes``: the stores after the start; ``left``: journals and unfinished files in them then; ``section``: what a new session's prompt says of
    memory.  Then turns that were left over are finished: ``finished`` are the stores after that, ``taken`` how many turns, ``waiting`` the
    records that are still there, ``again`` how many turns a further start took up.  ``open_files``: descriptors left open.
    """

    notes: Notes
    left: tuple[str, ...] = ()
    section: str = ""
    finished: Notes = {}
    taken: int = 0
    waiting: int = 0
    again: int = 0
    open_files: int = 0
    raised: str = ""


Outcome = Literal["held", "broken", "not_run"]
OracleName = Literal[
    "O1", "O2", "O3", "O4", "O5", "O6", "O7", "O9", "O10", "O11", "M1", "M2", "M3", "M4", "M5", "M6"
]  # fmt: skip


GUARANTEES: Mapping[str, str] = {
    "O1": "loading, opening and appending never raise",
    "O2": "what loads is a history the provider accepts",
    "O3": "nothing acknowledged is lost",
    "O4": "nothing loads that was never written",
    "O5": "no hole: the history is one that once stood",
    "O6": "a replace is whole or absent",
    "O7": "a spilled result is there, byte for byte",
    "O9": "opening changes nothing; a second look gives the same",
    "O10": "a crash of the recovery is recovered too",
    "O11": "after recovery a message can be appended and stays",
    "M1": "both memory stores are old or both are new",
    "M2": "every index line has its note, every note its line",
    "M3": "lines and notes edited by hand are kept",
    "M4": "the index reaches the system prompt and nothing else",
    "M5": "the index in a prompt is whole text within its limits",
    "M6": "a turn handed over is taken into memory, once",
}
"""Each oracle in a few words; its docstring says it exactly."""


class Verdict(msgspec.Struct, frozen=True):
    """One oracle's word on one crash state."""

    oracle: OracleName
    outcome: Outcome
    message: str = ""


def names_of(folders: Mapping[int, Mapping[str, int]]) -> list[tuple[str, int, bool]]:
    """``(path, inode, is_folder)`` of everything a program would find, in a fixed order.  Unlinked inodes do not show."""
    found: list[tuple[str, int, bool]] = []
    waiting = [("", ROOT)]
    while waiting:
        path, inode = waiting.pop()
        names = folders[inode]
        for name in sorted(names):
            child = names[name]
            is_folder = child in folders
            found.append((f"{path}/{name}", child, is_folder))
            if is_folder:
                waiting.append((f"{path}/{name}", child))
    return found


def visible(disk: Disk) -> list[tuple[str, bytes | None]]:
    """Every path a program would see, with the bytes of a file or None for a folder, in a fixed order."""
    return [
        (path, None if is_folder else disk.files.get(inode, b"")) for path, inode, is_folder in names_of(disk.folders)
    ]
