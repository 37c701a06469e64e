"""Oracles for memory: one function, one guarantee, stated as its docstring.

Like ``oracles``, they see the record and what the product gave back, never the product's memory code.  M4 and M5, which also judge the run itself,
are in ``index_oracles``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping

import msgspec

from simulator.index_lines import INDEX, below, folded, in_order, index_in, lined, own_lines, slug_of, slugs_in
from simulator.index_oracles import index_arrives, index_is_clean
from simulator.values import MemoryRecord, Notes, OracleName, Recording, Remembered, Verdict

_UPDATED = re.compile(rb"^updated: .*$", re.MULTILINE)


class MemoryEvidence(msgspec.Struct, frozen=True):
    """Memory started on one crash state, with the bounds that hold at its crash point.

    ``acked``, ``issued``: the last change of the stores that was promised, and the last that was begun; ``turns_acked``, ``turns_issued``: the
    same for turns handed over.
    """

    memory: MemoryRecord
    remembered: Remembered
    acked: int
    issued: int
    turns_acked: int
    turns_issued: int


def both_or_neither(case: MemoryEvidence) -> str:
    """M1: after a start both stores are as before an update or both as after it, nothing promised is lost, and nothing is left lying about."""
    seen = case.remembered
    if seen.raised:
        return f"a start raised {seen.raised}"
    if seen.left:
        return f"after a start {seen.left[0]} is still there"
    if seen.open_files:
        return f"{seen.open_files} files were left open"
    if any(seen.notes == state for state in case.memory.states[case.acked : case.issued + 1]):
        return ""
    project, user = (_like(case.memory, seen.notes, folder) for folder in case.memory.folders)
    return f"the project's store is as {project}, the user's as {user}; promised was change {case.acked}, begun {case.issued}"


def _like(memory: MemoryRecord, notes: Notes, folder: str) -> str:
    mine = below(notes, folder)
    same = [str(step) for step, state in enumerate(memory.states) if below(state, folder) == mine]
    return f"after change {same[-1]}" if same else "after no change"


def lines_and_notes_agree(case: MemoryEvidence) -> str | None:
    """M2: after a start every index line has its note and every note exactly one line, but for lines that a person left without or doubled;
    no line without its note is in the prompt."""
    seen = case.remembered
    if seen.raised:
        return None
    shown = [slug for line in index_in(seen.section).split("\n") if (slug := slug_of(line))]
    everywhere: set[str] = set()
    for folder in case.memory.folders:
        notes = {folded(slug) for slug in slugs_in(seen.notes, folder)}
        everywhere |= notes
        lines = [folded(slug) for slug in lined(seen.notes.get(f"{folder}/{INDEX}", b""))]
        by_hand = _counted_by_hand(case.memory, folder)
        for slug in sorted({*notes, *lines}):
            count = lines.count(slug)
            if slug in notes and count == 0:
                return f"{folder}: the note {slug} has no line"
            if slug not in notes and not by_hand.get(slug):
                return f"{folder}: a line names {slug}, which does not exist"
            if count > max(1, by_hand.get(slug, 0)):
                return f"{folder}: the note {slug} has {count} lines"
    missing = [slug for slug in shown if folded(slug) not in everywhere]
    return f"the prompt names {missing[0]}, which does not exist" if missing else ""


def hand_lines_stay(case: MemoryEvidence) -> str | None:
    """M3: lines that a person wrote are there, byte for byte and in order; a note that was edited while an update was under way is as edited."""
    seen = case.remembered
    if seen.raised:
        return None
    for path in sorted({edit.path for edit in case.memory.edits if posixpath.basename(edit.path) == INDEX}):
        versions = _hand_versions(case, path)
        found = own_lines(seen.notes.get(path, b""))
        if not any(in_order(version, found) for version in versions):
            return f"{path}: a line that a person wrote is gone"
    steps = {edit.step for edit in case.memory.edits}
    for edit in case.memory.edits:
        until = next(step for step in range(edit.step + 1, edit.step + len(steps) + 2) if step not in steps)
        judged = edit.meanwhile and edit.data is not None and posixpath.basename(edit.path) != INDEX
        if judged and case.acked >= edit.step and case.issued <= until and seen.notes.get(edit.path) != edit.data:
            return f"{edit.path}: a person edited it while an update was under way, and the edit is gone"
    return ""


def _hand_versions(case: MemoryEvidence, path: str) -> list[list[bytes]]:
    """The person's lines of an index, in each version that may stand there."""
    mine = [edit for edit in case.memory.edits if edit.path == path]
    before = [edit for edit in mine if edit.step <= case.acked][-1:]
    versions = [*before, *[edit for edit in mine if case.acked < edit.step <= case.issued]]
    return [own_lines(edit.data or b"") for edit in versions] if before else [[]]


