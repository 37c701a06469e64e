"""Canonical history to OpenAI Responses ``input`` items.

Total for any repaired history, and stateless: nothing refers to what the server may have stored, so it also works with
``store: false``.  A response's own items go back in their order when they still say what the message says; their ids do not (R06,
R07), except where an item type cannot go without one.  Reasoning survives only through its encrypted content and only in front of
an item of its own response (R05).
"""

from __future__ import annotations

from collections.abc import Sequence

from pseudoclaude.messages import Message
from pseudoclaude.protocol.opaque import is_genuine
from pseudoclaude.protocol.repair import MISSING_BEGINNING
from pseudoclaude.providers.wire.aliases import CallIds, call_ids, wire_name
from pseudoclaude.providers.wire.openai_items import OWN_IDS, is_item, part_text
from pseudoclaude.providers.wire.texts import (
    EMPTY_MESSAGE,
    JSONObject,
    arguments_text,
    marked_result,
    native_payload,
    says_something,
)

ID_LENGTH_MAX = 64

ITEM_KEYS: dict[str, tuple[str, ...]] = {
    "message": ("type", "role", "content", "phase"),
    "reasoning": ("type", "summary", "encrypted_content"),
    "function_call": ("type", "call_id", "name", "arguments"),
    "web_search_call": ("type", "id", "status", "action"),
    "file_search_call": ("type", "id", "status", "queries", "results"),
    "code_interpreter_call": ("type", "id", "status", "code", "container_id", "outputs"),
    "compaction": ("type", "encrypted_content"),
}
"""Items that go back, and with what (item types of openai 3.57; ``status`` and ids only where the type requires them)."""

PART_KEYS = {"output_text": ("type", "text", "annotations"), "refusal": ("type", "refusal")}
REQUIRED_NULLS = ("code", "outputs")
"""Members of a ``code_interpreter_call`` that may be null and not absent."""

FOLLOWS_REASONING = ("message", "function_call", *OWN_IDS)


def to_wire(messages: Sequence[Message]) -> list[JSONObject]:
    """Input items; a message becomes one item for its text and one for each call or result."""
    ids = call_ids(ID_LENGTH_MAX)
    seen: set[str] = set()
    out: list[JSONObject] = []
    for message in messages:
        if message.tool_result is not None:
            result = message.tool_result
            out.append(
                {"type": "function_call_output", "call_id": ids.result(result.call_id), "output": marked_result(result)}
            )
        elif message.role == "user":
            text = message.content if says_something(message.content) else EMPTY_MESSAGE
            out.append(_message("user", {"type": "input_text", "text": text}))
        else:
            items = _native(message, ids, seen) if message.native is not None else None
            if items is None:
                items = _canonical(message, ids)
            if items and not out:
                out.append(_message("user", {"type": "input_text", "text": MISSING_BEGINNING}))
            out += items
    return out


def _message(role: str, part: JSONObject) -> JSONObject:
    return {"type": "message", "role": role, "content": [part]}


def _canonical(message: Message, ids: CallIds) -> list[JSONObject]:
    items: list[JSONObject] = []
    if says_something(message.content):
        items.append(_message("assistant", {"type": "output_text", "text": message.content}))
    for call in message.tool_calls:
        items.append(
            {
                "type": "function_call",
                "call_id": ids.call(call.id),
                "name": wire_name(call.name),
                "arguments": arguments_text(call.arguments),
            }
        )
    return items


def _native(message: Message, ids: CallIds, seen: set[str]) -> list[JSONObject] | None:
    payload = native_payload(message, "openai", "responses")
    if not isinstance(payload, list) or not all(is_item(item) for item in payload):
        return None
    calls = [item for item in payload if item["type"] == "function_call"]
    if _text(payload) != message.content or not _same_calls(calls, message):
        return None
    items = []
    for item in payload:
        cleaned = _cleaned(item, seen)
        if cleaned is None:
            continue
        if cleaned["type"] == "function_call":
            cleaned |= {"call_id": ids.call(item["call_id"]), "name": wire_name(item["name"])}
            cleaned["arguments"] = arguments_text(item["arguments"])
        items.append(cleaned)
    return _without_dangling_reasoning(items)


def _cleaned(item: JSONObject, seen: set[str]) -> JSONObject | None:
    """The item as it may go back, or None if it may not."""
    kind = item["type"]
    keys = ITEM_KEYS.get(kind)
    if keys is None:
        return None
    if kind in OWN_IDS:
        if item["id"] in seen:
            return None
        seen.add(item["id"])
    if kind in ("reasoning", "compaction") and not is_genuine(item.get("encrypted_content")):
        return None
    cleaned = {key: item[key] for key in keys if item.get(key) is not None or (key in REQUIRED_NULLS and key in item)}
    if kind == "reasoning":
        cleaned.setdefault("summary", [])
    if kind == "message":
        cleaned["content"] = [_part(part) for part in item["content"] if says_something(part_text(part))]
        return cleaned if cleaned["content"] else None
    return cleaned


def _part(part: JSONObject) -> JSONObject:
    return {key: part[key] for key in PART_KEYS[part["type"]] if part.get(key) is not None}


def _text(payload: list[JSONObject]) -> str:
    return "".join(part_text(part) for item in payload if item["type"] == "message" for part in item["content"])


def _same_calls(calls: list[JSONObject], message: Message) -> bool:
    if len(calls) != len(message.tool_calls):
        return False
    pairs = zip(calls, message.tool_calls, strict=True)
    return all(
        item["call_id"] == call.id and item["name"] == call.name and item["arguments"] == call.arguments
        for item, call in pairs
    )


def _without_dangling_reasoning(items: list[JSONObject]) -> list[JSONObject]:
    """Drop each reasoning item that no item of its response follows (R05)."""
    kept: list[JSONObject] = []
    followed = False
    for item in reversed(items):
        if item["type"] == "reasoning" and not followed:
            continue
        if item["type"] != "reasoning":
            followed = item["type"] in FOLLOWS_REASONING
        kept.append(item)
    kept.reverse()
    return kept
