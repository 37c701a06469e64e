"""Canonical history to OpenAI Chat Completions ``messages``.

Total for any repaired history.  The API has no error flag, so an error is marked in the text of its result.  A call always comes
with ``content`` as text, empty if need be: servers exist that refuse null there (X10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pseudoclaude.messages import Message
from pseudoclaude.protocol.repair import MISSING_BEGINNING
from pseudoclaude.providers.wire.aliases import CallIds, call_ids, wire_name
from pseudoclaude.providers.wire.texts import (
    EMPTY_MESSAGE,
    JSONObject,
    arguments_text,
    marked_result,
    native_payload,
    says_something,
)

ID_LENGTH_MAX = 40
"""Reports disagree on 40, 51 and 64 (K5); 40 is accepted by all."""

NATIVE_KEYS = ("content", "name")


def to_wire(
    messages: Sequence[Message], *, ids: CallIds | None = None, extra_keys: tuple[str, ...] = ()
) -> list[JSONObject]:
    """One wire message a message; ``extra_keys`` are members of an assistant's own form that a compatible server wants back."""
    ids = ids or call_ids(ID_LENGTH_MAX)
    out: list[JSONObject] = []
    for message in messages:
        if message.tool_result is not None:
            out.append(
                {
                    "role": "tool",
                    "tool_call_id": ids.result(message.tool_result.call_id),
                    "content": marked_result(message.tool_result),
                }
            )
        elif message.role == "user":
            out.append(
                {"role": "user", "content": message.content if says_something(message.content) else EMPTY_MESSAGE}
            )
        else:
            assistant = _assistant(message, ids, extra_keys)
            if assistant is None:
                continue
            if not out:
                out.append({"role": "user", "content": MISSING_BEGINNING})
            out.append(assistant)
    return out


def _assistant(message: Message, ids: CallIds, extra_keys: tuple[str, ...]) -> JSONObject | None:
    own = _native(message, (*NATIVE_KEYS, *extra_keys)) if message.native is not None else None
    text = message.content if says_something(message.content) else ""
    if not message.tool_calls:
        if own is not None:
            return own
        return {"role": "assistant", "content": text} if text else None
    wire: JSONObject = own if own is not None else {"role": "assistant", "content": text}
    if wire.get("content") is None:
        wire["content"] = text
    wire["tool_calls"] = [
        {
            "id": ids.call(call.id),
            "type": "function",
            "function": {"name": wire_name(call.name), "arguments": arguments_text(call.arguments)},
        }
        for call in message.tool_calls
    ]
    return wire


def _native(message: Message, keys: tuple[str, ...]) -> JSONObject | None:
    """The assistant's own message without its calls, if it says what the canonical one says; the calls go out canonically."""
    payload = native_payload(message, "openai", "chat")
    if not isinstance(payload, dict) or payload.get("role", "assistant") != "assistant":
        return None
    content, refusal = payload.get("content"), payload.get("refusal")
    if (content or refusal or "") != message.content or not _same_calls(payload.get("tool_calls"), message):
        return None
    wire = {"role": "assistant"} | {key: payload[key] for key in keys if payload.get(key) is not None}
    if "name" in wire and (not isinstance(wire["name"], str) or wire_name(wire["name"]) != wire["name"]):
        del wire["name"]
    if not isinstance(wire.get("reasoning_content"), str | None):
        del wire["reasoning_content"]
    if not says_something(message.content):
        return {**wire, "content": ""} if message.tool_calls else None
    if not content:
        wire["content"] = [{"type": "refusal", "refusal": refusal}]
    return wire


def _same_calls(own: Any, message: Message) -> bool:
    calls = own if isinstance(own, list) else []
    if len(calls) != len(message.tool_calls):
        return False
    for theirs, call in zip(calls, message.tool_calls, strict=True):
        function = theirs.get("function") if isinstance(theirs, dict) else None
        if not isinstance(function, dict) or theirs.get("id") != call.id:
            return False
        if function.get("name") != call.name or function.get("arguments") != call.arguments:
            return False
    return True
