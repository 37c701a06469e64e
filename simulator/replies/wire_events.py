"""A script entry in the wire form of each API: the events of a stream, the body of a plain reply.

Pure.  The emulator sends these; the scripted provider counts them, so that ``cut_after_events: 3`` leaves the same text in memory as
over HTTP.  Shapes follow the recordings: pings between Anthropic's events, a Chat usage chunk without choices and then ``[DONE]``,
a Responses stream that ends with its last event.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pseudoclaude.messages import Stop, ToolCall, Usage
from simulator.replies.script import ScriptEntry, compact

PIECE_CHARACTERS = 12
"""Length of one piece of streamed text."""
DONE = "[DONE]"

ANTHROPIC_STOPS: dict[Stop, str] = {"interrupted": "end_turn"}
CHAT_STOPS: dict[Stop, str] = {"max_tokens": "length", "tool_use": "tool_calls"}


class Event(NamedTuple):
    """One server-sent event.  ``text`` is what of the reply's text it carries; ``data`` is JSON, or the word ``[DONE]``."""

    name: str
    data: Any
    text: str = ""

    def encode(self) -> bytes:
        data = self.data if isinstance(self.data, str) else compact(self.data)
        head = f"event: {self.name}\n" if self.name else ""
        return f"{head}data: {data}\n\n".encode()


class Numbered(NamedTuple):
    """An entry with what the server adds: its number in the run, the model's name, the token count."""

    entry: ScriptEntry
    number: int
    model: str
    usage: Usage


def stream_events(dialect: str, reply: Numbered) -> list[Event]:
    """The whole stream."""
    return list(_STREAMS[dialect](reply))


def plain_body(dialect: str, reply: Numbered) -> dict[str, Any]:
    """The whole reply.  Raises ``ValueError`` for what a plain reply cannot carry (Anthropic arguments that are no object)."""
    return _BODIES[dialect](reply)


def text_before_cut(dialect: str, reply: Numbered, events: int) -> str | None:
    """The text in the first ``events`` events, or None when that is the whole stream."""
    stream = stream_events(dialect, reply)
    return None if events >= len(stream) else "".join(event.text for event in stream[:events])


def pieces(text: str) -> list[str]:
    return [text[start : start + PIECE_CHARACTERS] for start in range(0, len(text), PIECE_CHARACTERS)]


# --- Anthropic Messages ----------------------------------------------------------------------------------------


def _anthropic_stream(reply: Numbered) -> Iterator[Event]:
    entry = reply.entry
    begun = {
        **_anthropic_head(reply),
        "content": [],
        "stop_reason": None,
        "usage": {**_anthropic_usage(reply.usage), "output_tokens": 1},
    }
    yield _anthropic_event("message_start", message=begun)
    index = 0
    if entry.spoken:
        yield _anthropic_event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        yield _anthropic_event("ping")
        for piece in pieces(entry.spoken):
            yield _anthropic_event("content_block_delta", piece, index=0, delta={"type": "text_delta", "text": piece})
        yield _anthropic_event("content_block_stop", index=0)
        index = 1
    for call in entry.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield _anthropic_event("content_block_start", index=index, content_block=block)
        for piece in pieces(call.arguments) if call.arguments != "{}" else [""]:
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield _anthropic_event("content_block_delta", index=index, delta=delta)
        yield _anthropic_event("content_block_stop", index=index)
        index += 1
    ended = {"stop_reason": _anthropic_stop(entry), "stop_sequence": None}
    yield _anthropic_event("message_delta", delta=ended, usage=_anthropic_usage(reply.usage))
    yield _anthropic_event("message_stop")


def _anthropic_body(reply: Numbered) -> dict[str, Any]:
    entry = reply.entry
    blocks: list[dict[str, Any]] = [{"type": "text", "text": entry.spoken}] if entry.spoken else []
    blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call)} for call in entry.calls]
    ended = {"stop_reason": _anthropic_stop(entry), "stop_sequence": None, "usage": _anthropic_usage(reply.usage)}
    return {**_anthropic_head(reply), "content": blocks, **ended}


def _anthropic_event(kind: str, text: str = "", **members: Any) -> Event:
    return Event(kind, {"type": kind, **members}, text)


def _anthropic_head(reply: Numbered) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.number:06d}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "stop_sequence": None,
    }


def _anthropic_stop(entry: ScriptEntry) -> str:
    return ANTHROPIC_STOPS.get(entry.ending, entry.ending)


def _anthropic_usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }


def _object(call: ToolCall) -> dict[str, Any]:
    try:
        value = json.loads(call.arguments)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"the arguments of call {call.id} are no JSON object; only a stream can carry them")
    return value


# --- OpenAI Chat Completions -----------------------------------------------------------------------------------


