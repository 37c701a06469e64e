"""Screens: one cheap pass that recognises plain, sound requests, so that judging the common case costs about as much as encoding it.

A screen answers "certainly nothing to report, in either profile", never "something is wrong": a request it does not recognise goes
through every rule.  So a screen may be as narrow as it likes, and must not be wider than the rules; a test holds every screen against
the rules on generated histories.  What they know: turns that alternate and end with the user, plain text, calls with legal unique ids
and flat arguments, results right behind their calls, no member beyond those.

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
TEXT_LENGTH_MAX = 10_000_000
"""Both for one string and, at Anthropic, for all texts: below every limit of the rules."""

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
    except (KeyError, TypeError):
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
    waiting: Sequence[str] = ()
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
            waiting = ()
        else:
            waiting = _called(content, seen)
            length += TEXT_LENGTH_MAX + 1 if waiting is _UNKNOWN else 0
        role = "assistant" if role == "user" else "user"
        if length > TEXT_LENGTH_MAX:
            return False
    return True


_UNKNOWN: Sequence[str] = ("",)


def _answers_length(content: list[Any], waiting: Sequence[str]) -> int:
    """Length of results for exactly the waiting calls, in their order, then plain text; too long if it is anything else."""
    if len(content) < len(waiting):
        return TEXT_LENGTH_MAX + 1
    length = 0
    for index, block in enumerate(content):
        if index >= len(waiting):
            if not _is_text(block):
                return TEXT_LENGTH_MAX + 1
            length += len(block["text"])
            continue
        result = block["content"]
        if block["tool_use_id"] != waiting[index] or block["type"] != "tool_result" or type(block) is not dict:
            return TEXT_LENGTH_MAX + 1
        if len(block) != 3 and not (len(block) == 4 and block["is_error"] is True):
            return TEXT_LENGTH_MAX + 1
        if type(result) is not str or not (result.isascii() or clean(result) is result):
            return TEXT_LENGTH_MAX + 1
        length += len(result)
    return length


def _is_text(block: dict[str, Any]) -> bool:
    return block["type"] == "text" and len(block) == 2 and type(block) is dict and _says(block["text"])


def _called(content: list[Any], seen: set[str]) -> Sequence[str]:
    """The ids that plain text and call blocks call, also noted in ``seen``; ``_UNKNOWN`` if there is anything else."""
    called = []
    for block in content:
        if block["type"] != "tool_use":
            if not _is_text(block):
                return _UNKNOWN
            continue
        call_id, arguments = block["id"], block["input"]
        if len(block) != 4 or call_id in seen or not _is_id(call_id) or not _is_name(block["name"]):
            return _UNKNOWN
        if type(block) is not dict or type(arguments) is not dict or not _is_flat(arguments):
            return _UNKNOWN
        seen.add(call_id)
        called.append(call_id)
    return called


def _is_flat(arguments: dict[str, Any]) -> bool:
    """Plain text, numbers and nothing nested; deeper arguments are left to the rules."""
    for key, value in arguments.items():
        if not (key.isascii() or clean(key) is key):
            return False
        if type(value) is str:
            if not (value.isascii() or clean(value) is value):
                return False
        elif value is not None and type(value) not in (bool, int, float):
            return False
    return True


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
