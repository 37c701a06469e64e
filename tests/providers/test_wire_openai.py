"""Canonical history to Chat Completions messages and Responses items."""

from __future__ import annotations

from typing import Any

import pytest

from pseudoclaude.messages import Message, Native, ToolCall, ToolResult
from pseudoclaude.protocol import check
from pseudoclaude.protocol.repair import MISSING_BEGINNING
from pseudoclaude.providers import to_wire
from pseudoclaude.providers.wire.texts import EMPTY_MESSAGE, EMPTY_RESULT
from tests.protocol.build import answer, asks, calls, says

ARGUMENTS = '{"path":"a.py"}'
REASONING = {"type": "reasoning", "summary": [], "encrypted_content": "enc:ok:1"}


def _function(call_id: str = "c1", arguments: str = ARGUMENTS) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "read_file", "arguments": arguments}}


def _item(call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "read_file", "arguments": ARGUMENTS, **more}


def _output(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}], **more}


def _chat(text: str, payload: Any, *ids: str) -> Message:
    made = tuple(ToolCall(each, "read_file", ARGUMENTS) for each in ids)
    return Message("assistant", text, made, native=Native("openai", "chat", "gpt", payload))


def _own(text: str, items: list[Any], *ids: str) -> Message:
    made = tuple(ToolCall(each, "read_file", ARGUMENTS) for each in ids)
    return Message("assistant", text, made, native=Native("openai", "responses", "gpt", items))


def _sent(dialect: str, *history: Message) -> list[dict[str, Any]]:
    assert check(dialect, to_wire(dialect, (*history, asks("next"))), context={"store": False}) == []
    return to_wire(dialect, history)


def test_chat_round() -> None:
    failed = Message("tool", tool_result=ToolResult("c2", "boom", is_error=True))
    assert _sent("openai-chat", asks("a"), calls("c1", "c2"), answer("c1", "x"), failed, says("b")) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "tool_calls": [_function("c1"), _function("c2")]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
        {"role": "tool", "tool_call_id": "c2", "content": "[error] boom"},
        {"role": "assistant", "content": "b"},
    ]


def test_chat_empty_texts() -> None:
    assert _sent("openai-chat", asks(""), says(" "), calls("c1", text="\n"), answer("c1", "")) == [
        {"role": "user", "content": EMPTY_MESSAGE},
        {"role": "assistant", "content": "", "tool_calls": [_function()]},
        {"role": "tool", "tool_call_id": "c1", "content": EMPTY_RESULT},
    ]


def test_both_start_with_a_user() -> None:
    assert _sent("openai-chat", says("b"))[0] == {"role": "user", "content": MISSING_BEGINNING}
    assert _sent("openai-responses", says("b"))[0]["content"][0]["text"] == MISSING_BEGINNING


@pytest.mark.parametrize(("dialect", "limit"), [("openai-chat", 40), ("openai-responses", 64)])
def test_long_ids_are_shortened_on_both_sides(dialect: str, limit: int) -> None:
    for length in (limit, limit + 1):
        original = "c" * length
        wire = str(_sent(dialect, asks("a"), calls(original), answer(original, "x")))
        assert (wire.count(f"'{original}'") == 2) == (length == limit)


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
def test_arguments_go_as_they_are_or_inside_of_an_object(dialect: str) -> None:
    odd = '{"b": 1,  "a":2}'
    history = (asks("a"), Message("assistant", "", (ToolCall("c1", "f", odd), ToolCall("c2", "f", '{"cmd": "'))))
    sent = _sent(dialect, *history, answer("c1", "x"), answer("c2", "y"))
    arguments = [call["function"]["arguments"] for call in sent[1].get("tool_calls", ())] or [
        item["arguments"] for item in sent[1:3]
    ]
    assert arguments == [odd, '{"_raw":"{\\"cmd\\": \\""}']


def test_chat_refusal() -> None:
    refused = _chat("no", {"role": "assistant", "content": None, "refusal": "no", "annotations": []})
    assert _sent("openai-chat", asks("a"), refused)[1] == {
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "no"}],
    }


def test_chat_keeps_what_a_compatible_server_wants_back() -> None:
    thought = _chat(
        "", {"role": "assistant", "content": None, "reasoning_content": "why", "tool_calls": [_function()]}, "c1"
    )
    history = (asks("a"), thought, answer("c1", "x"))
    assert "reasoning_content" not in _sent("openai-chat", *history)[1]
    for dialect in ("deepseek", "kimi"):
        wire = to_wire(dialect, history)
        assert wire[1]["reasoning_content"] == "why"
        assert check(dialect, wire, context={"thinking": "enabled"}) == []


