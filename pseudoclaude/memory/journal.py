"""The journal of one update: everything needed to finish it, or to find it finished, in one checksummed file.

An update is old until its journal is in place and new from then on, however often it is interrupted: each change says what the
note was before and is after, and the note's bytes follow from the change, the journal's own timestamp and its source.  A file whose
checksum does not hold is no journal.
"""

from __future__ import annotations

import hashlib

import msgspec

from pseudoclaude.memory.index import note_line
from pseudoclaude.memory.notes import Note, digest, render
from pseudoclaude.memory.operations import Action, Level

VERSION = 1


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One validated operation with nothing left open.  ``before`` and ``after`` are digests of the file, empty where there is none;
    ``line_before`` is the index line that memory itself had written for the note.
    """

    action: Action
    level: Level
    slug: str
    before: str
    after: str
    name: str = ""
    description: str = ""
    body: str = ""
    line_before: str = ""

    def note_bytes(self, updated: str, source: str) -> bytes | None:
        """The file after the change; None when there is none."""
        if self.action == "delete":
            return None
        return render(Note(self.slug, self.name, self.description, self.body, updated, source))

    @property
    def line(self) -> str:
        """The index line after the change; empty when there is none."""
        return "" if self.action == "delete" else note_line(self.slug, self.name, self.description)


def resolved(change: Change, updated: str, source: str) -> Change:
    """``change`` with its ``after`` digest filled in."""
    return msgspec.structs.replace(change, after=digest(change.note_bytes(updated, source)))


class Journal(msgspec.Struct, frozen=True, omit_defaults=True):
    """One update.  ``project`` is the absolute path of its project, ``pending`` the turn's record in that project's store."""

    version: int
    project: str
    updated: str
    changes: tuple[Change, ...]
    source: str = ""
    pending: str = ""

    def of(self, level: Level) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.level == level)

    def without(self, level: Level) -> Journal:
        return msgspec.structs.replace(self, changes=tuple(change for change in self.changes if change.level != level))


def encode(journal: Journal) -> bytes:
    """The journal's file: one line of JSON, then its SHA-256 in hex on a line of its own."""
    body = msgspec.json.encode(journal)
    return body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n"


def decode(data: bytes) -> Journal | None:
    """The journal in a file's bytes; None when they are torn or damaged, or of another version."""
    body, _, checksum = data.removesuffix(b"\n").rpartition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        return None
    try:
        journal = msgspec.json.decode(body, type=Journal)
    except (msgspec.DecodeError, RecursionError):
        return None
    return journal if journal.version == VERSION else None
