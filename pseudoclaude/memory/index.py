"""The index: cutting it to its limits, merging note lines into it, and joining the two stores' indexes for the prompt.

Pure functions over text.  A line is what ``\\n`` separates and nothing else.  A *note line* is a list item that starts with a link
to a note of the same folder (``- [Title](slug.md): description``); every other line belongs to whoever wrote it and is never
changed here.

Promises.  ``trim_index`` gives a prefix of whole lines inside both limits and says how many it left out; it cuts inside a line
only when the first line alone is too long, and then between grapheme clusters.  A changed note's line moves to the end, so the
order of an index is the order of change, and ``join_sections`` leaves out the oldest lines first and names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec
import regex

from pseudoclaude.text import clean, cut_bytes, cut_graphemes, size

INDEX_NAME = "MEMORY.md"
PROJECT_HEADING = "## Project Memory"
USER_HEADING = "## User Memory"

_NOTE_LINE = re.compile(r"(\s*[-*+]\s+\[(?:\\.|[^\]\\])*\]\()([^()\x00-\x20\x7f]+)(?=\.md\))")
"""White space beyond ASCII is read in a target although it is never written there: indexes from before it was escaped have it."""
_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f-\x9f()%<>\[\]\\]")
_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_CLUSTER = regex.compile(r"\X")
_NAMED_BYTES_MAX = 2_000
"""How much of a section may go to naming what was left out of it."""


def trim_index(text: str, *, max_lines: int = 200, max_bytes: int = 25_000) -> str:
    """``text`` inside both limits: whole lines from its beginning, then a notice that says how many lines were left out.

    A text that fits is returned as it is.  A first line too long by itself is cut between grapheme clusters (a single cluster
    larger than ``max_bytes``: between code points).  Where not even the notice fits there is none.  Trimming twice equals once.
    """
    text = clean(text)
    if max_lines <= 0 or max_bytes <= 0:
        return ""
    if _fits(text, max_lines, max_bytes):
        return text
    if text.endswith("\n"):
        unended = text[:-1].removesuffix("\r")
        if _fits(unended, max_lines, max_bytes):
            return unended  # no line is left out, only the end of the last one
    lines = text.removesuffix("\n").split("\n")
    ends = _ends(lines)
    most = min(len(lines), max_lines)
    for kept in range(most - 1, 0, -1):
        notice = _notice(len(lines) - kept)
        if ends[kept - 1] + 1 + len(notice) <= max_bytes:
            return "\n".join([*lines[:kept], notice])
    if len(_notice(len(lines))) <= max_bytes:
        return _cut_first_line(lines, max_lines, max_bytes)
    for kept in range(most, 0, -1):
        if ends[kept - 1] <= max_bytes:
            return "\n".join(lines[:kept])
    return cut_graphemes(lines[0], max_bytes)


def _cut_first_line(lines: Sequence[str], max_lines: int, max_bytes: int) -> str:
    """The beginning of a first line that does not fit, and the notice; the notice alone where nothing else fits."""
    notice = _notice(len(lines) - 1, cut=True)
    room = max_bytes - len(notice) - 1
    first = _CLUSTER.match(lines[0])
    if max_lines < 2 or room <= 0 or first is None:
        return _notice(len(lines))
    if size(first.group()) <= room:
        return f"{cut_graphemes(lines[0], room)}\n{notice}"
    if size(first.group()) > max_bytes and (beginning := cut_bytes(lines[0], room)):
        return f"{beginning}\n{notice}"
    return _notice(len(lines))


def _fits(text: str, max_lines: int, max_bytes: int) -> bool:
    return text.count("\n") < max_lines and size(text) <= max_bytes


def _ends(lines: Sequence[str]) -> list[int]:
    """Size in bytes of the first 1, 2, ... lines joined by ``\\n``."""
    ends: list[int] = []
    total = -1
    for line in lines:
        total += 1 + size(line)
        ends.append(total)
    return ends


def _notice(left_out: int, *, cut: bool = False) -> str:
    lines = "1 line" if left_out == 1 else f"{left_out} lines"
    return f"[{lines} left out{', the line above is cut short' if cut else ''}]"


# --- note lines ------------------------------------------------------------------------------------------------


def note_line(slug: str, name: str, description: str) -> str:
    """The line that stands for a note.  One line whatever the texts hold; a title cannot end its own link."""
    title = re.sub(r"([\\\[\]])", r"\\\1", " ".join(name.split()))
    rest = " ".join(description.split())
    return f"- [{title}]({_target(slug)}.md)" + (f": {rest}" if rest else "")


def linked_slug(line: str) -> str | None:
    """The note a line stands for, or None for a line that stands for none."""
    match = _NOTE_LINE.match(line)
    if match is None or "/" in match[2]:
        return None
    return _ESCAPED.sub(_unescaped, match[2])


def _target(slug: str) -> str:
    """``slug`` as a link's target: UTF-8 bytes of what would end or change the link as ``%XX``; ``linked_slug`` is its inverse."""
    return _UNSAFE.sub(lambda char: "".join(f"%{byte:02X}" for byte in char[0].encode("utf-8")), slug)


def _unescaped(codes: re.Match[str]) -> str:
    """What a run of ``%XX`` stands for; the run itself where that could be no part of a file's name."""
    try:
        text = bytes.fromhex(codes[0].replace("%", "")).decode("utf-8")
    except UnicodeDecodeError:
        return codes[0]
    return codes[0] if "/" in text or "\0" in text else text


