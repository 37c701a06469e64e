"""``pseudoclaude check``: what a session log still holds, and what of it is lost, in plain words.  Reads all of it and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

import msgspec

from pseudoclaude.commands.screen import visible
from pseudoclaude.commands.streams import for_reader
from pseudoclaude.commands.words import count
from pseudoclaude.errors import SessionUnreadable
from pseudoclaude.messages import Message, ToolCall
from pseudoclaude.ports import FileSystem
from pseudoclaude.providers.wire import PROJECTIONS, to_wire
from pseudoclaude.session.findings import Finding
from pseudoclaude.session.loader import LoadResult, load_log
from pseudoclaude.settings import Dangling
from pseudoclaude.text import cut_graphemes

EXCERPT_BYTES = 72
HISTORY_LINES_MAX = 200
"""A longer history shows its first and last half of this."""

_STATES = {
    "repaired": "Its end was torn, or something had to be repaired; what is not below is named under it.",
    "damaged": "Not all that was saved is sound; what is still there is below, and under it what was found.",
    "empty": "It is an empty session: nothing was ever saved in it.",
    "missing": "There is no such log.",
    "unsupported": "It was written by a newer program, and is left alone.",
}
_LOSSES = frozenset({"gap", "utf8", "json", "schema", "crc", "conflict", "missing_spill", "repair"})
"""Kinds that speak of lost records.  The others are what a crash leaves of a write that nobody was told of, or lose nothing."""
_HARMLESS = ("an empty line", "half a character")
"""How findings of these kinds begin that lose no record."""


def check(
    path: str, fs: FileSystem, *, dangling: Dangling, dialect: str, as_json: bool, out: TextIO, err: TextIO
) -> int:
    """Report on the session folder or log file at ``path``.

    Returns 0 when nothing is unsettled, 1 when something is, 2 when it cannot be read (or for an unknown dialect or policy).
    """
    if dialect not in PROJECTIONS:
        print(f"pseudoclaude: unknown dialect {dialect!r}; known are {', '.join(PROJECTIONS)}", file=err)
        return 2
    try:
        loaded = load_log(path, fs, dangling=dangling, scan_all=True)
    except SessionUnreadable as error:
        print(f"pseudoclaude: {error}", file=err)
        return 2
    if as_json:
        print(for_reader(_json(loaded, dialect), out), file=out)
    elif loaded.state == "missing":
        print(f"pseudoclaude: there is no session log at {path}. Nothing was created", file=err)
    else:
        for text in _words(path, loaded):
            print(visible(text), file=out)
    if loaded.state in ("missing", "unsupported"):
        return 2
    return 1 if loaded.unsettled else 0


def _json(loaded: LoadResult, dialect: str) -> str:
    report = {
        "id": loaded.id,
        "state": loaded.state,
        "messages": to_wire(dialect, loaded.messages),
        "findings": loaded.findings,
        "truncated": loaded.truncated,
    }
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def _words(path: str, loaded: LoadResult) -> Iterable[str]:
    if not loaded.records and not loaded.has_header and loaded.size:
        yield f"{path}: holds no record of a session log. What it holds:"
        yield from map(_finding, loaded.findings)
        yield "The file was not changed."
        return
    yield f"{path}: {loaded.state}. {_STATES.get(loaded.state) or _settled_words(loaded.findings)}"
    if loaded.state == "unsupported":
        yield f"  {loaded.findings[0].text}"
        return
    model = f", model {loaded.model}" if loaded.model else ""
    yield f"Session {loaded.id}{model}: {count(len(loaded.messages), 'message')} from {count(loaded.size, 'byte')}."
    yield from history_lines(loaded.messages)
    unsettled = loaded.unsettled
    notes = [finding for finding in loaded.findings if finding.settled]
    if unsettled:
        yield f"Lost, in doubt or repaired ({len(unsettled)}):"
        yield from map(_finding, unsettled)
    if notes:
        yield f"Settled, nothing is to be done ({len(notes)}):"
        yield from map(_finding, notes)
    if loaded.truncated:
        yield "Calls without a result, left out: " + ", ".join(_call(call) for call in loaded.truncated)
    yield "The file was not changed." + (" Going on with this session keeps it and appends to it." if unsettled else "")


def _settled_words(findings: tuple[Finding, ...]) -> str:
    """What a clean log should be told with: everything in it is settled, but a settled loss is still a loss."""
    lost = sum(1 for finding in findings if finding.kind in _LOSSES and not finding.text.startswith(_HARMLESS))
    if not lost:
        return "Nothing is to be done. No finding speaks of a lost record."
    speak = "1 settled finding speaks" if lost == 1 else f"{lost:,} settled findings speak"
    return f"Nothing is to be done, but {speak} of lost records: what is named there is not in the history."


def history_lines(messages: tuple[Message, ...]) -> Iterable[str]:
    """The history, one line a message."""
    width = len(str(len(messages)))
    half = HISTORY_LINES_MAX // 2
    for number, message in enumerate(messages, 1):
        if len(messages) > HISTORY_LINES_MAX and half < number <= len(messages) - half:
            if number == half + 1:
                yield f"  … {count(len(messages) - HISTORY_LINES_MAX, 'message')} between these not shown …"
            continue
        yield f"  {number:>{width}} {message.role:<9} {_says(message)}"


def _says(message: Message) -> str:
    if message.tool_result is not None:
        result = message.tool_result
        mark = "no result: " if result.origin == "interrupted" else "error: " if result.is_error else ""
        more = f" (all {count(result.spill.bytes, 'byte')} in {result.spill.path})" if result.spill else ""
        return f"{result.call_id}: {mark}{_excerpt(result.content)}{more}"
    parts = [_excerpt(message.content)] if message.content else []
    parts += [f"calls {_call(call)}" for call in message.tool_calls]
    if message.stop == "interrupted":
        parts.append("(interrupted)")
    return "; ".join(parts) or "(empty)"


def _call(call: ToolCall) -> str:
    return f"{call.name} ({call.id}) {_excerpt(call.arguments)}"


def _finding(finding: Finding) -> str:
    where = f"byte {finding.offset:,}"
    if finding.length:
        where += f" to {finding.offset + finding.length:,}"
    return f"  {where}, {finding.kind}: {finding.text}."


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    cut = cut_graphemes(line, EXCERPT_BYTES)
    return cut if cut == line else cut + "…"
