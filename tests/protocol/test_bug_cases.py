"""Faults people really met (shared/bug-cases.md, part B), with the expected value given there.

Cases 23, 26 and 31 need compaction as a whole and stand with it; here stands what they ask of repair and projection.
"""

from __future__ import annotations

from typing import Any

import pytest

from pseudoclaude.messages import History, Message, Native, ToolCall
from pseudoclaude.protocol import check, repair
from pseudoclaude.providers import to_wire
from pseudoclaude.providers.wire import PROJECTIONS
from pseudoclaude.providers.wire.texts import EMPTY_MESSAGE, EMPTY_RESULT
from tests.protocol.build import answer, asks, calls, says


def _sent(dialect: str, history: History) -> list[dict[str, Any]]:
    """What the next request sends, which no rule has anything against."""
    wire = to_wire(dialect, (*repair(history)[0], asks("next")))
    assert check(dialect, wire) == []
    return wire


def test_22_a_finished_result_beside_unfinished_calls_is_kept_in_call_order() -> None:
    history = (asks("a"), calls("c1", "c2", "c3"), answer("c2", "ok"))
    repaired, _ = repair(history, dangling="answer")
    results = [message.tool_result for message in repaired if message.tool_result is not None]
    assert [(result.call_id, result.origin) for result in results] == [
        ("c1", "interrupted"),
        ("c2", "tool"),
        ("c3", "interrupted"),
    ]
    wire = to_wire("anthropic", repaired)
    assert [message["role"] for message in wire] == ["user", "assistant", "user"]
    assert [block["tool_use_id"] for block in wire[2]["content"]] == ["c1", "c2", "c3"]
    assert wire[2]["content"][1] == {"type": "tool_result", "tool_use_id": "c2", "content": "ok"}


@pytest.mark.parametrize("dialect", list(PROJECTIONS))
def test_23_a_cut_between_call_and_result_is_valid_after_repair(dialect: str) -> None:
    """The kept part of a compaction may begin with a result, twice in a row."""
    once = (asks("s2"), answer("c1", "x"), says("b"), asks("d"), calls("c2"), answer("c2", "y"), says("e"))
    twice = (asks("s3"), answer("c2", "y"), says("e"))
    for history in (once, twice):
        _sent(dialect, history)


def test_25_user_text_beside_a_result_whose_call_is_gone_is_kept() -> None:
    """Canonically a user message is text alone, and a result is a message of its own: losing one cannot take the other."""
    repaired, repairs = repair((asks("s"), answer("c1", "x"), asks("also do y")))
    assert repaired == (asks("s"), asks("also do y"))
    assert repairs[0].removed == (answer("c1", "x"),)
    assert "also do y" in str(_sent("anthropic", repaired))


def test_26_a_result_that_comes_after_a_compaction_is_kept_once() -> None:
    """An open call stays outside of the replaced range; its result then finds it."""
    history = (asks("summary"), calls("c1"), answer("c1", "x"))
    assert repair(history) == (history, ())
    late = (asks("summary"), calls("c1"), asks("more"), answer("c1", "x"))
    assert repair(late)[0] == (*history, asks("more"))


@pytest.mark.parametrize("dialect", list(PROJECTIONS))
@pytest.mark.parametrize("call_id", ["call_0", ""])
def test_28_ids_that_repeat_across_turns_are_paired_by_position(dialect: str, call_id: str) -> None:
    history = (
        *(asks("a"), calls(call_id), answer(call_id, "x"), says("b")),
        *(asks("c"), calls(call_id), answer(call_id, "y"), says("d")),
    )
    assert repair(history) == (history, ())
    words = str(_sent(dialect, history))
    assert words.index("'x'") < words.index("'y'")


def test_28_ids_are_unique_on_the_wire_by_a_fixed_rule() -> None:
    history = (asks("a"), calls("call_0"), answer("call_0", "x"), asks("c"), calls("call_0"), answer("call_0", "y"))
    wire = _sent("anthropic", history)
    first, second = wire[1]["content"][0]["id"], wire[3]["content"][0]["id"]
    assert first == "call_0"
    assert second != first
    assert wire[2]["content"][0] == {"type": "tool_result", "tool_use_id": first, "content": "x"}
    assert wire[4]["content"][0] == {"type": "tool_result", "tool_use_id": second, "content": "y"}
    assert _sent("anthropic", history) == wire


@pytest.mark.parametrize("dialect", list(PROJECTIONS))
def test_28_the_same_id_twice_in_one_message(dialect: str) -> None:
    history = (asks("a"), calls("c", "c"), answer("c", "x"), answer("c", "y"))
    assert repair(history) == (history, ())
    words = str(_sent(dialect, history))
    assert words.index("'x'") < words.index("'y'")


@pytest.mark.parametrize("dialect", list(PROJECTIONS))
def test_29_empty_texts_are_dropped_or_filled_on_send(dialect: str) -> None:
    nothing = Message("assistant", native=Native("anthropic", "messages", "m", []))
    history = (asks("a"), says(""), says("  \n"), calls("c1"), answer("c1", ""), nothing, asks(""))
    assert repair(history) == (history, ())
    words = str(_sent(dialect, history))
    assert EMPTY_RESULT in words
    assert words.count("'assistant'") + words.count("'model'") + words.count("'function_call'") <= 2


def test_29_what_is_left_at_anthropic() -> None:
    assert _sent("anthropic", (asks(""), says(""), says("  \n"), asks("b"))) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": EMPTY_MESSAGE},
                {"type": "text", "text": "b"},
                {"type": "text", "text": "next"},
            ],
        }
    ]


@pytest.mark.parametrize("dialect", list(PROJECTIONS))
def test_31_arguments_that_were_cut_as_a_string_go_as_an_object(dialect: str) -> None:
    cut = Message("assistant", "", (ToolCall("c1", "write", '{"text": "' + "é" * 100),))
    assert "_raw" in str(_sent(dialect, (asks("a"), cut, answer("c1", "ok"))))


@pytest.mark.parametrize("signature", ["s", "sig:ok:1"])
def test_32_thinking_goes_back_byte_for_byte_or_not_at_all(signature: str) -> None:
    thinking = {"type": "thinking", "thinking": "x ", "signature": signature}
    call = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {}}
    caller = Message(
        "assistant",
        "",
        (ToolCall("c1", "read_file", "{}"),),
        native=Native("anthropic", "messages", "m", [thinking, call]),
    )
    content = _sent("anthropic", (asks("a"), caller, answer("c1", "ok")))[1]["content"]
    assert content == ([thinking, call] if signature == "sig:ok:1" else [call])


def test_34_the_first_of_two_results_is_kept_and_the_second_reported() -> None:
    history = (asks("a"), calls("c1"), answer("c1", "x"), answer("c1", "x"))
    repaired, repairs = repair(history)
    assert repaired == history[:3]
    assert [(step.action, step.removed) for step in repairs] == [("drop_result", (history[3],))]