@pytest.mark.parametrize("odd", [5, ["odd"], {"odd": 1}], ids=repr)
def test_chat_reasoning_that_is_no_text_stays_here(odd: Any) -> None:
    own = _chat("b", {"role": "assistant", "content": "b", "reasoning_content": odd, "name": odd})
    for dialect in ("deepseek", "kimi", "openai-chat"):
        assert to_wire(dialect, (asks("a"), own))[1] == {"role": "assistant", "content": "b"}


def test_chat_own_form_of_something_else_stays_here() -> None:
    edited = _chat("b", {"role": "assistant", "content": "other", "name": "x"})
    assert _sent("openai-chat", asks("a"), edited)[1] == {"role": "assistant", "content": "b"}


def test_responses_round() -> None:
    assert _sent("openai-responses", asks("a"), calls("c1", text="look"), answer("c1", "x"), says("b")) == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
        _output("look"),
        _item(),
        {"type": "function_call_output", "call_id": "c1", "output": "x"},
        _output("b"),
    ]


def test_responses_own_items_go_back_without_ids_and_output_only_members() -> None:
    items = [
        {**REASONING, "id": "rs_1", "status": "completed", "content": [{"type": "reasoning_text", "text": "x"}]},
        _output("look", id="msg_1", status="completed", phase="final"),
        _item(id="fc_1", status="completed"),
    ]
    wire = _sent("openai-responses", asks("a"), _own("look", items, "c1"), answer("c1", "x"))
    assert wire[1:4] == [REASONING, _output("look", phase="final"), _item()]


@pytest.mark.parametrize("lost", [{"encrypted_content": None}, {"encrypted_content": "enc:bad:1"}])
def test_responses_reasoning_survives_only_through_its_encrypted_content(lost: dict[str, Any]) -> None:
    assert _sent("openai-responses", asks("a"), _own("b", [{**REASONING, **lost}, _output("b")]))[1:] == [_output("b")]


def test_responses_dangling_reasoning_is_dropped() -> None:
    assert _sent("openai-responses", asks("a"), _own("b", [_output("b"), REASONING]))[1:] == [_output("b")]
    assert len(_sent("openai-responses", asks("a"), _own("", [REASONING, _output("")]))) == 1


def test_responses_server_tools_keep_their_ids_once() -> None:
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    own = _own("b", [search, _output("b")])
    wire = _sent("openai-responses", asks("a"), own, asks("c"), own)
    assert [item["type"] for item in wire if item.get("role") != "user"] == ["web_search_call", "message", "message"]


SEARCHED = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "q"},
}
FILES = {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"]}
RAN = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "code": None,
    "container_id": "c",
    "outputs": None,
}


@pytest.mark.parametrize("item", [SEARCHED, FILES, RAN])
def test_responses_server_tools_go_back_whole(item: dict[str, Any]) -> None:
    own = _own("b", [item, _output("b")])
    assert _sent("openai-responses", asks("a"), own)[1:] == [item, _output("b")]


@pytest.mark.parametrize("item_id", ["", "rs_1", "ws 1", "ws_" + "1" * 62, 5, ["ws_1"], None], ids=repr)
def test_responses_an_item_whose_id_is_none_keeps_the_response_here(item_id: Any) -> None:
    own = _own("b", [{**SEARCHED, "id": item_id}, REASONING, _output("b")])
    assert _sent("openai-responses", asks("a"), own)[1:] == [_output("b")]


@pytest.mark.parametrize(
    "item",
    [
        {**SEARCHED, "status": 5},
        {**SEARCHED, "status": ["completed"]},
        {**SEARCHED, "action": "x"},
        {**SEARCHED, "action": {"type": ["search"]}},
        {**SEARCHED, "action": {"type": "find_in_page", "url": "u"}},
        {key: FILES[key] for key in ("type", "id", "status")},
        {**FILES, "queries": [1]},
        {**FILES, "results": "x"},
        {key: RAN[key] for key in ("type", "id", "status", "container_id")},
        {**RAN, "container_id": None},
        {**RAN, "outputs": ["x"]},
        {**REASONING, "summary": 5},
        {**REASONING, "summary": ["x"]},
        _output("", phase=5),
        {"type": "message", "role": "assistant", "content": [{"type": ["output_text"], "text": ""}]},
        {"type": ["odd"]},
    ],
    ids=repr,
)
def test_responses_an_odd_item_keeps_the_response_here(item: dict[str, Any]) -> None:
    own = _own("b", [REASONING, item, _output("b", phase="final")])
    assert _sent("openai-responses", asks("a"), own)[1:] == [_output("b")]


def test_responses_own_items_keep_ids_unique() -> None:
    own = _own("", [REASONING, _item()], "c1")
    wire = _sent("openai-responses", asks("a"), own, answer("c1", "x"), own, answer("c1", "y"))
    sent = [item["call_id"] for item in wire if "call_id" in item]
    assert sent[0] == sent[1] == "c1"
    assert sent[2] == sent[3] != "c1"
