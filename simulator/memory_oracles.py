"""Oracles for memory: one function, one guarantee, stated as its docstring.

Like ``oracles``, they see the record and what the product gave back, never the product's memory code: how an index line looks, what the headings
are and where a prompt is wrapped is said here once more.  M4 and M5 also judge the run itself: M4 in every scenario, with or without memory.
"""

from __future__ import annotations

import json
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import unquote

import msgspec
import regex

from pseudoclaude.messages import Message
from simulator.values import MemoryRecord, Notes, OracleName, Recording, Remembered, Verdict

INDEX = "MEMORY.md"
LOG = "conversation.jsonl"
HEADINGS = ("## Project Memory", "## User Memory")
OPENING, CLOSING = "<memory>", "</memory>"
_NOTE_LINE = re.compile(r"\s*[-*+]\s+\[(?:\\.|[^\]\\])*\]\(([^()\s/]+)\.md\)")
_NOTICE = re.compile(r"\[.*\b(?:left out|cut short)\b.*\]")
_UPDATED = re.compile(rb"^updated: .*$", re.MULTILINE)
_EDGE = " \t\r"
_TELLING = 8
"""Characters from which on a line of an index is told apart from what anybody might say."""
_HEADROOM_BYTES, _HEADROOM_LINES = 64, 6
"""What headings and blank lines take; an index that fits with them must be in the prompt whole."""


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

    def allowed(self, acked: int, issued: int) -> tuple[Notes, ...]:
        """What may stand in the stores after a start: each promised or begun change, or what a start makes of the last."""
        states = self.memory.states
        last = issued + 1 if issued + 1 in self.memory.starts else issued
        return states[acked : last + 1]


def both_or_neither(case: MemoryEvidence) -> str:
    """M1: after a start both stores are as before an update or both as after it, nothing promised is lost, and nothing is left lying about."""
    seen = case.remembered
    if seen.raised:
        return f"a start raised {seen.raised}"
    if seen.left:
        return f"after a start {seen.left[0]} is still there"
    if seen.open_files:
        return f"{seen.open_files} files were left open"
    allowed = case.allowed(case.acked, case.issued)
    if any(seen.notes == state for state in allowed):
        return ""
    project, user = (_like(case.memory, seen.notes, folder) for folder in case.memory.folders)
    return f"the project's store is as {project}, the user's as {user}; promised was change {case.acked}, begun {case.issued}"


def _like(memory: MemoryRecord, notes: Notes, folder: str) -> str:
    mine = _below(notes, folder)
    same = [str(step) for step, state in enumerate(memory.states) if _below(state, folder) == mine]
    return f"after change {same[-1]}" if same else "after no change"


def lines_and_notes_agree(case: MemoryEvidence) -> str | None:
    """M2: after a start every index line has its note and every note exactly one line, but for lines that a person left without or doubled;
    no line without its note is in the prompt."""
    seen = case.remembered
    if seen.raised:
        return None
    shown = [slug for line in _index_in(seen.section).split("\n") if (slug := _slug(line))]
    everywhere: set[str] = set()
    for folder in case.memory.folders:
        notes = {_folded(slug) for slug in _slugs(seen.notes, folder)}
        everywhere |= notes
        lines = [_folded(slug) for slug in _lined(seen.notes.get(f"{folder}/{INDEX}", b""))]
        by_hand = _counted_by_hand(case.memory, folder)
        for slug in sorted({*notes, *lines}):
            count = lines.count(slug)
            if slug in notes and count == 0:
                return f"{folder}: the note {slug} has no line"
            if slug not in notes and not by_hand.get(slug):
                return f"{folder}: a line names {slug}, which does not exist"
            if count > max(1, by_hand.get(slug, 0)):
                return f"{folder}: the note {slug} has {count} lines"
    missing = [slug for slug in shown if _folded(slug) not in everywhere]
    return f"the prompt names {missing[0]}, which does not exist" if missing else ""


def hand_lines_stay(case: MemoryEvidence) -> str | None:
    """M3: lines that a person wrote are there, byte for byte and in order; a note that was edited while an update was under way is as edited."""
    seen = case.remembered
    if seen.raised:
        return None
    for path in sorted({edit.path for edit in case.memory.edits if posixpath.basename(edit.path) == INDEX}):
        versions = _hand_versions(case, path)
        found = _own_lines(seen.notes.get(path, b""))
        if not any(_in_order(version, found) for version in versions):
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
    return [_own_lines(edit.data or b"") for edit in versions] if before else [[]]


