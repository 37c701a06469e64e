"""What a recorded response says, read from its raw bytes without any of the code under test.

Deliberately plain: no SDK, no adapter, no shared table.  One function an API and way of delivery.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from simulator.replies.cassettes import Recorded


class Truth(NamedTuple):
    """``calls`` are (id, name, arguments as a JSON value or the raw text); ``usage`` is (input, output, cache read, cache write).

    ``error`` is the name of the class that must be raised, ``text`` what had arrived before it.
    """

    text: str = ""
    calls: tuple[tuple[str, str, Any], ...] = ()
    usage: tuple[int, int, int, int] | None = None
    stop: str | None = None
    error: str | None = None
    retryable: bool | None = None
    retry_after: float | None = None


def truth(recorded: Recorded) -> Truth:
    if recorded.status != 200:
        return _refused(recorded)
    text = recorded.reply.decode("utf-8")
    if recorded.streams:
        events = [
            json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:") and "[DONE]" not in line
        ]
        return {"anthropic": _anthropic_stream, "openai-chat": _chat_stream, "openai-responses": _responses_stream}[
            str(recorded.dialect)
        ](events)
    body = json.loads(text)
    return {"anthropic": _anthropic_body, "openai-chat": _chat_body, "openai-responses": _responses_body}[
        str(recorded.dialect)
    ](body)


def value(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def text_of_events(recorded: Recorded, events: int) -> str:
    """The reply's text in the first ``events`` events of a stream: what must survive a cut there."""
    lines = [line for line in recorded.reply.decode("utf-8").splitlines() if line.startswith("data:")]
    text = ""
    for line in lines[:events]:
        event = None if "[DONE]" in line else json.loads(line[5:])
        if event is None:
            continue
        if recorded.dialect == "anthropic":
            delta = event.get("delta") or event.get("content_block") or {}
            text += delta.get("text") or "" if delta.get("type") in ("text_delta", "text") else ""
        elif recorded.dialect == "openai-chat":
            text += "".join(c["delta"].get("content") or "" for c in event.get("choices", []) if c["index"] == 0)
        else:
            text += event["delta"] if event["type"] == "response.output_text.delta" else ""
    return text


def anthropic_blocks(recorded: Recorded) -> list[dict[str, Any]]:
    """The content blocks of an Anthropic stream, put together from its deltas."""
    blocks: list[dict[str, Any]] = []
    inputs: dict[int, str] = {}
    for line in recorded.reply.decode("utf-8").splitlines():
        event = json.loads(line[5:]) if line.startswith("data:") else {}
        if event.get("type") == "content_block_start":
            blocks.append(event["content_block"])
        if event.get("type") != "content_block_delta":
            continue
        block, delta = blocks[event["index"]], event["delta"]
        if delta["type"] == "input_json_delta":
            inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
        elif delta["type"] == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        else:
            member = delta["type"].removesuffix("_delta")
            block[member] = (block.get(member) or "") + delta[member]
    for index, text in inputs.items():
        blocks[index]["input"] = value(text or "{}")
    return blocks


# --- refusals --------------------------------------------------------------------------------------------------


def _refused(recorded: Recorded) -> Truth:
    error = json.loads(recorded.reply)["error"]
    headers = dict(recorded.headers)
    hopeless = headers.get("x-should-retry") == "false" or error.get("type") in ("tokens", "insufficient_quota")
    too_long = error.get("code") == "context_length_exceeded" or "prompt is too long" in error["message"]
    by_status = {401: "AuthenticationFailed", 429: "RateLimited", 500: "ProviderUnavailable", 529: "Overloaded"}
    name = "ContextOverflow" if too_long else by_status.get(recorded.status, "InvalidRequest")
    waits = headers.get("retry-after")
    return Truth(
        error=name,
        retryable=recorded.status in (429, 500, 529) and not hopeless,
        retry_after=float(waits) if waits else None,
    )


def _failed_stream(error: dict[str, Any], text: str) -> Truth:
    if text:
        return Truth(text=text, error="StreamInterrupted")
    return Truth(error="Overloaded" if error["type"] == "overloaded_error" else "ProviderUnavailable", retryable=True)


# --- Anthropic Messages ----------------------------------------------------------------------------------------

ANTHROPIC_STOPS = {"compaction": "pause_turn"}


def _anthropic_body(body: dict[str, Any]) -> Truth:
    usage = body["usage"]
    return Truth(
        text="".join(block["text"] for block in body["content"] if block["type"] == "text"),
        calls=tuple(
            (block["id"], block["name"], block["input"]) for block in body["content"] if block["type"] == "tool_use"
        ),
        usage=_anthropic_usage(usage),
        stop=ANTHROPIC_STOPS.get(body["stop_reason"], body["stop_reason"]),
    )


