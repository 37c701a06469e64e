"""Wire bodies read back into canonical messages, and the fingerprint by which two such histories are the same conversation.

Foreign recordings were made by other clients: their requests differ from ours in spelling (a string or a list of blocks, extra
keys, cache marks, ids), while the conversation is the same.  ``read_history`` takes a request body of any of the three APIs to
canonical messages.  ``fingerprint`` keeps of those what a model would read, in order: texts, calls, results; ids become the order
of the calls, JSON is compared as a value, and what the canonical form cannot hold (images, documents) is a marker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pseudoclaude.messages import History, Message, Native, ToolCall, ToolResult

Fingerprint = tuple[tuple[Any, ...], ...]


def read_history(dialect: str, body: Mapping[str, Any]) -> History:
    """The conversation of one request body, system prompts left out."""
    return tuple(_READERS[dialect](body))


def system_text(dialect: str, body: Mapping[str, Any]) -> str:
    """The system prompt of one request body, joined."""
    if dialect == "anthropic":
        return _text(body.get("system"))
    if dialect == "openai-responses" and body.get("instructions"):
        return str(body["instructions"])
    items = body.get("messages") or body.get("input") or ()
    listed = items if isinstance(items, list) else ()
    return "\n".join(_text(item.get("content")) for item in listed if item.get("role") in ("system", "developer"))


def fingerprint(messages: Sequence[Message]) -> Fingerprint:
    """What the model would read.  Neighbouring texts of one role count as one."""
    ordinals: dict[str, int] = {}
    parts: list[tuple[Any, ...]] = []
    for message in messages:
        if message.tool_result is not None:
            result = message.tool_result
            parts.append(("result", ordinals.get(result.call_id, -1), result.content.strip()))
            continue
        text = message.content.strip()
        if text and parts and parts[-1][0] == message.role:
            parts[-1] = (message.role, f"{parts[-1][1]}\n{text}")
        elif text:
            parts.append((message.role, text))
        for call in message.tool_calls:
            ordinals[call.id] = sum(part[0] == "call" for part in parts)
            parts.append(("call", call.name, _json_value(call.arguments)))
    return tuple(parts)


# --- one reader an API -----------------------------------------------------------------------------------------


def _read_anthropic(body: Mapping[str, Any]) -> Iterator[Message]:
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        if message["role"] == "assistant":
            yield _anthropic_assistant(blocks)
        elif message["role"] == "user":
            for block in blocks:
                if block["type"] == "tool_result":
                    yield _result(block["tool_use_id"], block.get("content"), bool(block.get("is_error")))
            rest = [block for block in blocks if block["type"] != "tool_result"]
            if rest:
                yield Message("user", _text(rest))


def _anthropic_assistant(blocks: list[dict[str, Any]]) -> Message:
    text = "".join(block.get("text") or "" for block in blocks if block["type"] == "text")
    calls = tuple(
        ToolCall(block["id"], block["name"], _dump(block.get("input") or {}))
        for block in blocks
        if block["type"] == "tool_use"
    )
    plain = all(block["type"] in ("text", "tool_use") for block in blocks)
    native = None if plain else Native("anthropic", "messages", "", blocks)
    return Message("assistant", text, calls, native=native)


def _read_chat(body: Mapping[str, Any]) -> Iterator[Message]:
    for message in body["messages"]:
        role = message["role"]
        if role == "assistant":
            calls = [call for call in message.get("tool_calls") or () if "function" in call]
            yield Message(
                "assistant",
                _text(message.get("content")) or message.get("refusal") or "",
                tuple(ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls),
            )
        elif role == "tool":
            yield _result(message["tool_call_id"], message.get("content"), False)
        elif role == "user":
            yield Message("user", _text(message.get("content")))


def _read_responses(body: Mapping[str, Any]) -> Iterator[Message]:
    items = body.get("input") or []
    if isinstance(items, str):
        yield Message("user", items)
        return
    turn: list[dict[str, Any]] = []
    for item in items:
        if _made_by_model(item):
            turn.append(item)
            continue
        if turn:
            yield _responses_turn(turn)
            turn = []
        if "output" in item:
            yield _result(item["call_id"], item["output"], False)
        elif item.get("role") == "user":
            yield Message("user", _text(item.get("content")))
    if turn:
        yield _responses_turn(turn)


def _made_by_model(item: Mapping[str, Any]) -> bool:
    kind = item.get("type", "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return not kind.endswith("_output")


def _responses_turn(items: list[dict[str, Any]]) -> Message:
    text = "".join(_text(item.get("content"), joiner="") for item in items if item.get("type", "message") == "message")
    calls = tuple(
        ToolCall(item["call_id"], item["name"], item["arguments"])
        for item in items
        if item.get("type") == "function_call"
    )
    plain = all(item.get("type", "message") in ("message", "function_call") for item in items)
    native = None if plain else Native("openai", "responses", "", items)
    return Message("assistant", text, calls, native=native)


_READERS: dict[str, Callable[[Mapping[str, Any]], Iterator[Message]]] = {
    "anthropic": _read_anthropic,
    "openai-chat": _read_chat,
    "openai-responses": _read_responses,
}


# --- pieces ----------------------------------------------------------------------------------------------------


def _result(call_id: str, content: Any, is_error: bool) -> Message:
    return Message("tool", tool_result=ToolResult(call_id, _text(content), is_error=is_error))


def _text(content: Any, joiner: str = "\n") -> str:
    """The text of a string or a list of parts; a part that is no text is ``[type]``."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return joiner.join(part if isinstance(part, str) else _part_text(part) for part in content)
    return _dump(content)


def _part_text(part: Mapping[str, Any]) -> str:
    for key in ("text", "refusal"):
        if isinstance(part.get(key), str):
            return str(part[key])
    return f"[{part.get('type', 'part')}]"


def _json_value(text: str) -> Any:
    try:
        return json.dumps(json.loads(text or "{}"), sort_keys=True)
    except ValueError:
        return text


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
