"""Notes that a person made, under whatever name their disk allows: one line each, however often a session starts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from pseudoclaude.memory.index import linked_slugs
from tests.memory.build import manager, stores
from tests.memory.test_index import FILE_NAMES

SPACES = ("\u00a0", "\u202f", "\u3000", "\u2028", "\u2029", "\u0085", " ")


def index_after_starts(root: Path, starts: int) -> str:
    for _ in range(starts):
        manager(root).refresh_index()
        manager(root).rebuild()
    return (stores(root)[1] / "MEMORY.md").read_bytes().decode("utf-8")


def handwritten(root: Path, slug: str) -> Path:
    user = stores(root)[1]
    user.mkdir(parents=True)
    (root / "project").mkdir()
    (user / f"{slug}.md").write_text("by hand")
    return user


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=25, database=None)
@given(slug=FILE_NAMES.filter(lambda slug: slug[0] != "." and slug.casefold() != "memory"))
def test_a_note_by_hand_has_one_line_after_any_number_of_starts(slug: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        handwritten(Path(folder), slug)
        assert linked_slugs(index_after_starts(Path(folder), 1)) == (slug,)
        assert linked_slugs(index_after_starts(Path(folder), 3)) == (slug,)


@pytest.mark.parametrize("space", SPACES)
def test_white_space_in_a_name_makes_no_second_line(tmp_path: Path, space: str) -> None:
    handwritten(tmp_path, f"my{space}note")
    assert linked_slugs(index_after_starts(tmp_path, 3)) == (f"my{space}note",)


@pytest.mark.parametrize("space", SPACES)
def test_lines_that_earlier_starts_doubled_become_one(tmp_path: Path, space: str) -> None:
    slug = f"my{space}note"
    user = handwritten(tmp_path, slug)
    doubled = f"- [{slug}]({slug.replace(' ', '%20')}.md): by hand\n".replace(f"[{slug}]", "[my note]")
    (user / "MEMORY.md").write_bytes(f"mine\n{doubled * 3}".encode())
    text = index_after_starts(tmp_path, 2)
    assert linked_slugs(text) == (slug,)
    assert text.startswith("mine\n- [my note](my%")
    assert text.count("\n") == 2
