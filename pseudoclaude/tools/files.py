"""Reading, writing, editing and listing the project's files.

Promises: bytes are taken as they are (an edit leaves everything outside its match untouched, whatever the encoding); a write or edit is
whole or absent, since it is written aside, synced and renamed; what is returned fits in a context, and says how to get the rest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
from msgspec import Meta

from pseudoclaude.errors import ToolFailed
from pseudoclaude.ports import ToolOutput
from pseudoclaude.tools.arguments import parsed, spec_of
from pseudoclaude.tools.project import Project

PAGE_BYTES = 40_000
"""Below the limit of a single result, so that reading a spilled result is not spilled again."""
EDIT_BYTES_MAX = 50_000_000
ENTRIES_MAX = 1_000
SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__"})
"""Left out of recursive listings and searches."""
ASIDE = ".pseudoclaude-write.tmp"

PathText = Annotated[str, Meta(description="Path, relative to the project folder.")]


# --- read ------------------------------------------------------------------------------------------------------


class ReadArguments(msgspec.Struct, forbid_unknown_fields=True):
    path: PathText
    line: Annotated[int, Meta(ge=1, description="First line to show, counted from 1.")] = 1
    offset: Annotated[int, Meta(ge=0, description="First byte to show; lines are counted from there.")] = 0


class ReadFile:
    changes = False
    spec = spec_of("read_file", f"Read a file, at most {PAGE_BYTES:,} bytes at a time.", ReadArguments)

    def __init__(self, project: Project) -> None:
        self._project = project

    def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        wanted = parsed(arguments, ReadArguments)
        with self._project.readable_file(wanted.path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(wanted.offset)
            _skip_lines(file, wanted.line - 1)
            start = file.tell()
            page = _page(file.read(PAGE_BYTES + 1))
        end = start + len(page)
        if not page:
            return ToolOutput(f"[The file is empty beyond byte {start:,}; it has {size:,} bytes.]")
        if end >= size:
            return ToolOutput(page)
        return ToolOutput(
            page + f"\n[Bytes {start:,} to {end:,} of {size:,}. Read on with offset={end} and line=1.]".encode()
        )


def _skip_lines(file: BinaryIO, count: int) -> None:
    while count > 0:
        piece = file.readline(1 << 20)
        if not piece:
            return
        count -= piece.endswith(b"\n")


def _page(data: bytes) -> bytes:
    """At most a page: whole lines where they fill half of it, else whole UTF-8 characters."""
    if len(data) <= PAGE_BYTES:
        return data
    newline = data.rfind(b"\n", PAGE_BYTES // 2, PAGE_BYTES)
    if newline >= 0:
        return data[: newline + 1]
    end = PAGE_BYTES
    while end > PAGE_BYTES - 4 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]


# --- write and edit --------------------------------------------------------------------------------------------


class WriteArguments(msgspec.Struct, forbid_unknown_fields=True):
    path: PathText
    content: Annotated[str, Meta(description="The whole new content.")]


class WriteFile:
    changes = True
    spec = spec_of(
        "write_file", "Write a whole file; folders are made as needed, an old file is replaced.", WriteArguments
    )

    def __init__(self, project: Project) -> None:
        self._project = project

    def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        wanted = parsed(arguments, WriteArguments)
        place = self._project.changeable(wanted.path)
        data = wanted.content.encode("utf-8")
        existed = place.exists()
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, data)
        done = "Replaced" if existed else "Wrote the new file"
        return ToolOutput(f"{done} {self._project.shown(place)} ({len(data):,} bytes).")


class EditArguments(msgspec.Struct, forbid_unknown_fields=True):
    path: PathText
    old: Annotated[str, Meta(description="Text to replace, exactly as it stands in the file, with enough around it.")]
    new: Annotated[str, Meta(description="Text to put in its place.")]
    all: Annotated[bool, Meta(description="Replace every occurrence instead of the only one.")] = False


class EditFile:
    changes = True
    spec = spec_of("edit_file", "Replace one piece of text in a file. It must occur exactly once.", EditArguments)

    def __init__(self, project: Project) -> None:
        self._project = project

    def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        wanted = parsed(arguments, EditArguments)
        self._project.readable_file(wanted.path)
        place = self._project.changeable(wanted.path)
        if place.stat().st_size > EDIT_BYTES_MAX:
            raise ToolFailed(f"{wanted.path!r} is larger than {EDIT_BYTES_MAX:,} bytes", do_next="Use a command")
        data, old = place.read_bytes(), wanted.old.encode("utf-8")
        count = data.count(old) if old else 0
        if count == 0 or (count > 1 and not wanted.all):
            raise ToolFailed(
                f"the text to replace occurs {count:,} times in {wanted.path!r}"
                if old
                else "the text to replace is empty",
                still_true="Nothing was changed",
                do_next="Read the file and send the text exactly as it stands there, with enough around it to be the only one",
            )
        write_whole(place, data.replace(old, wanted.new.encode("utf-8")))
        return ToolOutput(f"Replaced {count:,} occurrence{'s' if count > 1 else ''} in {self._project.shown(place)}.")


def write_whole(place: Path, data: bytes) -> None:
    """Put ``data`` in place of the file, whole or not at all; its mode stays."""
    mode = place.stat().st_mode if place.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        raise ToolFailed(f"{place.name!r} is no regular file", still_true="Nothing was changed")
    aside = place.with_name(ASIDE)
    aside.unlink(missing_ok=True)
    try:
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            os.fsync(file.fileno())
        aside.replace(place)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


# --- list ------------------------------------------------------------------------------------------------------


class ListArguments(msgspec.Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="Folder, relative to the project folder.")] = "."
    recursive: Annotated[bool, Meta(description="Also what is in the folders below.")] = False


class ListFiles:
    changes = False
    spec = spec_of(
        "list_files",
        f"List a folder: folders end in /, files have their size. At most {ENTRIES_MAX:,} entries.",
        ListArguments,
    )

    def __init__(self, project: Project) -> None:
        self._project = project

    def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        wanted = parsed(arguments, ListArguments)
        place = self._project.readable(wanted.path)
        if not place.is_dir():
            raise ToolFailed(f"there is no folder {wanted.path!r}")
        lines: list[str] = []
        for entry in _entries(place, wanted.recursive):
            if len(lines) == ENTRIES_MAX:
                lines.append(f"[More than {ENTRIES_MAX:,} entries; list a folder below to see the rest.]")
                break
            lines.append(_line(entry, place))
        return ToolOutput("\n".join(lines) or "[The folder is empty.]")


def _entries(folder: Path, recursive: bool) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        yield entry
        if recursive and entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED_FOLDERS:
            yield from _entries(Path(entry.path), recursive)


def _line(entry: os.DirEntry[str], start: Path) -> str:
    name = str(Path(entry.path).relative_to(start))
    if entry.is_symlink():
        return f"{name} -> {Path(entry.path).readlink()}"
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    return f"{name}  ({entry.stat(follow_symlinks=False).st_size:,} bytes)"
