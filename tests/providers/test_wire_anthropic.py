"""Canonical history to Anthropic messages."""

from __future__ import annotations

from typing import Any

import pytest

from pseudoclaude.messages import History, Message, Native, ToolCall, ToolResult
from pseudoclaude.protocol import check
from pseudoclaude.protocol.repair import MISSING_BEGINNING
from pseudoclaude.providers import to_wire
from pseudoclaude.providers.wire.texts import EMPTY_MESSAGE, EMPTY_RESULT
from tests.protocol.build import answer, asks, calls, says

THINKING = {"type": "thinking", "thinking": "step ", "signature": "sig:ok:1"}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _use(call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "read_file", "input": {"path": "a.py"}, **more}


def _own(text: str, blocks: list[Any], *ids: str, stop: Any = None) -> Message:
    made = tuple(ToolCall(each, "read_file", '{"path":"a.py"}') for each in ids)
    return Message("assistant", text, made, native=Native("anthropic", "messages", "claude", blocks), stop=stop)


def _sent(*history: Message) -> list[dict[str, Any]]:
    """The wire of a history that the conservative profile accepts with one more user message."""
    assert check("anthropic", to_wire("anthropic", (*history, asks("next")))) == []
    return to_wire("anthropic", history)


def test_a_dialogue() -> None:
    assert _sent(asks("a"), says("b"), asks("c")) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]


def test_a_round_with_parallel_calls_and_an_error() -> None:
    failed = Message("tool", tool_result=ToolResult("c1", "boom", is_error=True))
    assert _sent(asks("a"), calls("c1", "c2", text="look"), answer("c2", "y"), failed, asks("d")) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [_text("look"), _use("c1"), _use("c2")]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "boom", "is_error": True},
                {"type": "tool_result", "tool_use_id": "c2", "content": "y"},
                _text("d"),
            ],
        },
    ]


def test_user_messages_in_a_row_are_one_turn() -> None:
    assert _sent(asks("a"), asks("b"), says(""), asks("c")) == [
        {"role": "user", "content": [_text("a"), _text("b"), _text("c")]}
    ]


@pytest.mark.parametrize("empty", ["", " ", "\n\t", "\u2003"])
def test_empty_texts(empty: str) -> None:
    assert _sent(asks(empty)) == [{"role": "user", "content": EMPTY_MESSAGE}]
    assert _sent(asks("a"), says(empty)) == [{"role": "user", "content": "a"}]
    assert _sent(asks("a"), calls("c1", text=empty), answer("c1", "x"))[1]["content"] == [_use()]
    assert _sent(asks("a"), calls("c1"), answer("c1", ""))[2]["content"][0]["content"] == EMPTY_RESULT


def test_a_history_that_starts_on_an_assistant_gets_a_first_user_message() -> None:
    assert _sent(says("b"))[0] == {"role": "user", "content": MISSING_BEGINNING}


@pytest.mark.parametrize("arguments", ["", "[1]", '{"cmd": "', '{"x":NaN}', '{"t":"\\ud83d"}'])
def test_arguments_that_are_no_object(arguments: str) -> None:
    broken = Message("assistant", "", (ToolCall("c1", "f", arguments),))
    assert _sent(asks("a"), broken, answer("c1", "x"))[1]["content"][0]["input"] == {"_raw": arguments}


def test_own_blocks_go_back_as_they_came() -> None:
    blocks = [THINKING, _text("b "), {"type": "redacted_thinking", "data": "red:ok:1"}, _use(caller={"type": "direct"})]
    assert _sent(asks("a"), _own("b ", blocks, "c1"), answer("c1", "x"))[1]["content"] == blocks


def test_keys_and_blocks_that_the_api_refuses_are_left_out() -> None:
    blocks = [
        {**_text("b"), "citations": None, "parsed_output": 1, "cache_control": {"type": "ephemeral"}},
        _text(""),
        {"type": "container_upload", "file_id": "file_1"},
    ]
    assert _sent(asks("a"), _own("b", blocks))[1]["content"] == [{**_text("b"), "citations": None}]


@pytest.mark.parametrize(
    "message",
    [
        _own("other", [_text("b")]),
        _own("b", [_text("b"), _use()]),
        _own("b", [_text("b"), _use("c2")], "c1"),
        _own("b", [_text("b"), {**_use(), "input": {"path": "b.py"}}], "c1"),
        _own("b", [_text("b"), {**_use(), "name": "write"}], "c1"),
        _own("b", [_text("b"), "junk"]),
        _own("b", [_text("b"), {"type": "tool_result", "tool_use_id": "x"}]),
        Message("assistant", "b", native=Native("anthropic", "messages", "m", "b")),
        Message("assistant", "b", native=Native("openai", "responses", "m", [_text("b")])),
    ],
)
def test_blocks_that_do_not_say_what_the_message_says_stay_here(message: Message) -> None:
    results = [answer(call.id, "x") for call in message.tool_calls]
    content = _sent(asks("a"), message, *results)[1]["content"]
    expected: Any = (
        [_text(message.content), *[_use(call.id) for call in message.tool_calls]] if results else message.content
    )
    assert content == expected


def test_own_blocks_with_an_id_that_must_change_stay_here() -> None:
    own = _own("b", [THINKING, _text("b"), _use()], "c1")
    wire = _sent(asks("a"), own, answer("c1", "x"), own, answer("c1", "y"))
    assert wire[1]["content"][0] == THINKING
    assert [block["type"] for block in wire[3]["content"]] == ["text", "tool_use"]


def test_thinking_that_ends_a_message_is_dropped() -> None:
    assert _sent(asks("a"), _own("b", [_text("b"), THINKING, THINKING]))[1]["content"] == [_text("b")]
    assert _sent(asks("a"), _own("", [THINKING])) == [{"role": "user", "content": "a"}]