def _started_index(case: MemoryEvidence) -> str | None:
    seen, memory = case.remembered, case.memory
    if seen.raised:
        return None
    return index_is_clean(seen.section, seen.notes, memory.lines_max, memory.bytes_max)


def _started_prompt(case: MemoryEvidence) -> str | None:
    seen, memory = case.remembered, case.memory
    if seen.raised:
        return None
    return index_arrives(seen.section, seen.notes, memory.lines_max, memory.bytes_max)


def finished_once(case: MemoryEvidence) -> str | None:
    """M6: a turn that was handed over is taken into memory by the next start with a model, whatever killed its process, and only once."""
    seen, turns = case.remembered, case.memory.turns
    if seen.raised or not case.turns_issued:
        return None
    begun, promised = turns[: case.turns_issued], turns[: case.turns_acked]
    if any(turn.answer is None for turn in begun):
        return None  # in the run the model never answered one of them, so it cannot be finished here
    if seen.again:
        return f"{seen.again} turns are taken up a second time"
    if seen.waiting:
        return f"{seen.waiting} turns still wait after a start with a model"
    if not all(turn.step for turn in begun):
        return "" if seen.taken else None  # the run ended before it was done: what comes of it is not known
    earliest = max([case.acked, *[turn.step for turn in promised]])
    latest = max([case.issued, *[turn.step for turn in begun]])
    edits = case.memory.edits
    if any(case.acked < edit.step <= latest or (edit.meanwhile and seen.taken) for edit in edits):
        return None  # what a person did in the run while the model was asked does not happen again here, or is seen by the model
    if any(_undated(seen.finished) == _undated(state) for state in case.memory.states[earliest : latest + 1]):
        return ""
    return f"{seen.taken} turns were taken up, and the stores are not as after turn {len(promised)}"


Judge = Callable[[MemoryEvidence], str | None]
MEMORY_ORACLES: Mapping[OracleName, Judge] = {
    "M1": both_or_neither,
    "M2": lines_and_notes_agree,
    "M3": hand_lines_stay,
    "M4": _started_prompt,
    "M5": _started_index,
    "M6": finished_once,
}


def memory_applicable(recording: Recording) -> frozenset[OracleName]:
    """The oracles of memory that mean something for this recording, derived from the record alone."""
    if recording.memory is None:
        return frozenset({"M4"})
    names = set(MEMORY_ORACLES)
    if not any(edit.data for edit in recording.memory.edits):
        names.discard("M3")
    if not any(turn.answer is not None for turn in recording.memory.turns):
        names.discard("M6")
    return frozenset(names)


def judge_memory(name: OracleName, case: MemoryEvidence) -> Verdict | None:
    """One oracle's word on one case; None when the case says nothing about its guarantee."""
    broken = MEMORY_ORACLES[name](case)
    return None if broken is None else Verdict(name, "broken" if broken else "held", broken)


def _counted_by_hand(memory: MemoryRecord, folder: str) -> dict[str, int]:
    """How often a person's own version of an index names a note; a note that a person removed leaves its line behind."""
    counts: dict[str, int] = {}
    for edit in memory.edits:
        if posixpath.dirname(edit.path) != folder:
            continue
        if posixpath.basename(edit.path) == INDEX:
            named = [folded(slug) for slug in lined(edit.data or b"")]
            counts.update({slug: max(named.count(slug), counts.get(slug, 0)) for slug in named})
        elif edit.data is None:
            counts.setdefault(folded(posixpath.basename(edit.path)[:-3]), 1)
    return counts


def _undated(notes: Notes) -> dict[str, list[bytes]]:
    """The lines of each file without the times in notes, and those of an index in any order: updates and starts may come in another order here."""
    lines = {path: _UPDATED.sub(b"", data).split(b"\n") for path, data in notes.items()}
    return {path: sorted(found) if posixpath.basename(path) == INDEX else found for path, found in lines.items()}
