"""The values everything else passes around: Message, ToolCall, ToolResult, Spill, Usage, Native.

All are frozen, and frozen all the way down, so a snapshot of a history is a tuple and costs no deep copy.  Text in them is
strict UTF-8: a lone surrogate becomes U+FFFD when the value is built, once, and nobody after that looks again.  Native payloads
are JSON values by construction: what JSON cannot say (NaN, bytes, sets, number keys) is refused here, before any byte of it
could reach a disk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NoReturn, get_args

import msgspec
from msgspec.structs import force_setattr

from pseudoclaude.errors import InvalidMessage
from pseudoclaude.text import clean

Role = Literal["user", "assistant", "tool"]
Stop = Literal["end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause_turn", "interrupted"]
Origin = Literal["tool", "interrupted"]

STOPS: tuple[str, ...] = get_args(Stop)
ORIGINS: tuple[str, ...] = get_args(Origin)

NATIVE_DEPTH_MAX = 200
"""Deeper JSON than this is refused: no provider sends it, and decoders recurse."""
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1


class FrozenList(list[Any]):
    """A list that compares, iterates and encodes as one, and cannot be changed."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a message in a history cannot be changed; build a new one")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)  # a copy is built anew: the usual way of copying appends


class FrozenDict(dict[str, Any]):
    """A dict that compares, iterates and encodes as one, and cannot be changed."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a message in a history cannot be changed; build a new one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = pop = popitem = clear = setdefault = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


def freeze(value: Any, path: str = "payload", depth: int = 0) -> Any:
    """A frozen copy of a JSON value; ``InvalidMessage`` names the place of anything that JSON cannot hold.

    What is frozen already is copied too: inside another value it may lie deeper than a reader of the log follows.
    """
    if isinstance(value, (list, tuple, Mapping)):
        if depth >= NATIVE_DEPTH_MAX:
            raise InvalidMessage(f"nested deeper than {NATIVE_DEPTH_MAX} levels", where=path)
        if not isinstance(value, Mapping):
            return FrozenList(freeze(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value))
        members = ((_key(key, path), item) for key, item in value.items())
        return FrozenDict((key, freeze(item, f"{path}.{key}", depth + 1)) for key, item in members)
    return _scalar(value, path)


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise InvalidMessage(f"key {_shown(key)} is not text", where=path)
    return _plain_text(key)


def _scalar(value: Any, path: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _plain_text(value)
    if isinstance(value, int):
        if INTEGER_MIN <= value <= INTEGER_MAX:
            return int.__int__(value)
        raise InvalidMessage("an integer beyond 64 bits does not survive JSON readers", where=path)
    if isinstance(value, float):
        if math.isfinite(value):
            return float.__float__(value)
        raise InvalidMessage(f"{value} is not a JSON number", where=path)
    raise InvalidMessage(f"{type(value).__name__} is not a JSON value", where=path)


def _plain_text(text: str) -> str:
    """``text`` as strict UTF-8 and as ``str`` itself: the encoder of the log refuses a subclass."""
    return clean(text if type(text) is str else str.__str__(text))


def _shown(value: Any) -> str:
    """A wrong value for an error message: of what may be endless, or have no text at all (``10**5000``), the type."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and INTEGER_MIN <= value <= INTEGER_MAX):
        return repr(value)
    return repr(value[:80]) if isinstance(value, str) else f"a value of type {type(value).__name__}"


