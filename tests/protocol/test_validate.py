"""Judging a document: bodies, lists, what a body says of itself, and what cannot be read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.protocol.check import DIALECTS
from pseudoclaude.protocol.validate import validate_document
from tests.protocol.histories import DERANDOMIZED
from tests.protocol.json_values import JSON_VALUES

USER = {"role": "user", "content": "q"}
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}


def _rules(document: Any, dialect: str = "anthropic", **options: Any) -> list[str]:
    report = validate_document(json.dumps(document).encode(), dialect, **options)
    assert report.unreadable == ""
    return [violation.rule for violation in report.violations]


def test_a_valid_body() -> None:
    report = validate_document(json.dumps({"messages": [USER]}).encode(), "anthropic")
    assert (report.exit_code, report.messages, report.violations) == (0, 1, ())


def test_a_bare_list() -> None:
    assert _rules([USER, CALL, USER]) == ["A20"]


def test_a_violation_says_what_the_rule_means_and_how_to_mend_it() -> None:
    report = validate_document(json.dumps([USER, CALL, USER]).encode(), "anthropic")
    violation = report.violations[0]
    assert report.exit_code == 1
    assert violation.path == "messages[1].content[0]"
    assert "'t' has no result" in violation.message
    assert "tool_result" in violation.meaning
    assert "outcome unknown" in violation.repair


def test_input_items_and_plain_input() -> None:
    assert _rules({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "openai-responses") == [
        "R02"
    ]
    assert _rules({"input": "hello"}, "openai-responses") == []


def test_contents() -> None:
    assert (
        _rules({"contents": [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}]}, "gemini")
        == ["X06"] * 2
    )


@pytest.mark.parametrize(
    ("model", "rules"),
    [
        ("claude-opus-4-8", ["A12"]),
        ("claude-sonnet-5", ["A12"]),
        ("claude-opus-4-6", ["A12"]),
        ("claude-haiku-4-5-20251001", []),
        ("claude-sonnet-4-20250514", []),
        ("claude-opus-4-1", []),
        ("claude-3-5-sonnet-20240620", []),
        (None, ["A12"]),
    ],
)
def test_the_model_decides_whether_a_final_assistant_message_is_continued(model: str | None, rules: list[str]) -> None:
    assert _rules({"model": model, "messages": [USER, {"role": "assistant", "content": "par"}]}) == rules


def test_declared_tools_in_the_forms_of_all_apis() -> None:
    nested = {"type": "function", "function": {"name": "fs.read"}}
    flat = {"name": "fs.read"}
    for tool in (nested, flat):
        assert _rules({"messages": [USER], "tools": [tool]}) == ["A28"]
    assert _rules({"messages": [USER, CALL, RESULT], "tools": []}) == ["A30"]
    assert _rules({"messages": [USER, CALL, RESULT]}) == []


def test_thinking_mode_and_a_paused_turn_are_read_from_the_body() -> None:
    assert _rules({"messages": [USER, CALL, RESULT], "thinking": {"type": "enabled", "budget_tokens": 9}}) == ["A42"]
    paused = {
        "role": "assistant",
        "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}],
    }
    assert _rules({"messages": [USER, paused]}) == []


def test_a_continued_response_may_answer_what_the_server_holds() -> None:
    items = [{"type": "function_call_output", "call_id": "c", "output": "x"}]
    assert _rules({"input": items, "previous_response_id": "resp_1"}, "openai-responses") == []


def test_the_profile_is_passed_on() -> None:
    history = [{"role": "assistant", "content": "a"}, USER]
    assert _rules(history, profile="firm") == []
    assert _rules(history, profile="conservative") == ["A02"]


def test_an_escaped_lone_surrogate_is_reported_not_unreadable() -> None:
    assert _rules([{"role": "user", "content": "ok \ud83d"}]) == ["S01"]


def test_a_byte_order_mark_is_no_obstacle() -> None:
    assert validate_document(b"\xef\xbb\xbf" + json.dumps([USER]).encode(), "anthropic").exit_code == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "not JSON in UTF-8"),
        (b"{", "not JSON in UTF-8"),
        (b"\xff", "not JSON in UTF-8"),
        (b"[" * 100_000, "not JSON in UTF-8"),
        (b"{}", "neither a list nor an object"),
        (b'"x"', "neither a list nor an object"),
        (b'{"messages": "x"}', "neither a list nor an object"),
    ],
)
def test_what_cannot_be_read_says_why(text: bytes, reason: str) -> None:
    report = validate_document(text, "anthropic")
    assert report.exit_code == 2
    assert report.unreadable.startswith(reason)


def test_a_lone_surrogate_in_a_key_is_in_a_report_that_can_be_encoded() -> None:
    report = validate_document(b'[{"role":"user","content":"q","\\ud83d":1}]', "anthropic")
    assert [violation.path for violation in report.violations if violation.rule == "A06"] == ["messages[0].\\ud83d"]
    assert b"ud83d" in msgspec.json.encode(report)


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses"])
def test_nesting_at_the_edge_of_what_can_be_decoded_has_an_answer(dialect: str) -> None:
    """Showing and comparing a value may need more of the stack than decoding it did."""
    for depth in range(600, 1100, 3):
        nested = b"[" * depth + b"]" * depth
        text = b'[{"role":"user","type":"message","id":%b,"content":[{"type":%b,"text":"x"}]}]' % (nested, nested)
        assert validate_document(text, dialect).exit_code in (1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", list(DIALECTS))
@settings(DERANDOMIZED)
@given(
    st.dictionaries(
        st.sampled_from(
            ["messages", "input", "contents", "tools", "model", "store", "thinking", "previous_response_id"]
        ),
        st.one_of(JSON_VALUES, st.lists(JSON_VALUES, max_size=3)),
    )
)
def test_any_document_has_an_answer_that_can_be_encoded(dialect: str, body: dict[str, Any]) -> None:
    assert msgspec.json.encode(validate_document(json.dumps(body).encode(), dialect))


def test_an_unknown_dialect_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="unknown dialect 'klingon'; known are anthropic"):
        validate_document(b"[]", "klingon")