def _as_written(line: str) -> str:
    """``line`` with its target spelled as ``note_line`` spells it, without ``\\r``: what spells one link differently is one line."""
    line = line.rstrip("\r")
    slug = linked_slug(line)
    return line if slug is None else _NOTE_LINE.sub(lambda match: match[1] + _target(slug), line, count=1)


def put_line(text: str, slug: str, new: str, old: str = "") -> str:
    """``text`` with the line ``new`` for a note, at the end, in place of the ``old`` one.

    A line for this note that is neither was edited by hand: it stays, and then none is added.  Doing it twice equals once.
    """
    lines = _lines(text)
    ours = {_as_written(line) for line in (new, old) if line}
    kept = [line for line in lines if linked_slug(line) != slug or _as_written(line) not in ours]
    if any(linked_slug(line) == slug for line in kept):
        return _join(kept)
    ending = "\r" if kept and kept[-1].endswith("\r") else ""
    return _join([*kept, new + ending])


def drop_lines(text: str, gone: Callable[[str], bool]) -> str:
    """``text`` without the lines of notes for which ``gone(slug)`` holds."""
    return _join([line for line in _lines(text) if (slug := linked_slug(line)) is None or not gone(slug)])


def linked_slugs(text: str) -> tuple[str, ...]:
    """The notes that have a line, in order; a note with two lines stands twice."""
    return tuple(slug for line in _lines(text) if (slug := linked_slug(line)) is not None)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _join(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n" if lines else ""


# --- the index of the prompt -----------------------------------------------------------------------------------


class Joined(msgspec.Struct, frozen=True):
    """An index for the system prompt, and the labels of the lines that did not fit, oldest first."""

    text: str
    left_out: tuple[str, ...] = ()


def join_sections(project: str, user: str, *, max_lines: int = 200, max_bytes: int = 25_000) -> Joined:
    """Both indexes under their headings, project first, inside both limits together.

    A section that needs no more than half gets what it needs, and the other one the rest; else each gets half.
    """
    bodies = [(PROJECT_HEADING, _body(project)), (USER_HEADING, _body(user))]
    present = [(heading, body) for heading, body in bodies if body]
    whole = "\n\n".join(f"{heading}\n{body}" for heading, body in present)
    if _fits(whole, max_lines, max_bytes):
        return Joined(whole)
    if len(present) == 1:
        heading, body = present[0]
        joined = _section(heading, body, max_lines, max_bytes)
    else:
        needs = [f"{heading}\n{body}" for heading, body in present]
        lines = _shares([need.count("\n") + 1 for need in needs], max_lines - 1)
        sizes = _shares([size(need) for need in needs], max_bytes - 2)
        sections = [_section(*present[i], lines[i], sizes[i]) for i in (0, 1)]
        text = "\n\n".join(section.text for section in sections if section.text)
        joined = Joined(text, sections[0].left_out + sections[1].left_out)
    return Joined(trim_index(joined.text, max_lines=max_lines, max_bytes=max_bytes), joined.left_out)


def _body(text: str) -> str:
    return clean(text).removeprefix("\ufeff").replace("\r\n", "\n").strip("\n \t\r")


def _shares(needs: Sequence[int], total: int) -> tuple[int, int]:
    first, second = needs
    half = total // 2
    if first + second <= total:
        return first, second
    if second <= half:
        return total - second, second
    if first <= half:
        return first, total - first
    return half, total - half


def _section(heading: str, body: str, max_lines: int, max_bytes: int) -> Joined:
    """The heading, the newest lines that fit, in their order, and a notice that names the others."""
    if _fits(f"{heading}\n{body}", max_lines, max_bytes):
        return Joined(f"{heading}\n{body}")
    lines = body.split("\n")
    reserve = min(_NAMED_BYTES_MAX, max_bytes // 4)
    room = max_bytes - size(heading) - 1 - reserve - 1
    kept = 0
    used = 0
    while kept < min(len(lines), max_lines - 2) and used + size(lines[-1 - kept]) + 1 <= room:
        used += size(lines[-1 - kept]) + 1
        kept += 1
    if kept == 0:
        newest = trim_index(f"{heading}\n{lines[-1]}", max_lines=max_lines - 1, max_bytes=max_bytes - reserve - 1)
        if size(lines[-1]) > room > 0 and max_lines > 2:
            newest = f"{heading}\n{cut_graphemes(lines[-1], room)}"
        left_out = _labels(lines[:-1])
    else:
        newest = "\n".join([heading, *lines[len(lines) - kept :]])
        left_out = _labels(lines[: len(lines) - kept])
    text = f"{newest}\n{_naming_notice(left_out, len(lines), reserve)}"
    return Joined(text, left_out)


def _naming_notice(left_out: Sequence[str], total: int, max_bytes: int) -> str:
    """One line of at most ``max_bytes`` bytes, shorter and shorter until it fits; at worst empty."""
    start = f"[{len(left_out)} of {total} lines left out, oldest first: "
    named = 0
    used = size(start) + len(f" and {len(left_out)} more]")
    while named < len(left_out) and used + size(left_out[named]) + 2 <= max_bytes:
        used += size(left_out[named]) + 2
        named += 1
    rest = len(left_out) - named
    if named:
        return start + ", ".join(left_out[:named]) + (f" and {rest} more]" if rest else "]")
    return cut_bytes(_notice(len(left_out)) if left_out else "[the line above is cut short]", max_bytes)


def _labels(lines: Iterable[str]) -> tuple[str, ...]:
    """What to call lines that are left out: the note's slug, or the beginning of the text; blank lines are not counted."""
    return tuple(linked_slug(line) or cut_graphemes(line.strip(), 40) for line in lines if line.strip())
