"""The adapters on replies that the recordings do not show: broken, tolerated and odd ones, and the requests they send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pseudoclaude.errors import InvalidRequest, ProviderError, ProviderUnavailable, RateLimited, StreamInterrupted
from pseudoclaude.messages import Message, ToolCall, ToolResult, Usage
from pseudoclaude.ports import Request, ToolSpec
from pseudoclaude.providers.wire import wire_name
from simulator.replies import CassetteMiss
from simulator.replies.cassettes import Cassette
from simulator.replies.replay import CassetteProvider
from tests.replies.build import DIALECTS, HELLO, provider, recorded, sse

START = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3, "output_tokens": 1}}}
TEXT_0 = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
STOP = {"type": "message_stop"}


def _words(text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def _end(stop: str | None = "end_turn", **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9, **usage}}


def _failed(dialect: str, reply: bytes, **how: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        provider(dialect, reply, **how).complete(HELLO)
    return caught.value


# --- broken replies --------------------------------------------------------------------------------------------

BROKEN_STREAMS = {
    "JSON cut short": sse(START, TEXT_0, _words("Hi"), '{"type":"content_block_delta","ind'),
    "an event that is a list": sse(START, TEXT_0, _words("Hi"), "[1, 2]"),
    "a delta of a block never started": sse(START, TEXT_0, _words("Hi"), _words("there", index=4)),
    "a block out of order": sse(START, TEXT_0, _words("Hi"), {**TEXT_0, "index": 2}),
    "a block started twice": sse(START, TEXT_0, _words("Hi"), TEXT_0),
    "a delta without its member": sse(START, TEXT_0, _words("Hi"), {"type": "content_block_delta", "index": 0}),
    "no end": sse(START, TEXT_0, _words("Hi")),
    "bytes that are no UTF-8": sse(START, TEXT_0, _words("Hi")) + b'event: x\ndata: {"a":"\xff\xfe"}\n\n',
}


@pytest.mark.parametrize("reply", BROKEN_STREAMS.values(), ids=BROKEN_STREAMS)
def test_a_stream_that_breaks_its_own_rules_keeps_the_text(reply: bytes) -> None:
    failure = _failed("anthropic", reply)
    assert isinstance(failure, StreamInterrupted)
    assert failure.partial == Message("assistant", "Hi", stop="interrupted")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "reply", [b"", b"<html>busy</html>", b"[]", b"null", b"{}", b'{"content": 4, "choices": [], "output": {}}']
)
def test_a_plain_body_that_is_no_reply(dialect: str, reply: bytes) -> None:
    failure = _failed(dialect, reply, stream=False)
    assert isinstance(failure, ProviderUnavailable)
    assert failure.retryable
    assert "could not be read" in str(failure)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_empty_stream(dialect: str) -> None:
    assert isinstance(_failed(dialect, b"event: ping\ndata: {}\n\n"), ProviderUnavailable)


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
def test_an_error_in_a_plain_body_of_status_200(dialect: str) -> None:
    body = json.dumps({"error": {"type": "rate_limit_error", "message": "slow"}}).encode()
    assert isinstance(_failed(dialect, body, stream=False), RateLimited)


def test_a_failed_response_event_is_that_failure() -> None:
    error = {"code": "rate_limit_exceeded", "message": "Please slow down"}
    reply = sse({"type": "response.failed", "response": {"status": "failed", "error": error}})
    assert isinstance(_failed("openai-responses", reply), RateLimited)


def test_a_plain_call_without_a_name_is_unreadable() -> None:
    message = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"arguments": "{}"}}]}
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    assert isinstance(_failed("openai-chat", json.dumps(body).encode(), stream=False), ProviderUnavailable)


def test_a_filter_that_kept_the_request_back_is_no_outage() -> None:
    body = {"error": {"code": "content_filter", "status": 400, "type": None, "message": "The response was filtered"}}
    failure = _failed("openai-chat", json.dumps(body).encode(), stream=False)
    assert isinstance(failure, InvalidRequest)
    assert not failure.retryable


# --- odd replies that are fine ---------------------------------------------------------------------------------


def test_a_later_count_replaces_an_earlier_one() -> None:
    reply = sse(START, _end(input_tokens=404_500, cache_read_input_tokens=7), STOP)
    assert provider("anthropic", reply).complete(HELLO).usage == Usage(404_500, 9, cache_read_tokens=7)


def test_a_later_count_without_input_keeps_the_earlier_one() -> None:
    assert provider("anthropic", sse(START, _end(), STOP)).complete(HELLO).usage == Usage(3, 9)


def test_what_comes_after_the_end_is_not_read() -> None:
    reply = sse(START, TEXT_0, _words("Hi"), _end(), STOP, "not json")
    assert provider("anthropic", reply).complete(HELLO).message == Message("assistant", "Hi", stop="end_turn")


def test_a_stop_reason_nobody_knows_is_none() -> None:
    assert provider("anthropic", sse(START, _end("weary"), STOP)).complete(HELLO).message.stop is None


def test_arguments_are_the_text_that_streamed_also_when_it_does_not_parse() -> None:
    call = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "a", "name": "t", "input": {}},
    }
    half = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": '{"path": "no'},
    }
    message = provider("anthropic", sse(START, call, half, _end("max_tokens"), STOP)).complete(HELLO).message
    assert message == Message("assistant", "", (ToolCall("a", "t", '{"path": "no'),), stop="max_tokens")


def test_unknown_blocks_and_deltas_survive_in_native() -> None:
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "dream", "scene": "a"}}
    more = {"type": "content_block_delta", "index": 0, "delta": {"type": "dream_delta", "scene": "b", "depth": 2}}
    message = provider("anthropic", sse(START, block, more, _end(), STOP)).complete(HELLO).message
    assert message.native is not None
    assert message.native.payload == [{"type": "dream", "scene": "ab", "depth": 2}]


def _chunk(delta: dict[str, Any], finish: str | None = None, **others: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **others}


def test_a_first_chunk_without_choices_and_a_usage_chunk_at_the_end() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    reply = sse(
        {"choices": []},
        _chunk({"content": "Hi"}),
        _chunk({}, "stop"),
        {"choices": [], "usage": usage},
        "[DONE]",
        names=False,
    )
    answer = provider("openai-chat", reply).complete(HELLO)
    assert answer.message == Message("assistant", "Hi", stop="end_turn")
    assert answer.usage == Usage(6, 2, cache_read_tokens=4)


def test_only_the_first_of_several_choices_counts() -> None:
    other = {"model": "m", "choices": [{"index": 1, "delta": {"content": "No"}, "finish_reason": "length"}]}
    reply = sse(_chunk({"content": "Yes"}), other, _chunk({}, "stop"), "[DONE]", names=False)
    assert provider("openai-chat", reply).complete(HELLO).message == Message("assistant", "Yes", stop="end_turn")


def test_reasoning_of_compatible_servers_survives_in_native() -> None:
    reply = sse(
        _chunk({"reasoning_content": "Hm"}),
        _chunk({"reasoning_content": "m."}),
        _chunk({"content": "Hi"}, "stop"),
        names=False,
    )
    message = provider("openai-chat", reply).complete(HELLO).message
    assert message.content == "Hi"
    assert message.native is not None
    assert message.native.payload == {"role": "assistant", "reasoning_content": "Hmm.", "content": "Hi"}


def test_a_chat_refusal_is_text_with_its_own_stop() -> None:
    reply = sse(_chunk({"refusal": "I will "}), _chunk({"refusal": "not."}), _chunk({}, "stop"), names=False)
    heard: list[str] = []
    message = provider("openai-chat", reply).complete(HELLO, heard.append).message
    assert (message.content, message.stop, "".join(heard)) == ("I will not.", "refusal", "I will not.")


def test_tool_calls_with_the_wrong_finish_reason_are_tool_calls() -> None:
    piece = {"index": 0, "id": "a", "function": {"name": "t", "arguments": ""}}
    message = (
        provider("openai-chat", sse(_chunk({"tool_calls": [piece]}), _chunk({}, "stop"), names=False))
        .complete(HELLO)
        .message
    )
    assert message == Message("assistant", "", (ToolCall("a", "t", "{}"),), stop="tool_use")


# --- requests --------------------------------------------------------------------------------------------------

TOOL = ToolSpec("files.read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})
ASKED = Request(
    (
        Message("user", "Hello"),
        Message("assistant", "", (ToolCall("c1", "files.read", '{"path":"a"}'),), stop="tool_use"),
        Message("tool", tool_result=ToolResult("c1", "text")),
    ),
    system="Be brief.",
    tools=(TOOL,),
    max_tokens=77,
)


def _difference(dialect: str) -> str:
    """What strict matching says of ``ASKED``: the wire body, one difference at a time, is what it names."""
    one = recorded(dialect, b"", stream=False)
    with pytest.raises(CassetteMiss) as caught:
        CassetteProvider(Cassette("in memory", (one,)), options={"temperature": 0.5}).complete(ASKED)
    return str(caught.value)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_miss_reaches_the_caller_as_itself(dialect: str) -> None:
    sentence = _difference(dialect)
    assert "in memory" in sentence
    assert "the first difference: body." in sentence


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        (
            "anthropic",
            ["max_tokens: recorded nothing, sent 77", "system: recorded nothing, sent 'Be brief.'", "temperature"],
        ),
        (
            "openai-chat",
            ["max_completion_tokens: recorded nothing, sent 77", "temperature: recorded nothing, sent 0.5"],
        ),
        ("openai-responses", ["max_output_tokens: recorded nothing, sent 77", "store: recorded nothing, sent False"]),
    ],
)
def test_limits_system_prompt_and_options_go_where_the_api_wants_them(dialect: str, expected: list[str]) -> None:
    messages = {
        "anthropic": _anthropic_messages(),
        "openai-chat": _chat_messages(),
        "openai-responses": _responses_input(),
    }
    one = recorded(dialect, b"[]", stream=False)
    member = "input" if dialect == "openai-responses" else "messages"
    replay = CassetteProvider(
        Cassette("in memory", (one._replace(body={**one.body, member: messages[dialect]}),)),
        match="projection",
        options={"temperature": 0.5},
    )
    with pytest.raises(ProviderUnavailable):
        replay.complete(ASKED)
    lines = "\n".join(replay.differences)
    for part in expected:
        assert part in lines


def _anthropic_messages() -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": "c1", "name": wire_name("files.read"), "input": {"path": "a"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "text"}
    return [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]


def _chat_messages() -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": wire_name("files.read"), "arguments": '{"path":"a"}'}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "text"}
    return [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": None, "tool_calls": [call]}, result]


def _responses_input() -> list[dict[str, Any]]:
    call = {"type": "function_call", "call_id": "c1", "name": wire_name("files.read"), "arguments": '{"path":"a"}'}
    output = {"type": "function_call_output", "call_id": "c1", "output": "text"}
    return [{"role": "user", "content": "Hello"}, call, output]


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("o4-mini", True),
        ("gpt-5.5", True),
        ("gpt-5-chat-latest", False),
        ("gpt-4o", False),
        ("gpt-35-turbo", False),
        ("m", False),
    ],
)
def test_encrypted_reasoning_is_asked_of_models_that_reason(model: str, asked: bool) -> None:
    cassette = Cassette("in memory", (recorded("openai-responses", b"[]", stream=False),))
    replay = CassetteProvider(cassette, match="projection", model=model)
    with pytest.raises(ProviderUnavailable):
        replay.complete(HELLO)
    assert any("include" in line for line in replay.differences) == asked


def test_a_tool_is_known_to_the_caller_by_its_own_name() -> None:
    call = {"type": "tool_use", "id": "a", "name": wire_name("files.read"), "input": {"path": "b"}}
    body = {"model": "m", "content": [call], "stop_reason": "tool_use", "usage": None}
    reply = provider("anthropic", json.dumps(body).encode(), stream=False).complete(
        Request(HELLO.messages, tools=(TOOL,))
    )
    assert wire_name("files.read") != "files.read"
    assert reply.message.tool_calls == (ToolCall("a", "files.read", '{"path":"b"}'),)


def test_without_streaming_the_text_is_heard_once() -> None:
    body = {
        "model": "m",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    heard: list[str] = []
    provider("anthropic", json.dumps(body).encode(), stream=False).complete(HELLO, heard.append)
    assert heard == ["Hi"]


def test_an_exception_of_the_listener_travels_as_itself() -> None:
    def listen(_: str) -> None:
        raise KeyError("the listener's own")

    with pytest.raises(KeyError, match="listener"):
        provider("anthropic", sse(START, TEXT_0, _words("Hi"), _end(), STOP)).complete(HELLO, listen)


def test_a_filter_that_kept_the_reply_back_is_a_refusal() -> None:
    body = {"choices": [{"index": 0, "finish_reason": "content_filter", "content_filter_results": {}}]}
    message = provider("openai-chat", json.dumps(body).encode(), stream=False).complete(HELLO).message
    assert message == Message("assistant", "", stop="refusal")


def test_a_call_that_begins_with_its_whole_input_keeps_it() -> None:
    tool = {"type": "tool_use", "id": "a", "name": "t", "input": {"place": "Boston"}, "caller": {"type": "direct"}}
    call = {"type": "content_block_start", "index": 0, "content_block": tool}
    nothing = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}}
    message = provider("anthropic", sse(START, call, nothing, _end("tool_use"), STOP)).complete(HELLO).message
    assert message.tool_calls == (ToolCall("a", "t", '{"place":"Boston"}'),)
    assert message.native is not None
    assert message.native.payload[0]["input"] == {"place": "Boston"}


def test_a_call_that_starts_twice_is_one_call() -> None:
    opened = {"index": 0, "id": "c", "type": "function", "function": {"name": "look", "arguments": ""}}
    pieces = [
        {"tool_calls": [opened]},
        {"tool_calls": [opened]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
    ]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in pieces]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    message = provider("openai-chat", sse(*chunks, end, "[DONE]", names=False)).complete(HELLO).message
    assert message.tool_calls == (ToolCall("c", "look", "{}"),)
