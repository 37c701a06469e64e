"""Screens: one cheap pass that recognises plain, sound requests, so that judging the common case costs about as much as encoding it.

A screen answers "certainly nothing to report, in either profile", never "something is wrong": a request it does not recognise goes
through every rule.  So a screen may be as narrow as it likes, and must not be wider than the rules; a test holds every screen against
the rules on generated histories.  What they know: turns that alternate and end with the user, plain text, calls with legal unique ids
and flat arguments, results right behind their calls, no member beyond those.
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

_CALL_KEYS = {"type", "id", "name", "input"}
_TEXT_KEYS = {"type", "text"}


def never(_: Sequence[Any]) -> bool:
    """The screen of a dialect that has none."""
    return False


def are_plain_tools(tools: Any) -> bool:
    """Declared tools that no rule has anything to say about: legal names, each once, at least one."""
    if not isinstance(tools, (list, tuple)) or not tools or not all(isinstance(name, str) for name in tools):
        return False
    return len(set(tools)) == len(tools) and all(map(_is_name, tools))


def _sound(text: Any) -> bool:
    """Text that is more than white space, holds no lone surrogate and is not too long."""
    return (
        type(text) is str
        and bool(text)
        and not text.isspace()
        and (text.isascii() or clean(text) is text)
        and len(text) <= TEXT_LENGTH_MAX
    )


# --- Anthropic -------------------------------------------------------------------------------------------------


def anthropic(messages: Sequence[Any]) -> bool:
    if not messages or len(messages) > MESSAGES_MAX or not len(messages) % 2:
        return False
    seen: set[str] = set()
    waiting: tuple[str, ...] = ()
    from_user = True
    length = 0
    for message in messages:
        if (
            type(message) is not dict
            or len(message) != 2
            or message.get("role") != ("user" if from_user else "assistant")
        ):
            return False
        content = message.get("content")
        if type(content) is str:
            # The same test as _sound, inlined: this line runs for every message of every request.
            if waiting or not content or content.isspace() or not (content.isascii() or clean(content) is content):
                return False
            length += len(content)
        elif type(content) is not list or not content:
            return False
        elif from_user:
            if not _answers(content, waiting):
                return False
            length += sum([len(block.get("text") or block["content"]) for block in content])
            waiting = ()
        else:
            called = _called(content, seen)
            if called is None:
                return False
            waiting = called
        from_user = not from_user
    return length <= TEXT_LENGTH_MAX


def _answers(content: list[Any], waiting: tuple[str, ...]) -> bool:
    """Results for exactly the waiting calls, in their order, then plain text."""
    if len(content) < len(waiting):
        return False
    for index, block in enumerate(content):
        if type(block) is not dict:
            return False
        if index >= len(waiting):
            if not _is_text(block):
                return False
            continue
        result = block.get("content")
        if block.get("type") != "tool_result" or block.get("tool_use_id") != waiting[index] or type(result) is not str:
            return False
        if len(block) != 3 and not (len(block) == 4 and block.get("is_error") is True):
            return False
        if not result or not (result.isascii() or clean(result) is result):
            return False
    return True


def _is_text(block: dict[str, Any]) -> bool:
    return len(block) == 2 and block.get("type") == "text" and _sound(block.get("text"))


def _called(content: list[Any], seen: set[str]) -> tuple[str, ...] | None:
    """The ids that plain text and call blocks call, also noted in ``seen``; None if there is anything else."""
    called = []
    for block in content:
        if type(block) is not dict:
            return None
        if block.get("type") == "tool_use":
            name = block.get("id")
            if block.keys() != _CALL_KEYS or type(name) is not str or name in seen or not _is_id(name):
                return None
            if type(block["name"]) is not str or not _is_name(block["name"]) or not _is_flat(block["input"]):
                return None
            seen.add(name)
            called.append(name)
        elif not _is_text(block):
            return None
    return tuple(called)


def _is_flat(arguments: Any) -> bool:
    """An object of plain text, numbers and nothing nested; deeper ones are left to the rules."""
    if type(arguments) is not dict:
        return False
    for key, value in arguments.items():
        if not (key.isascii() or clean(key) is key):
            return False
        if type(value) is str:
            if len(value) > TEXT_LENGTH_MAX or not (value.isascii() or clean(value) is value):
                return False
        elif value is not None and type(value) not in (bool, int, float):
            return False
    return True


# --- OpenAI Chat Completions -----------------------------------------------------------------------------------


def openai_chat(messages: Sequence[Any]) -> bool:
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        if type(message) is not dict or not _is_short(message.get("content")):
            return False
        size, role = len(message), message.get("role")
        if role == "tool":
            if size != 3 or not waiting or message.get("tool_call_id") != waiting.pop():
                return False
        elif waiting or size > 3:
            return False
        elif size == 3:
            if role != "assistant" or not _chat_calls(message.get("tool_calls"), seen, waiting):
                return False
        elif role not in ("user", "assistant", "system"):
            return False
    return not waiting and bool(messages)


def _is_short(text: Any) -> bool:
    """Text that may be empty, without a lone surrogate, and not too long."""
    return type(text) is str and (text.isascii() or clean(text) is text) and len(text) <= TEXT_LENGTH_MAX


def _chat_calls(calls: Any, seen: set[str], waiting: list[str]) -> bool:
    """Plain function calls; their ids go to ``waiting``, the first one last."""
    if type(calls) is not list or not calls:
        return False
    for call in reversed(calls):
        if type(call) is not dict or len(call) != 3 or call.get("type") != "function":
            return False
        name, function = call.get("id"), call.get("function")
        if (
            type(name) is not str
            or name in seen
            or not _is_id(name)
            or type(function) is not dict
            or len(function) != 2
        ):
            return False
        tool, arguments = function.get("name"), function.get("arguments")
        if type(tool) is not str or not _is_name(tool) or not _is_object_text(arguments):
            return False
        seen.add(name)
        waiting.append(name)
    return True


def _is_object_text(arguments: Any) -> bool:
    return type(arguments) is str and len(arguments) <= TEXT_LENGTH_MAX and parse_object(arguments) is not None


# --- OpenAI Responses ------------------------------------------------------------------------------------------

_MESSAGE_PARTS = {"user": "input_text", "assistant": "output_text"}


def openai_responses(items: Sequence[Any]) -> bool:
    called: set[str] = set()
    waiting: set[str] = set()
    for item in items:
        if type(item) is not dict:
            return False
        kind = item.get("type")
        if kind == "message":
            if not _is_plain_item(item):
                return False
        elif kind == "function_call":
            if not _is_plain_call(item) or item["call_id"] in called:
                return False
            called.add(item["call_id"])
            waiting.add(item["call_id"])
        elif kind == "function_call_output":
            call_id = item.get("call_id")
            if (
                len(item) != 3
                or type(call_id) is not str
                or call_id not in waiting
                or not _is_short(item.get("output"))
            ):
                return False
            waiting.discard(call_id)
        else:
            return False
    return not waiting


def _is_plain_item(item: dict[str, Any]) -> bool:
    content = item.get("content")
    if len(item) != 3 or type(content) is not list or len(content) != 1 or type(content[0]) is not dict:
        return False
    part, role = content[0], item.get("role")
    wanted = _MESSAGE_PARTS.get(role) if type(role) is str else None
    return wanted is not None and len(part) == 2 and part.get("type") == wanted and _sound(part.get("text"))


def _is_plain_call(item: dict[str, Any]) -> bool:
    call_id, name = item.get("call_id"), item.get("name")
    if len(item) != 4 or type(call_id) is not str or type(name) is not str:
        return False
    return bool(_is_id(call_id)) and bool(_is_name(name)) and _is_object_text(item.get("arguments"))
