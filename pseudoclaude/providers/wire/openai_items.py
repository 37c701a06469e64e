"""Which output items of a response can be trusted to go back: those whose members have the shape the API requires.

One odd item makes all of its response's items stay here, and the caller projects the canonical message: a server that refuses an item
refuses the request.  An item type that nobody here knows passes; it is left out of what is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pseudoclaude.protocol.names import is_one_of
from pseudoclaude.providers.wire.aliases import matcher
from pseudoclaude.providers.wire.texts import JSONObject

ITEM_ID_LENGTH_MAX = 64
OWN_IDS = {"web_search_call": "ws", "file_search_call": "fs", "code_interpreter_call": "ci"}
"""Items that cannot go without their id, and how it begins (R10)."""

STATUSES = frozenset({"in_progress", "searching", "interpreting", "completed", "failed", "incomplete"})
ACTIONS = {"search": (), "open_page": (), "find_in_page": ("pattern", "url")}
"""What a web search did, and the texts that describing it requires."""

_fits_id = matcher(ITEM_ID_LENGTH_MAX)


def is_item(item: Any) -> bool:
    """Whether every member that would be sent, or that a projection reads, is there in its type."""
    if not isinstance(item, dict) or not isinstance(kind := item.get("type"), str):
        return False
    is_sound = _SOUND.get(kind)
    return is_sound is None or is_sound(item)


def part_text(part: JSONObject) -> str:
    """What a part of an assistant's message says."""
    text: str = part["text"] if part["type"] == "output_text" else part["refusal"]
    return text


def _is_message(item: JSONObject) -> bool:
    parts = item.get("content")
    if item.get("role") != "assistant" or not isinstance(item.get("phase"), str | None):
        return False
    return isinstance(parts, list) and all(_is_part(part) for part in parts)


def _is_part(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    if part.get("type") == "output_text":
        return isinstance(part.get("text"), str) and _are_objects(part.get("annotations") or [])
    return part.get("type") == "refusal" and isinstance(part.get("refusal"), str)


def _is_function_call(item: JSONObject) -> bool:
    return _are_texts([item.get(key) for key in ("call_id", "name", "arguments")])


def _is_reasoning(item: JSONObject) -> bool:
    summary = item.get("summary")
    if summary is None:
        return True
    return _are_objects(summary) and all(
        part.get("type") == "summary_text" and isinstance(part.get("text"), str) for part in summary
    )


def _is_server_call(item: JSONObject) -> bool:
    name = item.get("id")
    if not isinstance(name, str) or not _fits_id(name) or not name.startswith(OWN_IDS[item["type"]]):
        return False
    return is_one_of(item.get("status"), STATUSES)


def _is_web_search(item: JSONObject) -> bool:
    action = item.get("action")
    if not _is_server_call(item) or not isinstance(action, dict) or not is_one_of(action.get("type"), ACTIONS):
        return False
    return _are_texts([action.get(key) for key in ACTIONS[action["type"]]])


def _is_file_search(item: JSONObject) -> bool:
    return _is_server_call(item) and _are_texts(item.get("queries")) and _are_objects(item.get("results") or [])


def _is_code_interpreter(item: JSONObject) -> bool:
    if not _is_server_call(item) or not isinstance(item.get("container_id"), str):
        return False
    known = "code" in item and "outputs" in item
    return known and isinstance(item["code"], str | None) and _are_objects(item["outputs"] or [])


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _are_objects(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, dict) for value in values)


_SOUND: dict[str, Callable[[JSONObject], bool]] = {
    "message": _is_message,
    "function_call": _is_function_call,
    "reasoning": _is_reasoning,
    "web_search_call": _is_web_search,
    "file_search_call": _is_file_search,
    "code_interpreter_call": _is_code_interpreter,
}
"""The item types that are looked into (item types of openai 3.57)."""
