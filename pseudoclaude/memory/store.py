"""One store: a folder of notes and its index, read and changed only under the store's lock.

It knows file names and order of writing, and nothing of models or of the other store.  ``apply`` may be run again and again with the
same journal: each file it puts in place is written and synced anew, since what a killed process or a failed sync left behind may be
visible and not durable.  A note that is neither what the journal found nor what it makes was edited by hand: it is left alone, and
``apply`` says so.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pseudoclaude.errors import MemoryFailed, listing
from pseudoclaude.memory import files
from pseudoclaude.memory.index import INDEX_NAME, drop_lines, linked_slugs, note_line, put_line
from pseudoclaude.memory.journal import Change, Journal, decode, encode
from pseudoclaude.memory.notes import Note, digest, parse
from pseudoclaude.memory.operations import Level, fold
from pseudoclaude.ports import Clock, FileSystem

LOCK_NAME = "lock"
PENDING_FOLDER = "pending"
_JOURNAL_NAME = re.compile(r"journal-([0-9]{6,})\.json")
_UNFIT = re.compile("[\x00-\x1f\x7f\ud800-\udfff/]")


class Store:
    """The notes of one level.  Every method raises ``MemoryFailed`` when the disk fails.

    ``folder`` is the store's folder, ``root`` the project's or the user's folder above it.
    """

    def __init__(self, fs: FileSystem, level: Level, folder: str, root: str) -> None:
        self._fs = fs
        self.level: Level = level
        self.folder = folder
        self._root = root

    def exists(self) -> bool:
        """Whether there is a store to read; a link in its place is refused, as is a link one folder above inside a project."""
        with files.disk_errors("looking for the store", self.folder):
            for folder in self._own_folders():
                kind = files.kind_of(self._fs, folder)
                if kind == "missing":
                    return False
                if kind != "dir":
                    raise MemoryFailed("it is not a folder of its own (a link is not followed)", where=folder)
        return True

    def prepare(self) -> None:
        """Make the folders that are missing and sync the chain of them."""
        files.make_folders(self._fs, self.folder, self._base())

    def _base(self) -> str:
        """The folder that has to exist before the store is made: the project; for the user the nearest one above their folder.

        The user's folder may itself be a link, which the user set up.
        """
        base = self._root
        if self.level == "user":
            with files.disk_errors("looking for the user's folder", base):
                if files.kind_of(self._fs, base) != "link":
                    base = posixpath.dirname(base)
                while files.kind_of(self._fs, base) == "missing":
                    base = posixpath.dirname(base)
        return base

    def _own_folders(self) -> list[str]:
        """The folders from below the base to the store."""
        base = self._base()
        chain = [self.folder]
        while posixpath.dirname(chain[-1]) != base:
            chain.append(posixpath.dirname(chain[-1]))
        return chain[::-1]

    @contextmanager
    def lock(self, clock: Clock, wait_seconds: float) -> Iterator[bool]:
        """Hold the store's lock; False when another process keeps it for longer than ``wait_seconds``."""
        with files.locked(self._fs, clock, self._path(LOCK_NAME), wait_seconds) as held:
            yield held

    def settle(self) -> None:
        """Make durable what a killed process may have left visible only, and remove its unfinished file.  Needs the lock."""
        files.drop_file(self._fs, self._path(files.ASIDE))

    # --- reading

    def index_text(self) -> str:
        """The index with its exact bytes; what is not UTF-8 is kept as lone surrogates, for a rewrite that loses nothing."""
        return (files.read_file(self._fs, self._path(INDEX_NAME)) or b"").decode("utf-8", errors="surrogateescape")

    def slugs(self) -> list[str]:
        """The notes' names without ``.md``, sorted; a name that could not stand in an index line is not a note."""
        return sorted(name[:-3] for name in self._names() if _is_note_name(name))

    def read(self, slug: str) -> bytes | None:
        """A note's bytes, None when there is none; raises ``MemoryFailed`` for a link."""
        return files.read_file(self._fs, self._path(f"{slug}.md"))

    def notes(self) -> tuple[list[Note], list[str]]:
        """All notes that can be read, by name, and a sentence for each that cannot."""
        return self._read_each(self.slugs())

    def _read_each(self, slugs: list[str]) -> tuple[list[Note], list[str]]:
        found: list[Note] = []
        problems: list[str] = []
        for slug in slugs:
            try:
                data = self.read(slug)
            except MemoryFailed as error:
                problems.append(str(error))
                continue
            if data is not None:
                found.append(parse(slug, data))
        return found, problems

    def newest_notes(self, max_bytes: int) -> tuple[list[tuple[Note, bytes]], list[str]]:
        """The notes that changed last, as far as their files make up ``max_bytes``, oldest first; and what could not be read."""
        present = self.slugs()
        listed = [slug for slug in reversed(linked_slugs(self.index_text())) if slug in present]
        found: list[tuple[Note, bytes]] = []
        problems: list[str] = []
        for slug in dict.fromkeys([*listed, *present]):
            try:
                data = self.read(slug)
            except MemoryFailed as error:
                problems.append(str(error))
                continue
            if data is not None:
                max_bytes -= len(data)
                found.append((parse(slug, data), data))
            if max_bytes <= 0:
                break
        return found[::-1], problems

    def _names(self) -> list[str]:
        with files.disk_errors("listing", self.folder):
            return sorted(self._fs.listdir(self.folder))

    def _path(self, name: str) -> str:
        return posixpath.join(self.folder, name)

    # --- journals

    def journals(self) -> tuple[list[tuple[str, Journal]], list[str]]:
        """The journals found, oldest first, by file name; and a sentence for each file that is none."""
        found: list[tuple[str, Journal]] = []
        problems: list[str] = []
        for name in self._journal_names():
            journal = decode(files.read_file(self._fs, self._path(name)) or b"")
            if journal is None:
                problems.append(
                    f"{self._path(name)} is not a whole journal of this version: its update counts as never made; left there"
                )
            else:
                found.append((name, journal))
        return found, problems

    def add_journal(self, journal: Journal) -> str:
        """Put a new journal in place and return its name.  From here on the update is made."""
        names = self._journal_names()
        number = int(_numbered(names[-1])) + 1 if names else 1
        name = f"journal-{number:06d}.json"
        self.put_journal(name, journal)
        return name

    def put_journal(self, name: str, journal: Journal) -> None:
        files.put_file(self._fs, self.folder, name, encode(journal))

    def drop_journal(self, name: str) -> None:
        files.drop_file(self._fs, self._path(name))

    def _journal_names(self) -> list[str]:
        return sorted(
            (name for name in self._names() if _JOURNAL_NAME.fullmatch(name)), key=lambda name: int(_numbered(name))
        )

    # --- pending turns

    def drop_pending(self, name: str) -> None:
        """Remove a turn's record; durable, also when it is gone already."""
        folder = self._path(PENDING_FOLDER)
        with files.disk_errors("looking", folder):
            if files.kind_of(self._fs, folder) != "dir":
                return
        files.drop_file(self._fs, posixpath.join(folder, name))

    # --- changing

    def apply(self, journal: Journal) -> list[str]:
        """Bring the notes and the index to what the journal says, durably.  Returns a sentence for each note left alone."""
        changes = journal.of(self.level)
        problems: list[str] = []
        text = self.index_text()
        for change in changes:
            current = digest(self.read(change.slug))
            if current in (change.before, change.after):
                self._write_note(change, journal)
                text = _merged(text, change)
            else:
                problems.append(f"{self._path(change.slug)}.md was edited by hand meanwhile; it was left as it is")
                if current and change.slug not in linked_slugs(text):
                    text = put_line(text, change.slug, change.line)
        if changes:
            self.put_index(text)
        return problems

    def _write_note(self, change: Change, journal: Journal) -> None:
        data = change.note_bytes(journal.updated, journal.source)
        if data is None:
            files.drop_file(self._fs, self._path(f"{change.slug}.md"))
        else:
            files.put_file(self._fs, self.folder, f"{change.slug}.md", data)

    def put_index(self, text: str) -> None:
        files.put_file(self._fs, self.folder, INDEX_NAME, text.encode("utf-8", errors="surrogateescape"))

    def add_missing_lines(self) -> list[str]:
        """Give every note a line.  Returns a sentence when there was something to do, and one for lines without a note."""
        text = self.index_text()
        linked = {fold(slug) for slug in linked_slugs(text)}
        notes, problems = self._read_each([slug for slug in self.slugs() if fold(slug) not in linked])
        if notes:
            for note in notes:
                text = put_line(text, note.slug, note_line(note.slug, note.name, note.description))
            self.put_index(text)
            problems.append(f"{self._path(INDEX_NAME)} had no line for {listing([note.slug for note in notes])}; added")
        dangling = self.dangling(text)
        if dangling:
            problems.append(
                f"{self._path(INDEX_NAME)} names notes that do not exist: {listing(dangling)}; `memory rebuild` removes them"
            )
        return problems

    def dangling(self, text: str) -> list[str]:
        """The notes that ``text`` has a line for and that do not exist."""
        present = {fold(slug) for slug in self.slugs()}
        return [slug for slug in linked_slugs(text) if fold(slug) not in present]

    def rebuild(self) -> list[str]:
        """The index made to agree with the notes: one line each, none without a note, every other line kept.  Says what it did."""
        text = self.index_text()
        dangling = self.dangling(text)
        text = drop_lines(text, lambda slug: slug in dangling)
        notes, done = self.notes()
        for note in notes:
            line = note_line(note.slug, note.name, note.description)
            if linked_slugs(text).count(note.slug) > 1:
                done.append(f"{note.slug} had more than one line")
                text = put_line(text, note.slug, line, line)
            elif note.slug not in linked_slugs(text):
                done.append(f"{note.slug} had no line")
                text = put_line(text, note.slug, line)
        done += [f"{slug} had a line and does not exist" for slug in dangling]
        self.put_index(text)
        return done


def _merged(text: str, change: Change) -> str:
    if change.action == "delete":
        return drop_lines(text, lambda slug: slug == change.slug)
    return put_line(text, change.slug, change.line, change.line_before)


def _is_note_name(name: str) -> bool:
    return (
        name.endswith(".md")
        and not name.startswith(".")
        and fold(name) != fold(INDEX_NAME)
        and _UNFIT.search(name) is None
    )


def _numbered(name: str) -> str:
    match = _JOURNAL_NAME.fullmatch(name)
    assert match is not None
    return match[1]


def project_store(fs: FileSystem, project_root: str) -> Store:
    """The store of a project; the project's folder has to exist."""
    return Store(fs, "project", posixpath.join(project_root, ".pseudoclaude", "memory"), project_root)


def user_store(fs: FileSystem, user_root: str) -> Store:
    """The store of the user; their folder and what is missing above it are made."""
    return Store(fs, "user", posixpath.join(user_root, "memory"), user_root)
