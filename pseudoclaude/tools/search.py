"""Searching the project's files for a regular expression.

Refuses to run away: an expression that backtracks is stopped, large and binary files are left out and counted, and so are version
control, dependencies and caches.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import regex
from msgspec import Meta

from pseudoclaude.errors import ToolFailed
from pseudoclaude.ports import ToolOutput
from pseudoclaude.text import cut_graphemes, decode
from pseudoclaude.tools.arguments import parsed, spec_of
from pseudoclaude.tools.files import SKIPPED_FOLDERS
from pseudoclaude.tools.project import Project

HITS_MAX = 200
LINE_BYTES_MAX = 300
FILE_BYTES_MAX = 5_000_000
BINARY_PROBE_BYTES = 8_192
FILE_SECONDS_MAX = 2.0
"""How long one file may be searched, against expressions that backtrack without end."""


class SearchArguments(msgspec.Struct, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(description="Regular expression (Python's syntax); ^ and $ match at lines.")]
    path: Annotated[str, Meta(description="File or folder to search, relative to the project folder.")] = "."
    glob: Annotated[str, Meta(description="Only files whose name matches, such as *.py.")] = "*"
    ignore_case: bool = False


class Search:
    changes = False
    spec = spec_of(
        "search", f"Search files for a regular expression: path:line: text, at most {HITS_MAX} hits.", SearchArguments
    )

    def __init__(self, project: Project) -> None:
        self._project = project

    def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        wanted = parsed(arguments, SearchArguments)
        try:
            pattern = regex.compile(wanted.pattern, regex.MULTILINE | (regex.IGNORECASE if wanted.ignore_case else 0))
        except regex.error as error:
            raise ToolFailed(f"the pattern is no regular expression: {error}") from error
        place = self._project.readable(wanted.path)
        if not place.exists():
            raise ToolFailed(f"there is no {wanted.path!r}", do_next="List the folder to see what is there")
        lines: list[str] = []
        skipped = 0
        for file in _files(place, wanted.glob):
            text = _text_of(file)
            if text is None:
                skipped += 1
                continue
            lines += _hits(pattern, text, self._project.shown(file), HITS_MAX + 1 - len(lines))
            if len(lines) > HITS_MAX:
                lines[HITS_MAX:] = [f"[More than {HITS_MAX} hits; narrow the search.]"]
                break
        if skipped:
            lines.append(
                f"[{skipped:,} files were left out: binary, unreadable, or larger than {FILE_BYTES_MAX:,} bytes.]"
            )
        return ToolOutput("\n".join(lines) or "[No hits.]")


def _files(place: Path, glob: str) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(names):
            file = Path(folder, name)
            if fnmatch.fnmatch(name, glob) and file.is_file() and not file.is_symlink():
                yield file


def _text_of(file: Path) -> str | None:
    """The text of a file that can be searched, else None."""
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            return None
        data = file.read_bytes()
    except OSError:
        return None  # counted as left out by the caller
    return None if b"\x00" in data[:BINARY_PROBE_BYTES] else decode(data)


def _hits(pattern: regex.Pattern[str], text: str, name: str, most: int) -> list[str]:
    """One line for each line of ``text`` in which a match begins, at most ``most``."""
    found: list[str] = []
    number, seen, last = 1, 0, 0
    try:
        for match in pattern.finditer(text, timeout=FILE_SECONDS_MAX):
            number += text.count("\n", seen, match.start())
            seen = match.start()
            if number == last:
                continue
            last = number
            begin, end = text.rfind("\n", 0, seen) + 1, text.find("\n", seen)
            line = text[begin : end if end >= 0 else len(text)]
            found.append(f"{name}:{number}: {cut_graphemes(line, LINE_BYTES_MAX)}")
            if len(found) == most:
                break
    except TimeoutError:
        found.append(f"[{name}: the search took longer than {FILE_SECONDS_MAX:g} seconds and was stopped there.]")
    return found
