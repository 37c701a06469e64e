"""The front door: what it refuses, how it answers, and that no JSON value makes it raise."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.protocol import check
from pseudoclaude.protocol.check import DIALECTS, judge
from pseudoclaude.protocol.context import DEFAULT, context_of
from tests.protocol.cases import OWN_CASES, Case, read_cases
from tests.protocol.histories import DERANDOMIZED
from tests.protocol.json_values import JSON_VALUES

CONTEXT: dict[str, Any] = {
    "tools": ["f"],
    "thinking": "enabled",
    "prefix_binding": "error",
    "thinking_order": ["sig:ok:1", "x"],
    "thinking_prefixes": {"sig:ok:1": [None, {"role": "user"}], "x": []},
    "original_latest_assistant": [None, {"type": "thinking"}],
    "betas": ["compact-2026-09-04"],
    "known_ids": ["x"],
    "store": False,
    "pairs": {"x": "a.b"},
    "previous_response": {"open_calls": ["x"]},
    "strict_upstream": True,
    "model": "gemini-3",
}


@pytest.mark.slow
@pytest.mark.parametrize("dialect", list(DIALECTS))
@settings(DERANDOMIZED)
@given(st.lists(JSON_VALUES, max_size=4), st.booleans())
def test_no_json_value_makes_it_raise_or_changes(dialect: str, messages: list[Any], with_context: bool) -> None:
    before = copy.deepcopy(messages)
    for violation in check(dialect, messages, context=CONTEXT if with_context else None):
        assert violation.path
        assert violation.message
    assert messages == before


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses"])
@settings(DERANDOMIZED)
@given(st.lists(JSON_VALUES, max_size=3))
def test_no_screen_lets_pass_what_a_rule_reports(dialect: str, messages: list[Any]) -> None:
    if DIALECTS[dialect].is_plain(messages):
        assert judge(DIALECTS[dialect], messages, "conservative", DEFAULT) == []


ODD: tuple[Any, ...] = (5, ["odd"], {"odd": 1})


def _with_one_odd_value(value: Any) -> Iterator[Any]:
    """``value`` with each of its members in turn, at any depth, replaced by each odd value."""
    places = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in places:
        for odd in (*ODD, *_with_one_odd_value(inner)):
            changed = copy.copy(value)
            changed[key] = odd
            yield changed


SMALL_CASES = [case for case in read_cases(OWN_CASES) if len(repr(case.messages)) < 3000]


@pytest.mark.slow
@pytest.mark.parametrize("case", SMALL_CASES, ids=lambda case: case.id)
def test_no_value_in_any_position_of_a_case_makes_it_raise(case: Case) -> None:
    for messages in _with_one_odd_value(case.messages):
        assert isinstance(check(case.provider, messages, context=case.context), list)


@pytest.mark.parametrize("dialect", list(DIALECTS))
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_part_and_a_call_of_no_type(dialect: str, odd: Any) -> None:
    for odd_part in (
        {"type": odd, "text": "hi"},
        {"type": "tool_result", "tool_use_id": odd, "content": [{"type": odd}]},
    ):
        for key in ("content", "parts"):
            assert isinstance(check(dialect, [{"role": "user", key: [odd_part]}]), list)
    for item in (
        {"type": "function_call", "call_id": odd},
        {"type": "mcp_approval_response", "approval_request_id": odd},
    ):
        assert isinstance(check(dialect, [item]), list)


@pytest.mark.parametrize("key", sorted(CONTEXT.keys() - {"previous_response"}))
def test_a_context_value_of_another_type_is_refused_by_its_key(key: str) -> None:
    plain = [{"role": "user", "content": "q"}]
    for dialect in DIALECTS:
        with pytest.raises(ValueError, match=f"context key '{key}' has a value of another type: Expected"):
            check(dialect, plain, context={key: 5})


def test_tools_may_be_declared_in_any_form() -> None:
    assert context_of({"tools": [[1], {"function": 1}, {"type": ["x"]}, None]}).tools == ("[1]", "", "['x']", "None")


def test_no_screen_lets_pass_an_invalid_case() -> None:
    invalid = [
        case for case in read_cases(OWN_CASES) if not case.valid and not case.context and len(case.messages) < 1000
    ]
    assert len(invalid) > 20
    assert [case.id for case in invalid if DIALECTS[case.provider].is_plain(case.messages)] == []


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses"])
def test_the_screens_recognise_a_plain_history(dialect: str) -> None:
    """Otherwise they would be sound and useless."""
    plain = {
        "anthropic": [
            {"role": "user", "content": "wörld"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"path": "x"}}]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ok", "is_error": True}],
            },
        ],
        "openai-chat": [
            {"role": "system", "content": "be terse"},
            {"role": "user", "content": "q"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "a", "content": ""},
        ],
        "openai-responses": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": ""},
        ],
    }[dialect]
    assert DIALECTS[dialect].is_plain(plain)
    assert not DIALECTS[dialect].is_plain(plain[:-1])


def test_violations_come_in_the_order_of_the_rules_with_their_place() -> None:
    found = check("anthropic", [{"role": "user", "content": "q", "ts": 1}, {"role": "assistant", "content": "a"}])
    assert [(violation.rule, violation.path) for violation in found] == [
        ("A06", "messages[0].ts"),
        ("A12", "messages[1]"),
    ]


def test_what_is_unknown_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unknown dialect 'cobol'; known are anthropic, openai-chat"):
        check("cobol", [])
    with pytest.raises(ValueError, match="a profile is 'firm' or 'conservative', not 'strict'"):
        check("anthropic", [], profile="strict")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown context keys prefil; known are tools, prefill"):
        check("anthropic", [], context={"prefil": True})


def test_of_a_previous_response_the_id_may_be_all_that_is_known() -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    assert check("openai-responses", [output], context={"previous_response": "resp_1"}) == []
    assert [violation.rule for violation in check("openai-responses", [output])] == ["R02"]


def test_an_empty_tool_list_is_not_the_same_as_none_known() -> None:
    assert context_of({"tools": []}).tools == ()
    assert context_of({}).tools is None
    assert context_of({"tools": None}).tools is None
