"""Ids and names on the way out, and what all projections share."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pseudoclaude.providers.wire
from pseudoclaude.providers import to_wire
from pseudoclaude.providers.wire import wire_name
from pseudoclaude.providers.wire.aliases import call_ids
from tests.protocol.build import answer, asks, calls, says
from tests.protocol.histories import DERANDOMIZED


def test_an_unknown_dialect_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no projection for dialect 'cobol'; known are anthropic, openai-chat"):
        to_wire("cobol", (asks("a"),))


@pytest.mark.parametrize("name", ["read_file", "a-b", "n" * 64])
def test_a_legal_name_goes_as_it_is(name: str) -> None:
    assert wire_name(name) == name


def test_illegal_names_stay_different_and_readable() -> None:
    names = ["a.b", "a:b", "a b", "", "日本", "n" * 65, "n" * 66]
    sent = [wire_name(name) for name in names]
    assert len(set(sent)) == len(names)
    assert sent[0].startswith("a_b_")
    assert all(wire_name(name) == name for name in sent), "rewriting twice equals once"


@settings(DERANDOMIZED, max_examples=40)
@given(st.lists(st.sampled_from(["", "a", "a", "b", "a.b", "a:b", "é", "x" * 41, "x" * 42, "x" * 64]), max_size=12))
def test_ids_are_legal_unique_and_the_same_on_both_sides(originals: list[str]) -> None:
    ids = call_ids(40)
    sent = [ids.call(original) for original in originals]
    assert len(set(sent)) == len(sent)
    assert all(
        0 < len(wire) <= 40 and wire.replace("_", "").replace("-", "").isalnum() and wire.isascii() for wire in sent
    )
    assert [ids.result(original) for original in originals] == sent
    again = call_ids(40)
    assert [again.call(wire) for wire in sent] == sent, "rewriting twice equals once"


def test_an_id_that_looks_like_the_stand_in_of_another_does_not_collide() -> None:
    stand_in = call_ids(40).call("a:b")
    for order in ([stand_in, "a:b"], ["a:b", stand_in]):
        ids = call_ids(40)
        assert len({ids.call(original) for original in order}) == 2


def test_a_later_call_does_not_change_an_earlier_id() -> None:
    one, two = call_ids(40), call_ids(40)
    assert one.call("c") == two.call("c")
    assert [two.call("c"), two.call("c")] != [one.call("c")] * 2


def test_the_history_is_not_changed() -> None:
    history = (asks("a"), calls("c", "c"), answer("c", ""), answer("c", "y"), says(" "), asks(""))
    before = repr(history)
    for dialect in ("anthropic", "openai-chat", "openai-responses"):
        assert to_wire(dialect, history) == to_wire(dialect, history)
    assert repr(history) == before


def test_an_empty_history_is_an_empty_list() -> None:
    assert to_wire("anthropic", ()) == to_wire("openai-chat", ()) == to_wire("openai-responses", ()) == []


def test_the_projection_imports_no_sdk() -> None:
    """In a process of its own, since this one may have imported them for other tests."""
    code = "import sys, pseudoclaude.providers; print(sorted({'anthropic', 'openai', 'httpx', 'httpx2'} & sys.modules.keys()))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_no_module_of_the_projection_imports_inside_a_function() -> None:
    for path in sorted(Path(pseudoclaude.providers.wire.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nested = [
            node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) and node not in tree.body
        ]
        assert nested == [], path.name