def _anthropic_stream(events: list[dict[str, Any]]) -> Truth:
    blocks: dict[int, dict[str, Any]] = {}
    json_texts: dict[int, str] = {}
    usage: dict[str, Any] = {}
    stop = None
    for event in events:
        if event["type"] == "error":
            text = "".join(block["text"] for block in blocks.values() if block["type"] == "text")
            return _failed_stream(event["error"], text)
        if event["type"] == "message_start":
            usage = dict(event["message"]["usage"])
        if event["type"] == "content_block_start":
            blocks[event["index"]] = event["content_block"]
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
            blocks[event["index"]]["text"] += event["delta"]["text"]
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            json_texts[event["index"]] = json_texts.get(event["index"], "") + event["delta"]["partial_json"]
        if event["type"] == "message_delta":
            stop = event["delta"]["stop_reason"]
            for key, count in event["usage"].items():
                usage[key] = count
    return Truth(
        text="".join(block["text"] for block in blocks.values() if block["type"] == "text"),
        calls=tuple(
            (block["id"], block["name"], value(json_texts[index]) if json_texts.get(index) else block["input"])
            for index, block in blocks.items()
            if block["type"] == "tool_use"
        ),
        usage=_anthropic_usage(usage),
        stop=ANTHROPIC_STOPS.get(str(stop), stop),
    )


def _anthropic_usage(usage: dict[str, Any]) -> tuple[int, int, int, int]:
    return (
        usage["input_tokens"],
        usage["output_tokens"],
        usage.get("cache_read_input_tokens") or 0,
        usage.get("cache_creation_input_tokens") or 0,
    )


# --- OpenAI ----------------------------------------------------------------------------------------------------


def _openai_usage(usage: dict[str, Any] | None, source: str, target: str) -> tuple[int, int, int, int] | None:
    if usage is None:
        return None
    details = usage.get(f"{source}_details") or {}
    read, written = details.get("cached_tokens", 0), details.get("cache_write_tokens", 0)
    return usage[source] - read - written, usage[target], read, written


def _chat_stop(finish: str | None, calls: bool, refused: bool) -> str | None:
    if refused:
        return "refusal"
    if calls and finish != "length":
        return "tool_use"
    known = {"stop": "end_turn", "length": "max_tokens", "function_call": "tool_use", "content_filter": "refusal"}
    return known.get(str(finish))


def _chat_body(body: dict[str, Any]) -> Truth:
    if "error" in body:  # in a body of status 200: a filter that kept the request back
        return Truth(error="InvalidRequest", retryable=False)
    choice = body["choices"][0]
    message = choice.get("message") or {}
    calls = message.get("tool_calls") or []
    return Truth(
        text=message.get("content") or message.get("refusal") or "",
        calls=tuple(
            (call["id"], call["function"]["name"], value(call["function"]["arguments"] or "{}")) for call in calls
        ),
        usage=_openai_usage(body.get("usage"), "prompt_tokens", "completion_tokens"),
        stop=_chat_stop(choice.get("finish_reason"), bool(calls), bool(message.get("refusal"))),
    )


def _chat_stream(events: list[dict[str, Any]]) -> Truth:
    text, finish, usage = "", None, None
    calls: dict[int, list[str]] = {}
    for event in events:
        if "error" in event:
            return _failed_stream(event["error"], text)
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            if choice.get("index", 0) != 0:
                continue
            text += choice["delta"].get("content") or ""
            finish = choice.get("finish_reason") or finish
            for piece in choice["delta"].get("tool_calls") or []:
                call = calls.setdefault(piece.get("index", len(calls)), ["", "", ""])
                call[0] += piece.get("id") or ""
                call[1] += piece["function"].get("name") or ""
                call[2] += piece["function"].get("arguments") or ""
    return Truth(
        text=text,
        calls=tuple((call[0] or f"call_{n}", call[1], value(call[2] or "{}")) for n, call in sorted(calls.items())),
        usage=_openai_usage(usage, "prompt_tokens", "completion_tokens"),
        stop=_chat_stop(finish, bool(calls), False),
    )


def _responses_body(body: dict[str, Any]) -> Truth:
    parts = [part for item in body["output"] if item["type"] == "message" for part in item["content"]]
    calls = [item for item in body["output"] if item["type"] == "function_call"]
    stop = "max_tokens" if body["status"] == "incomplete" else "tool_use" if calls else "end_turn"
    return Truth(
        text="".join(part["text"] for part in parts),
        calls=tuple((call["call_id"], call["name"], value(call["arguments"])) for call in calls),
        usage=_openai_usage(body["usage"], "input_tokens", "output_tokens"),
        stop=stop,
    )


def _responses_stream(events: list[dict[str, Any]]) -> Truth:
    """From the deltas; the last event is only asked for its usage and status, so that the two accounts are compared."""
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    last = events[-1]["response"]
    whole = _responses_body({"output": items, "status": last["status"], "usage": last["usage"]})
    assert whole.text == text, "the recording contradicts itself"
    return whole
