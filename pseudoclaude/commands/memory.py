"""``pseudoclaude memory``: what is remembered, for people."""

from __future__ import annotations

from typing import TextIO

from pseudoclaude.commands.screen import visible
from pseudoclaude.memory import MemoryManager


def list_notes(memory: MemoryManager, out: TextIO, err: TextIO) -> int:
    """All notes by level.  Returns 0; raises ``MemoryFailed``."""
    notes = memory.notes()
    for level, found in notes.items():
        if found:
            print(f"{level}:", file=out)
        for note in found:
            print(visible(f"  {note.slug}: {note.name}. {note.description} ({note.updated or 'no date'})"), file=out)
    if not any(notes.values()):
        print("Nothing is remembered yet.", file=out)
    _tell(memory, err)
    return 0


def show_note(memory: MemoryManager, slug: str, out: TextIO, err: TextIO) -> int:
    """One note, whole.  Returns 0, or 1 when there is none of that name; raises ``MemoryFailed``."""
    note = memory.show(slug)
    _tell(memory, err)
    if note is None:
        print(f"pseudoclaude: there is no note {slug!r}; `pseudoclaude memory list` shows what there is", file=err)
        return 1
    print(visible(f"{note.name}\n{note.description}\nupdated {note.updated or 'never'}\n\n{note.body}"), file=out)
    return 0


def rebuild(memory: MemoryManager, out: TextIO, err: TextIO) -> int:
    """Make both indexes agree with their notes.  Returns 0; raises ``MemoryFailed``."""
    done = memory.rebuild()
    for sentence in done:
        print(visible(sentence), file=out)
    if not done:
        print("Both indexes agree with their notes; nothing was changed.", file=out)
    _tell(memory, err)
    return 0


def _tell(memory: MemoryManager, err: TextIO) -> None:
    for sentence in memory.take_reports():
        print(visible(f"pseudoclaude: {sentence}"), file=err)
