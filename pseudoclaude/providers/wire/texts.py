"""The fixed words a projection puts where an API wants text and the history has none."""

from __future__ import annotations

from typing import Any

import msgspec

from pseudoclaude.messages import Message, ToolResult
from pseudoclaude.protocol.arguments import parse_object

EMPTY_MESSAGE = "[empty message]"
EMPTY_RESULT = "[no output]"
ERROR_MARK = "[error] "
RAW_ARGUMENTS = "_raw"
"""Member that carries argument text which is not a JSON object."""

JSONObject = dict[str, Any]


def says_something(text: str) -> bool:
    """False for empty and white-space-only text, which Anthropic refuses (A09, A10)."""
    return bool(text) and not text.isspace()


def arguments_object(arguments: str) -> JSONObject:
    parsed = parse_object(arguments)
    return {RAW_ARGUMENTS: arguments} if parsed is None else parsed


def arguments_text(arguments: str) -> str:
    """The text as it is if it is a JSON object (C13), else the text of an object that carries it."""
    if parse_object(arguments) is not None:
        return arguments
    return msgspec.json.encode({RAW_ARGUMENTS: arguments}).decode("utf-8")


def marked_result(result: ToolResult) -> str:
    """Result text for APIs without an error flag."""
    text = result.content or EMPTY_RESULT
    return ERROR_MARK + text if result.is_error else text


def native_payload(message: Message, provider: str, api: str) -> Any:
    """The provider's own form of the message if it came from this very API, else None."""
    native = message.native
    if native is None or native.provider != provider or native.api != api:
        return None
    return native.payload
