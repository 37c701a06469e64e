from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.errors import InvalidOperation
from pseudoclaude.memory.notes import Note, parse, render, timestamp
from pseudoclaude.memory.operations import validate_operation


def test_a_note_is_markdown_with_front_matter() -> None:
    note = Note(
        "build", "Build: it", "how", "Run `make`.\n\n- a\n- b", timestamp(1_764_547_200.25), "session s1, messages 1-2"
    )
    assert render(note).decode() == (
        "---\nname: 'Build: it'\ndescription: how\nupdated: '2025-12-01T00:00:00.250Z'\n"
        "source: session s1, messages 1-2\n---\n\nRun `make`.\n\n- a\n- b\n"
    )
    assert parse("build", render(note)) == note


@pytest.mark.parametrize(
    ("data", "name", "description", "body"),
    [
        (b"", "mine", "", ""),
        (b"just text\nmore", "mine", "just text", "just text\nmore"),
        (b"---\nname: X\n---\nbody", "X", "body", "body"),
        (b"\xef\xbb\xbf---\r\nname: X\r\ndescription: two\r\n---\r\nbody\r\n", "X", "two", "body"),
        (b"---\nname: X\nno end", "mine", "---", "---\nname: X\nno end"),
        (b"---\n: [broken\n---\nbody", "mine", "---", "---\n: [broken\n---\nbody"),
        (b"---\n- a\n- list\n---\nbody", "mine", "body", "body"),
        (b"---\nname: 2026-12-01\ndescription: [a]\n---\nbody", "2026-12-01", "body", "body"),
        (b"---\nname: null\n---\n---\nrule above", "mine", "---", "---\nrule above"),
        (b"caf\xe9", "mine", "caf\ufffd", "caf\ufffd"),
    ],
)
def test_whatever_a_person_wrote_is_a_note(data: bytes, name: str, description: str, body: str) -> None:
    note = parse("mine", data)
    assert (note.name, note.description, note.body) == (name, description, body)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.text(max_size=40), st.text(max_size=40), st.text(min_size=1, max_size=60))
def test_what_an_operation_says_is_what_its_file_says(name: str, description: str, body: str) -> None:
    value = {"action": "create", "level": "user", "slug": "x", "name": name, "description": description, "body": body}
    try:
        operation = validate_operation(value)
    except InvalidOperation:
        return
    note = Note("x", operation.name, operation.description, operation.body, timestamp(0), "s")
    assert parse("x", render(note)) == note
