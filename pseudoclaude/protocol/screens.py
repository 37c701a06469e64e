"""Screens: one cheap pass that recognises plain, sound requests, so that judging the common case costs about as much as encoding it.

A screen answers "certainly nothing to report, in either profile", never "something is wrong": a request it does not recognise goes
through every rule.  So a screen may be as narrow as it likes, and must not be wider than the rules; a test holds every screen against
the rules on generated histories.  What they know: turns that alternate and end with the user, plain text, calls with legal
unique ids, results right behind their calls, no member beyond those.

These loops run for every message of every request, hence the direct indexing: a missing member or an unhashable value ends the
screen by its exception.  The test ``text >= "!"`` is true for ASCII text only if its first character is neither white space nor a
control character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pseudoclaude.protocol.arguments import parse_object
from pseudoclaude.text import clean

MESSAGES_MAX = 100_000
DEPTH_MAX = 20
TEXT_LENGTH_MAX = 10_000_000
"""Both for one string and, at Anthropic, for all of them together: below every limit of the rules."""

_REFUSED = TEXT_LENGTH_MAX + 1
"""The length of what a screen does not recognise."""

_is_id: Callable[[str], Any] = re.compile(r"[a-zA-Z0-9_-]{1,40}").fullmatch
_is_name: Callable[[str], Any] = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch

Screen = Callable[[Sequence[Any]], bool]


def never(_: Sequence[Any]) -> bool:
    """The screen of a dialect that has none."""
    return False


def anthropic(messages: Sequence[Any]) -> bool:
    return _tried(_anthropic, messages)


def openai_chat(messages: Sequence[Any]) -> bool:
    return _tried(_openai_chat, messages)


def openai_responses(items: Sequence[Any]) -> bool:
    return _tried(_openai_responses, items)


def are_plain_tools(tools: Any) -> bool:
    """Declared tools that no rule has anything to say about: legal names, each once, at least one."""
    if not isinstance(tools, (list, tuple)) or not tools or not all(isinstance(name, str) for name in tools):
        return False
    return len(set(tools)) == len(tools) and all(map(_is_name, tools))


def _tried(screen: Screen, messages: Sequence[Any]) -> bool:
    try:
        return screen(messages)
    except (KeyError, TypeError, AttributeError):
        return False


def _says(text: Any) -> bool:
    """Text that is more than white space, without a lone surrogate, and not too long."""
    if type(text) is not str or len(text) > TEXT_LENGTH_MAX:
        return False
    return (text >= "!" and text.isascii()) or (bool(text) and not text.isspace() and clean(text) is text)


def _is_short(text: Any) -> bool:
    """Text that may be empty, without a lone surrogate, and not too long."""
    return type(text) is str and (text.isascii() or clean(text) is text) and len(text) <= TEXT_LENGTH_MAX


# --- Anthropic -------------------------------------------------------------------------------------------------


def _anthropic(messages: Sequence[Any]) -> bool:
    if not len(messages) % 2 or len(messages) > MESSAGES_MAX:
        return False
    seen: set[str] = set()
    waiting: list[str] = []
    role = "user"
    length = 0
    for message in messages:
        content = message["content"]
        if message["role"] != role or len(message) != 2 or type(message) is not dict:
            return False
        if type(content) is str:
            if waiting or not ((content >= "!" and content.isascii()) or _says(content)):
                return False
            length += len(content)
        elif type(content) is not list or not content:
            return False
        elif role == "user":
            length += _answers_length(content, waiting)
            waiting = []
        else:
            length += _calls_length(content, seen, waiting)
        role = "assistant" if role == "user" else "user"
        if length > TEXT_LENGTH_MAX:
            return False
    return True


def _answers_length(content: list[Any], waiting: list[str]) -> int:
    """Length of results for exactly the waiting calls, in their order, then plain text."""
    if len(content) < len(waiting):
        return _REFUSED
    length = 0
    for index, block in enumerate(content):
        if index >= len(waiting):
            length += _text_length(block)
            continue
        result = block["content"]
        if block["tool_use_id"] != waiting[index] or block["type"] != "tool_result" or type(block) is not dict:
            return _REFUSED
        if len(block) != 3 and not (len(block) == 4 and block["is_error"] is True):
            return _REFUSED
        if type(result) is not str or not (result.isascii() or clean(result) is result):
            return _REFUSED
        length += len(result)
    return length


def _text_length(block: dict[str, Any]) -> int:
    text = block["text"]
    return (
        len(text) if len(block) == 2 and block["type"] == "text" and type(block) is dict and _says(text) else _REFUSED
    )


def _calls_length(content: list[Any], seen: set[str], waiting: list[str]) -> int:
    """Length of plain text and calls; the ids of the calls are added to ``seen`` and ``waiting``."""
    length = 0
    for block in content:
        if block["type"] != "tool_use":
            length += _text_length(block)
            continue
        call_id, arguments = block["id"], block["input"]
        if len(block) != 4 or call_id in seen or not _is_id(call_id) or not _is_name(block["name"]):
            return _REFUSED
        if type(block) is not dict or type(arguments) is not dict:
            return _REFUSED
        seen.add(call_id)
        waiting.append(call_id)
        length += _object_length(arguments)
    return length


def _object_length(arguments: dict[str, Any], depth: int = 0) -> int:
    """Length of all strings of a JSON object; refused if one holds a lone surrogate, or if it is very deep."""
    length = 0
    for key, value in arguments.items():
        if not (key.isascii() or clean(key) is key):
            return _REFUSED
        if type(value) is str:
            if not (value.isascii() or clean(value) is value):
                return _REFUSED
            length += len(key) + len(value)
        else:
            length += len(key) + _value_length(value, depth)
    return length


def _value_length(value: Any, depth: int) -> int:
    if value is None or type(value) in (bool, int, float):
        return 0
    if depth > DEPTH_MAX:
        return _REFUSED
    if type(value) is list:
        return sum(_object_length({"": item}, depth + 1) for item in value)
    return _object_length(value, depth + 1) if type(value) is dict else _REFUSED


# --- OpenAI Chat Completions -----------------------------------------------------------------------------------


_CHAT_ROLES = ("user", "assistant", "system")


def _openai_chat(messages: Sequence[Any]) -> bool:
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        content = message["content"]
        if (
            type(content) is not str
            or not (content.isascii() or clean(content) is content)
            or len(content) > TEXT_LENGTH_MAX
        ):
            return False
        if type(message) is not dict:
            return False
        size, role = len(message), message["role"]
        if role == "tool":
            sound = size == 3 and bool(waiting) and message["tool_call_id"] == waiting.pop()
        elif size == 2:
            sound = not waiting and role in _CHAT_ROLES
        else:
            sound = (
                size == 3 and not waiting and role == "assistant" and _chat_calls(message["tool_calls"], seen, waiting)
            )
        if not sound:
            return False
    return not waiting and bool(messages)


def _chat_calls(calls: Any, seen: set[str], waiting: list[str]) -> bool:
    """Plain function calls; their ids go to ``waiting``, the first one last."""
    if type(calls) is not list or not calls:
        return False
    for call in reversed(calls):
        call_id, function = call["id"], call["function"]
        if len(call) != 3 or call["type"] != "function" or len(function) != 2 or type(function) is not dict:
            return False
        if (
            call_id in seen
            or not _is_id(call_id)
            or not _is_name(function["name"])
            or not _is_object(function["arguments"])
        ):
            return False
        seen.add(call_id)
        waiting.append(call_id)
    return True


def _is_object(arguments: Any) -> bool:
    return type(arguments) is str and len(arguments) <= TEXT_LENGTH_MAX and parse_object(arguments) is not None


# --- OpenAI Responses ------------------------------------------------------------------------------------------

_MESSAGE_PARTS = {"user": "input_text", "assistant": "output_text"}


def _openai_responses(items: Sequence[Any]) -> bool:
    called: set[str] = set()
    waiting: set[str] = set()
    for item in items:
        kind = item["type"]
        if kind == "message":
            content = item["content"]
            if len(item) != 3 or len(content) != 1 or type(content) is not list or type(item) is not dict:
                return False
            part = content[0]
            if part["type"] != _MESSAGE_PARTS[item["role"]] or len(part) != 2 or not _says(part["text"]):
                return False
            continue
        call_id = item["call_id"]
        if kind == "function_call" and call_id not in called and _is_plain_call(item, call_id):
            called.add(call_id)
            waiting.add(call_id)
        elif kind == "function_call_output" and call_id in waiting and len(item) == 3 and _is_short(item["output"]):
            waiting.discard(call_id)
        else:
            return False
    return not waiting


def _is_plain_call(item: dict[str, Any], call_id: str) -> bool:
    if len(item) != 4 or type(item) is not dict or not _is_id(call_id) or not _is_name(item["name"]):
        return False
    return _is_object(item["arguments"])