@pytest.mark.parametrize(
    "forged",
    [{**THINKING, "signature": ""}, {**THINKING, "thinking": None}, {"type": "redacted_thinking", "data": "made-up"}],
)
def test_a_forged_signature_takes_all_thinking_from_there_on(forged: dict[str, Any]) -> None:
    before, damaged, after = (
        _own("b", [THINKING, _text("b")]),
        _own("d", [THINKING, forged, _text("d")]),
        _own("f", [THINKING, _text("f")]),
    )
    wire = _sent(asks("a"), before, asks("c"), damaged, asks("e"), after)
    assert [message["content"] for message in wire[1::2]] == [[THINKING, _text("b")], [_text("d")], [_text("f")]]


def test_a_settled_server_call_goes_back() -> None:
    blocks = [SEARCH, FOUND, _text("b")]
    assert _sent(asks("a"), _own("b", blocks))[1]["content"] == blocks


def test_a_paused_turn_goes_back_as_it_is() -> None:
    wire = to_wire("anthropic", (asks("a"), _own("", [SEARCH], stop="pause_turn")))
    assert wire[-1] == {"role": "assistant", "content": [SEARCH]}
    assert check("anthropic", wire, context={"last_stop_reason": "pause_turn"}) == []


def test_a_paused_turn_and_what_continued_it() -> None:
    wire = _sent(asks("a"), _own("", [SEARCH], stop="pause_turn"), _own("b", [FOUND, _text("b")]))
    assert [message["content"] for message in wire[1:]] == [[SEARCH], [FOUND, _text("b")]]


def test_a_server_call_that_was_given_up_is_dropped() -> None:
    wire = _sent(asks("a"), _own("looking", [_text("looking"), SEARCH], stop="pause_turn"), asks("never mind"))
    assert wire[1]["content"] == "looking"


def test_a_server_result_without_its_call_is_dropped() -> None:
    assert _sent(asks("a"), _own("b", [FOUND, _text("b")]))[1]["content"] == "b"


def test_a_mixed_turn_is_answered_with_results_only() -> None:
    mixed = _own("", [SEARCH, _use()], "c1")
    wire = to_wire("anthropic", (asks("a"), mixed, answer("c1", "x")))
    assert wire[1]["content"] == [SEARCH, _use()]
    assert check("anthropic", wire) == []
    assert _sent(asks("a"), mixed, answer("c1", "x"), asks("hurry"))[1]["content"] == [_use()]


def test_a_mixed_turn_and_the_response_that_opens_with_the_server_result() -> None:
    history: History = (asks("a"), _own("", [SEARCH, _use()], "c1"), answer("c1", "x"), _own("b", [FOUND, _text("b")]))
    assert [message["content"] for message in _sent(*history)[1::2]] == [[SEARCH, _use()], [FOUND, _text("b")]]


def test_a_compaction_block_stays_first() -> None:
    first = {"type": "compaction", "content": "sum", "signature": "cmp:ok:1"}
    assert _sent(_own("", [first]), asks("go"))[0] == {"role": "assistant", "content": [first]}


@pytest.mark.parametrize(
    "damaged",
    [
        {"content": "sum", "signature": ""},
        {"content": "sum", "signature": "made-up"},
        {"content": "sum", "signature": ["cmp:ok:1"]},
        {"content": "", "signature": "cmp:ok:1"},
        {"content": ["odd"]},
        {"content": "sum", "encrypted_content": 5},
        {"content": "sum", "tool_changes": "x"},
    ],
    ids=repr,
)
def test_a_compaction_block_that_is_not_the_providers_stays_here(damaged: dict[str, Any]) -> None:
    own = _own("b", [{"type": "compaction", **damaged}, _text("b")])
    assert _sent(asks("a"), own)[1:] == [{"role": "assistant", "content": "b"}]


@pytest.mark.parametrize(
    "blocks",
    [
        [{**SEARCH, "id": ""}, {**FOUND, "tool_use_id": ""}],
        [{**SEARCH, "id": "s.1"}, {**FOUND, "tool_use_id": "s.1"}],
        [{**SEARCH, "id": ["srv_1"]}, FOUND],
        [{**SEARCH, "name": ""}, FOUND],
        [SEARCH, {**FOUND, "tool_use_id": ["srv_1"]}],
        [SEARCH, {**FOUND, "content": [{"type": "web_search_result", "title": "t"}]}],
        [SEARCH, {**FOUND, "content": 5}],
        [{**_text(""), "citations": 5}],
        [{"type": ["text"], "text": "b"}],
    ],
    ids=repr,
)
def test_odd_blocks_stay_here(blocks: list[Any]) -> None:
    assert _sent(asks("a"), _own("b", [*blocks, _text("b")]))[1]["content"] == "b"


@pytest.mark.parametrize("name", ["", "fs.read", "n" * 201])
def test_own_calls_whose_name_must_change_stay_here(name: str) -> None:
    """A declared tool has the same name as its calls (``wire_name``)."""
    called = Message(
        "assistant",
        tool_calls=(ToolCall("c1", name, "{}"),),
        native=Native("anthropic", "messages", "m", [{"type": "tool_use", "id": "c1", "name": name, "input": {}}]),
    )
    assert _sent(asks("a"), called, answer("c1", "x"))[1]["content"][0]["name"] not in ("", name)


def test_a_block_of_an_unknown_kind_goes_back_without_its_cache_mark() -> None:
    new = {"type": "new_kind", "more": 1}
    own = _own("b", [{**new, "cache_control": {"type": "ephemeral"}}] * 5 + [_text("b")])
    assert _sent(asks("a"), own)[1]["content"] == [new] * 5 + [_text("b")]