def index_is_clean(section: str, notes: Notes, lines_max: int, bytes_max: int) -> str:
    """M5: the index in a prompt is strict UTF-8, stands in one wrapper, keeps both limits, and is made of whole lines of the indexes; a line
    that is too long by itself may end at a character as people see it."""
    try:
        section.encode("utf-8")
    except UnicodeEncodeError:
        return "the index in the prompt is not UTF-8"
    if not section:
        return ""
    if section.count(OPENING) != 1 or section.count(CLOSING) != 1:
        return "notes open or close the wrapper of the index in the prompt"
    index = _index_in(section)
    used, lines = len(index.encode()), index.split("\n")
    if used > bytes_max or len(lines) > lines_max:
        return (
            f"the index in the prompt has {len(lines)} lines and {used} bytes, allowed are {lines_max} and {bytes_max}"
        )
    texts = [data.decode("utf-8", errors="replace") for data in _indexes(notes).values()]
    if index.count("\ufffd") > sum(text.count("\ufffd") for text in texts):
        return "the index in the prompt has a replacement character that no index has"
    known = [_plain(line) for text in texts for line in _text_lines(text)]
    whole = {*known, *[line.strip(_EDGE) for line in known], *HEADINGS, ""}
    for line in map(_plain, lines):
        if line not in whole and not _NOTICE.fullmatch(line):
            broken = _wrong_cut(line, [source for source in known if source.startswith(line)], bytes_max)
            if broken:
                return broken
    return ""


def _wrong_cut(line: str, sources: Sequence[str], bytes_max: int) -> str:
    if not sources:
        return f"a line of the prompt stands in no index: {line[:60]!r}"
    if not any(len(source.encode()) > bytes_max // 4 for source in sources):
        return f"a line that would have fitted is cut: {line[:60]!r}"
    if not any(len(line) in _boundaries(source, bytes_max) for source in sources):
        return f"a line of the prompt ends inside a character: {line[-20:]!r}"
    return ""


def _started_index(case: MemoryEvidence) -> str | None:
    seen, memory = case.remembered, case.memory
    if seen.raised:
        return None
    return index_is_clean(seen.section, seen.notes, memory.lines_max, memory.bytes_max)


def index_arrives(section: str, notes: Notes, lines_max: int, bytes_max: int) -> str:
    """M4, first half: what the indexes say is in the prompt of a new session: all of it if it fits, else the newest line of each."""
    sources = _indexes(notes)
    there = [_plain(line).strip(_EDGE) for line in _index_in(section).split("\n")]
    total = sum(len(data) for data in sources.values())
    lines = sum(data.count(b"\n") + 1 for data in sources.values())
    fits = total + _HEADROOM_BYTES <= bytes_max and lines + _HEADROOM_LINES <= lines_max
    for path, data in sorted(sources.items()):
        slugs = {_folded(slug) for slug in _slugs(notes, posixpath.dirname(path))}
        wanted = [
            _plain(line).strip(_EDGE)
            for line in _text_lines(data.decode("utf-8", errors="replace"))
            if line.strip() and ((slug := _slug(line)) is None or _folded(slug) in slugs)
        ]
        for line in wanted if fits else wanted[-1:]:
            if line not in there and len(line.encode()) <= bytes_max // 4:
                return f"{path}: the line {line[:60]!r} is not in the prompt of a new session"
    return ""


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
    if any(_undated(seen.finished) == _undated(state) for state in case.allowed(earliest, latest)):
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


def judge_run(recording: Recording) -> Iterator[Verdict]:
    """M4 and M5 of the run itself."""
    yield _verdict("M4", prompts_and_logs(recording))
    memory = recording.memory
    if memory is not None:
        for prompt in recording.prompts:
            if prompt.notes is not None:
                section = _section_of(prompt.system)
                yield _verdict("M5", index_is_clean(section, prompt.notes, memory.lines_max, memory.bytes_max))


def prompts_and_logs(recording: Recording) -> str:
    """M4: a new session's system prompt has the index and every request of the session has that prompt; no message and no byte of a log has it."""
    return _prompts_hold(recording) or _nothing_leaks(recording)


def _prompts_hold(recording: Recording) -> str:
    first: dict[str, str] = {}
    for number, prompt in enumerate(recording.prompts):
        fixed = first.setdefault(prompt.folder, prompt.system)
        if prompt.system != fixed:
            return f"{prompt.folder} was resumed with another system prompt than it began with"
        end = [later.first_request for later in recording.prompts[number + 1 :]]
        for request in recording.requests[prompt.first_request : end[0] if end else None]:
            if request.purpose == "turn" and request.system != fixed:
                return f"a request of {prompt.folder} has another system prompt than the session began with"
        memory = recording.memory
        if memory is not None and prompt.notes is not None:
            missing = index_arrives(_section_of(prompt.system), prompt.notes, memory.lines_max, memory.bytes_max)
            if missing:
                return missing
    return ""


def _nothing_leaks(recording: Recording) -> str:
    needles = _needles(recording)
    seen: set[int] = set()
    for request in recording.requests:
        for message in request.messages if request.purpose != "memory" else ():
            if id(message) not in seen:
                seen.add(id(message))
                found = next((needle for needle in needles if needle in _whole_text(message)), "")
                if found:
                    return f"the index stands in a message of a {request.purpose} request: {found[:60]!r}"
    logs = {op.inode for op in recording.ops if op.kind == "create" and op.name == LOG}
    written = b"".join(op.data for op in recording.ops if op.kind == "write" and op.inode in logs)
    leaked = next((needle for needle in needles if _in_json(needle) in written), "")
    return f"the index stands in a session's log: {leaked[:60]!r}" if leaked else ""


def _needles(recording: Recording) -> list[str]:
    """What only an index has: the headings, the wrapper, and its lines; but not what the user, the model or a tool said themselves."""
    lines: dict[str, None] = dict.fromkeys((*HEADINGS, OPENING, CLOSING))
    for prompt in recording.prompts:
        for data in _indexes(prompt.notes or {}).values():
            known = [line.strip() for line in _text_lines(data.decode("utf-8", errors="replace"))]
            lines.update(dict.fromkeys(line for line in known if len(line) >= _TELLING))
    return [line for line in lines if not any(line in text for text in recording.spoken)]


def _whole_text(message: Message) -> str:
    result = message.tool_result
    return "\n".join(
        [message.content, *[call.arguments for call in message.tool_calls], result.content if result else ""]
    )


def _in_json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "replace")


