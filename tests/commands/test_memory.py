"""``memory list|show|rebuild``."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pseudoclaude.commands.agent import open_memory
from pseudoclaude.commands.memory import list_notes, rebuild, show_note
from pseudoclaude.memory import MemoryManager
from tests.commands.build import Office

NOTE = "---\nname: Tests\ndescription: How they run\nupdated: 2026-01-02\n---\nmake \x1btest\n"


@pytest.fixture
def memory(tmp_path: Path) -> MemoryManager:
    office = Office(tmp_path)
    folder = Path(office.place.project) / ".pseudoclaude" / "memory"
    folder.mkdir(parents=True)
    (folder / "tests.md").write_text(NOTE)
    return open_memory(office.machine, office.place)


def test_notes_are_listed_by_level(memory: MemoryManager) -> None:
    out, err = io.StringIO(), io.StringIO()
    assert list_notes(memory, out, err) == 0
    assert out.getvalue() == "project:\n  tests: Tests. How they run (2026-01-02)\n"


def test_without_notes_it_says_so(tmp_path: Path) -> None:
    office = Office(tmp_path)
    out = io.StringIO()
    assert list_notes(open_memory(office.machine, office.place), out, io.StringIO()) == 0
    assert out.getvalue() == "Nothing is remembered yet.\n"


def test_a_note_is_shown_whole_and_cannot_steer_the_terminal(memory: MemoryManager) -> None:
    out = io.StringIO()
    assert show_note(memory, "tests", out, io.StringIO()) == 0
    assert "make ␛test" in out.getvalue()
    err = io.StringIO()
    assert show_note(memory, "nothing", io.StringIO(), err) == 1
    assert "there is no note 'nothing'" in err.getvalue()


def test_rebuilding_says_what_it_did_and_then_that_nothing_is_to_do(memory: MemoryManager) -> None:
    out = io.StringIO()
    assert rebuild(memory, out, io.StringIO()) == 0
    assert "tests" in out.getvalue()
    again = io.StringIO()
    rebuild(memory, again, io.StringIO())
    assert again.getvalue() == "Both indexes agree with their notes; nothing was changed.\n"