class Spill(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the full text of a result lies: ``path`` relative to the session folder, size in bytes, SHA-256 in hex."""

    path: str
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        _clean_field(self, "path")
        _clean_field(self, "sha256")
        if type(self.bytes) is not int or not 0 <= self.bytes <= INTEGER_MAX:
            raise InvalidMessage(f"Spill.bytes is {_shown(self.bytes)}; it is a size in bytes")


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call of a tool.  ``arguments`` is JSON text, as the provider sent it where its API gives text; it may not parse."""

    id: str
    name: str
    arguments: str

    def __post_init__(self) -> None:
        for field in ("id", "name", "arguments"):
            _clean_field(self, field)


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a tool gave back.

    ``origin`` is ``interrupted`` when no tool said this: the outcome of the call is unknown.  ``spill`` is set when ``content``
    is a preview of a text that lies in a file.
    """

    call_id: str
    content: str
    is_error: bool = False
    origin: Origin = "tool"
    spill: Spill | None = None

    def __post_init__(self) -> None:
        _clean_field(self, "call_id")
        _clean_field(self, "content")
        if type(self.is_error) is not bool:
            raise InvalidMessage(f"ToolResult.is_error is {_shown(self.is_error)}; it is True or False")
        if type(self.origin) is not str:
            _clean_field(self, "origin")
        if self.origin not in ORIGINS:
            raise InvalidMessage(f"ToolResult.origin is {_shown(self.origin)}; it is {' or '.join(ORIGINS)}")
        if self.spill is not None and type(self.spill) is not Spill:
            raise InvalidMessage(f"ToolResult.spill is a {type(self.spill).__name__}; it is a Spill or None")


class Native(msgspec.Struct, frozen=True, omit_defaults=True):
    """The provider's own blocks or output items, JSON-value-equal to what was received.

    Kept only where the canonical form would lose something (thinking signatures, server tools, refusals); goes back only to
    the same ``provider`` and ``api``.  ``payload`` is frozen on construction.
    """

    provider: str
    api: str
    model: str
    payload: Any

    def __post_init__(self) -> None:
        for field in ("provider", "api", "model"):
            _clean_field(self, field)
        force_setattr(self, "payload", freeze(self.payload))


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a conversation.

    A ``tool`` message holds exactly one ``tool_result``; ``tool_calls`` stand only in ``assistant`` messages.  ``stop`` is why the
    model stopped, or ``interrupted`` for text that arrived before a stream was cut.

    Raises ``InvalidMessage`` for a shape that is none of these.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_result: ToolResult | None = None
    native: Native | None = None
    stop: Stop | None = None

    def __post_init__(self) -> None:
        content = self.content
        if type(content) is not str or not content.isascii():
            _clean_field(self, "content")
        if type(self.role) is not str:
            _clean_field(self, "role")
        if self.stop is not None or self.native is not None or self.tool_calls != () or self.tool_result is not None:
            _check_parts(self)
        if self.role == "assistant":
            if self.tool_result is None:
                return
        elif self.role == "tool":
            if self.tool_result is not None and not self.tool_calls and not content:
                return
        elif self.role == "user" and self.tool_result is None and not self.tool_calls:
            return
        raise InvalidMessage(
            f"a {_shown(self.role)} message cannot have this shape: tool_result stands alone in a tool message, "
            "tool_calls only in an assistant message, and roles are user, assistant and tool"
        )


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one request, as the provider counted them.  Cached input is counted apart from ``input_tokens``."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def context_tokens(self) -> int:
        """Everything that occupied the window when the reply ended."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens


History = tuple[Message, ...]
"""An ordered, immutable history."""


def _check_parts(message: Message) -> None:
    """Refuse now what a reader of the log would refuse later: a type is not checked by building a struct, only by decoding one."""
    if type(message.tool_calls) is not tuple:
        if not isinstance(message.tool_calls, (tuple, list)):
            raise InvalidMessage(
                f"Message.tool_calls is {_shown(message.tool_calls)}; it is a tuple of ToolCall values"
            )
        force_setattr(message, "tool_calls", tuple(message.tool_calls))
    for call in message.tool_calls:
        if type(call) is not ToolCall:
            raise InvalidMessage(f"Message.tool_calls holds a {type(call).__name__}; it holds ToolCall values")
    if message.tool_result is not None and type(message.tool_result) is not ToolResult:
        raise InvalidMessage(f"Message.tool_result is a {type(message.tool_result).__name__}; it is a ToolResult")
    if message.native is not None and type(message.native) is not Native:
        raise InvalidMessage(f"Message.native is a {type(message.native).__name__}; it is a Native")
    if message.stop is not None:
        if type(message.stop) is not str:
            _clean_field(message, "stop")
        if message.stop not in STOPS:
            raise InvalidMessage(f"Message.stop is {_shown(message.stop)}; it is one of {', '.join(STOPS)}, or None")


def _clean_field(value: msgspec.Struct, field: str) -> None:
    text = getattr(value, field)
    if type(text) is str and text.isascii():
        return
    if not isinstance(text, str):
        raise InvalidMessage(f"{type(value).__name__}.{field} must be text, not {type(text).__name__}")
    cleaned = _plain_text(text)
    if cleaned is not text:
        force_setattr(value, field, cleaned)
