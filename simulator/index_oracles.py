"""Oracles for the index in a prompt (M5) and for where it may stand (M4); both judge the run itself and, in ``memory_oracles``, every crash state.

M4 is judged in every scenario, with memory or without.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence

from pseudoclaude.messages import Message
from simulator.index_lines import (
    CLOSING,
    EDGE,
    HEADINGS,
    OPENING,
    boundaries,
    folded,
    index_in,
    indexes,
    plain,
    slug_of,
    slugs_in,
    text_lines,
)
from simulator.values import Notes, OracleName, Recording, Verdict

LOG = "conversation.jsonl"
_NOTICE = re.compile(r"\[.*\b(?:left out|cut short)\b.*\]")
_TELLING = 8
"""Characters from which on a line of an index is told apart from what anybody might say."""
_HEADROOM_BYTES, _HEADROOM_LINES = 64, 6
"""What headings and blank lines take; an index that fits with them must be in the prompt whole."""


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
    index = index_in(section)
    texts = [data.decode("utf-8", errors="replace") for data in indexes(notes).values()]
    if index.count("\ufffd") > sum(text.count("\ufffd") for text in texts):
        return "the index in the prompt has a replacement character that no index has"
    used, lines = len(index.encode()), index.split("\n")
    if used > bytes_max or len(lines) > lines_max:
        return (
            f"the index in the prompt has {len(lines)} lines and {used} bytes, allowed are {lines_max} and {bytes_max}"
        )
    known = [plain(line) for text in texts for line in text_lines(text)]
    whole = {*known, *[line.strip(EDGE) for line in known], *HEADINGS, ""}
    for line in map(plain, lines):
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
    if not any(len(line) in boundaries(source, bytes_max) for source in sources):
        return f"a line of the prompt ends inside a character: {line[-20:]!r}"
    return ""


def index_arrives(section: str, notes: Notes, lines_max: int, bytes_max: int) -> str:
    """M4, first half: what the indexes say is in the prompt of a new session: all of it if it fits, else the newest line of each."""
    sources = indexes(notes)
    there = [plain(line).strip(EDGE) for line in index_in(section).split("\n")]
    total = sum(len(data) for data in sources.values())
    lines = sum(data.count(b"\n") + 1 for data in sources.values())
    fits = total + _HEADROOM_BYTES <= bytes_max and lines + _HEADROOM_LINES <= lines_max
    for path, data in sorted(sources.items()):
        slugs = {folded(slug) for slug in slugs_in(notes, posixpath.dirname(path))}
        wanted = [
            plain(line).strip(EDGE)
            for line in text_lines(data.decode("utf-8", errors="replace"))
            if line.strip() and ((slug := slug_of(line)) is None or folded(slug) in slugs)
        ]
        for line in wanted if fits else wanted[-1:]:
            if line not in there and len(line.encode()) <= bytes_max // 4:
                return f"{path}: the line {line[:60]!r} is not in the prompt of a new session"
    return ""


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
        for data in indexes(prompt.notes or {}).values():
            known = [line.strip() for line in text_lines(data.decode("utf-8", errors="replace"))]
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


def _section_of(system: str) -> str:
    """The part of a system prompt from the first wrapper on; empty when there is none."""
    start = system.find(OPENING)
    return "" if start < 0 else system[start:]