def _chat_stream(reply: Numbered) -> Iterator[Event]:
    entry = reply.entry
    yield _chat_chunk(reply, {"role": "assistant", "content": ""})
    member = "refusal" if entry.ending == "refusal" else "content"
    for piece in pieces(entry.spoken):
        yield _chat_chunk(reply, {member: piece}, text=piece)
    for index, call in enumerate(entry.calls):
        opened = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield _chat_chunk(reply, {"tool_calls": [opened]})
        for piece in pieces(call.arguments):
            yield _chat_chunk(reply, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield _chat_chunk(reply, {}, finish=_chat_stop(entry))
    yield Event("", {**_chat_head(reply, "chat.completion.chunk"), "choices": [], "usage": _chat_usage(reply.usage)})
    yield Event("", DONE)


def _chat_body(reply: Numbered) -> dict[str, Any]:
    entry = reply.entry
    refused = entry.ending == "refusal"
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if refused or not entry.spoken else entry.spoken,
        "refusal": entry.spoken if refused else None,
    }
    if entry.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in entry.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _chat_stop(entry)}
    return {**_chat_head(reply, "chat.completion"), "choices": [choice], "usage": _chat_usage(reply.usage)}


def _chat_head(reply: Numbered, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.number:06d}", "object": kind, "created": 0, "model": reply.model}


def _chat_chunk(reply: Numbered, delta: dict[str, Any], *, finish: str | None = None, text: str = "") -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return Event("", {**_chat_head(reply, "chat.completion.chunk"), "choices": [choice], "usage": None}, text)


def _chat_stop(entry: ScriptEntry) -> str:
    if entry.ending == "refusal" and not entry.spoken:
        return "content_filter"
    return CHAT_STOPS.get(entry.ending, "stop")


def _chat_usage(usage: Usage) -> dict[str, Any]:
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": _cached(usage),
    }


def _cached(usage: Usage) -> dict[str, int]:
    return {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}


# --- OpenAI Responses ------------------------------------------------------------------------------------------


def _responses_stream(reply: Numbered) -> Iterator[Event]:
    sequence = iter(range(1_000_000_000))

    def event(kind: str, members: dict[str, Any], said: str = "") -> Event:
        return Event(kind, {"type": kind, "sequence_number": next(sequence), **members}, said)

    begun = {**_responses_head(reply), "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", {"response": begun})
    yield event("response.in_progress", {"response": begun})
    for index, item in enumerate(_responses_items(reply)):
        yield event("response.output_item.added", {"output_index": index, "item": _opened(item)})
        yield from _text_events(event, index, item) if item["type"] == "message" else _call_events(event, index, item)
        yield event("response.output_item.done", {"output_index": index, "item": item})
    body = _responses_body(reply)
    yield event(f"response.{body['status']}", {"response": body})


def _text_events(event: Callable[..., Event], index: int, item: dict[str, Any]) -> Iterator[Event]:
    part = item["content"][0]
    kind, member = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    yield event("response.content_part.added", {**place, "part": {**part, member: ""}})
    for piece in pieces(part[member]):
        yield event(f"response.{kind}.delta", {**place, "delta": piece}, piece)
    yield event(f"response.{kind}.done", {**place, member: part[member]})
    yield event("response.content_part.done", {**place, "part": part})


def _call_events(event: Callable[..., Event], index: int, item: dict[str, Any]) -> Iterator[Event]:
    place = {"item_id": item["id"], "output_index": index}
    for piece in pieces(item["arguments"]):
        yield event("response.function_call_arguments.delta", {**place, "delta": piece})
    yield event("response.function_call_arguments.done", {**place, "arguments": item["arguments"]})


def _responses_body(reply: Numbered) -> dict[str, Any]:
    entry = reply.entry
    reason = "max_output_tokens" if entry.ending == "max_tokens" else None
    if entry.ending == "refusal" and not entry.spoken:
        reason = "content_filter"
    return {
        **_responses_head(reply),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": _responses_items(reply),
        "usage": _responses_usage(reply.usage),
    }


def _responses_head(reply: Numbered) -> dict[str, Any]:
    return {
        "id": f"resp_{reply.number:06d}",
        "object": "response",
        "created_at": 0,
        "model": reply.model,
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _responses_items(reply: Numbered) -> list[dict[str, Any]]:
    entry, number = reply.entry, reply.number
    items: list[dict[str, Any]] = []
    if entry.spoken:
        part: dict[str, Any] = {"type": "output_text", "text": entry.spoken, "annotations": []}
        if entry.ending == "refusal":
            part = {"type": "refusal", "refusal": entry.spoken}
        head = {"id": f"msg_{number:06d}", "type": "message", "role": "assistant", "status": "completed"}
        items.append({**head, "content": [part]})
    for index, call in enumerate(entry.calls):
        head = {"id": f"fc_{number:06d}_{index}", "type": "function_call", "status": "completed"}
        items.append({**head, "call_id": call.id, "name": call.name, "arguments": call.arguments})
    return items


def _opened(item: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
    return {**item, "status": "in_progress", **empty}


def _responses_usage(usage: Usage) -> dict[str, Any]:
    total = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "input_tokens": total,
        "input_tokens_details": _cached(usage),
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total + usage.output_tokens,
    }


_STREAMS: dict[str, Callable[[Numbered], Iterator[Event]]] = {
    "anthropic": _anthropic_stream,
    "openai-chat": _chat_stream,
    "openai-responses": _responses_stream,
}
_BODIES: dict[str, Callable[[Numbered], dict[str, Any]]] = {
    "anthropic": _anthropic_body,
    "openai-chat": _chat_body,
    "openai-responses": _responses_body,
}