def _verdict(name: OracleName, broken: str) -> Verdict:
    return Verdict(name, "broken" if broken else "held", broken)


# --- reading indexes -------------------------------------------------------------------------------------------


def _section_of(system: str) -> str:
    """The part of a system prompt from the first wrapper on; empty when there is none."""
    start = system.find(OPENING)
    return "" if start < 0 else system[start:]


def _index_in(section: str) -> str:
    return section.partition(f"{OPENING}\n")[2].rpartition(f"\n{CLOSING}")[0]


def _indexes(notes: Notes) -> dict[str, bytes]:
    return {path: data for path, data in notes.items() if posixpath.basename(path) == INDEX}


def _text_lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]


def _plain(line: str) -> str:
    """A line as it was before anything that looks like our wrapper was defused."""
    return line.replace("&lt;", "<")


def _slug(line: str) -> str | None:
    match = _NOTE_LINE.match(line)
    return None if match is None else unquote(match[1])


def _lined(data: bytes) -> list[str]:
    return [slug for line in data.decode("utf-8", errors="replace").split("\n") if (slug := _slug(line))]


def _slugs(notes: Notes, folder: str) -> list[str]:
    return [posixpath.basename(path)[:-3] for path in _below(notes, folder) if posixpath.basename(path) != INDEX]


def _below(notes: Notes, folder: str) -> dict[str, bytes]:
    return {path: data for path, data in notes.items() if posixpath.dirname(path) == folder}


def _folded(slug: str) -> str:
    return unicodedata.normalize("NFC", slug).casefold()


def _counted_by_hand(memory: MemoryRecord, folder: str) -> dict[str, int]:
    """How often a person's own version of an index names a note; a note that a person removed leaves its line behind."""
    counts: dict[str, int] = {}
    for edit in memory.edits:
        if posixpath.dirname(edit.path) != folder:
            continue
        if posixpath.basename(edit.path) == INDEX:
            lined = [_folded(slug) for slug in _lined(edit.data or b"")]
            counts.update({slug: max(lined.count(slug), counts.get(slug, 0)) for slug in lined})
        elif edit.data is None:
            counts.setdefault(_folded(posixpath.basename(edit.path)[:-3]), 1)
    return counts


def _own_lines(data: bytes) -> list[bytes]:
    """The lines that stand for no note."""
    lines = data.split(b"\n")
    return [line for line in lines if line.strip() and _slug(line.decode("utf-8", errors="replace")) is None]


def _in_order(wanted: Sequence[bytes], found: Sequence[bytes]) -> bool:
    rest = iter(found)
    return all(line in rest for line in wanted)


def _boundaries(text: str, bytes_max: int) -> set[int]:
    """Where a character as people see it ends; anywhere, if the first is larger than a limit can be."""
    ends = [match.end() for match in regex.finditer(r"\X", text)]
    larger = bool(ends) and len(text[: ends[0]].encode()) > bytes_max // 4
    return set(range(len(text)) if larger else ends)


def _undated(notes: Notes) -> dict[str, bytes]:
    return {path: _UPDATED.sub(b"", data) for path, data in notes.items()}
