"""How the oracles of memory read notes, indexes and prompts.

Said once more here, apart from the product: what a note line looks like, what the headings are, where the index stands in a prompt.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Sequence
from urllib.parse import unquote

import regex

from simulator.values import Notes

INDEX = "MEMORY.md"
HEADINGS = ("## Project Memory", "## User Memory")
OPENING, CLOSING = "<memory>", "</memory>"
EDGE = " \t\r"
_NOTE_LINE = re.compile(r"\s*[-*+]\s+\[(?:\\.|[^\]\\])*\]\(([^()\s/]+)\.md\)")


def index_in(section: str) -> str:
    return section.partition(f"{OPENING}\n")[2].rpartition(f"\n{CLOSING}")[0]


def indexes(notes: Notes) -> dict[str, bytes]:
    return {path: data for path, data in notes.items() if posixpath.basename(path) == INDEX}


def text_lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]


def plain(line: str) -> str:
    """A line as it was before anything that looks like our wrapper was defused."""
    return line.replace("&lt;", "<")


def slug_of(line: str) -> str | None:
    match = _NOTE_LINE.match(line)
    return None if match is None else unquote(match[1])


def lined(data: bytes) -> list[str]:
    return [slug for line in data.decode("utf-8", errors="replace").split("\n") if (slug := slug_of(line))]


def slugs_in(notes: Notes, folder: str) -> list[str]:
    return [posixpath.basename(path)[:-3] for path in below(notes, folder) if posixpath.basename(path) != INDEX]


def below(notes: Notes, folder: str) -> dict[str, bytes]:
    return {path: data for path, data in notes.items() if posixpath.dirname(path) == folder}


def folded(slug: str) -> str:
    return unicodedata.normalize("NFC", slug).casefold()


def own_lines(data: bytes) -> list[bytes]:
    """The lines that stand for no note."""
    lines = data.split(b"\n")
    return [line for line in lines if line.strip() and slug_of(line.decode("utf-8", errors="replace")) is None]


def in_order(wanted: Sequence[bytes], found: Sequence[bytes]) -> bool:
    rest = iter(found)
    return all(line in rest for line in wanted)


def boundaries(text: str, bytes_max: int) -> set[int]:
    """Where a character as people see it ends; anywhere, if the first is larger than a limit can be."""
    ends = [match.end() for match in regex.finditer(r"\X", text)]
    larger = bool(ends) and len(text[: ends[0]].encode()) > bytes_max // 4
    return set(range(len(text)) if larger else ends)
