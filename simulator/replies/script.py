"""The ``provider:`` part of a scenario, as values.  One form for the scripted provider, the emulator and ``script:FILE``.

An entry is a reply, a failure, or both: with ``cut_after_events`` the reply is what was arriving when the stream broke.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import msgspec

from pseudoclaude.messages import Stop, ToolCall, Usage

T = TypeVar("T")
FailKind = Literal["context_overflow", "quota", "too_large", "connection", "timeout", "empty", "refusal", "max_tokens"]
Purpose = Literal["turn", "summary", "memory"]
_FAIL_NAMES = ("status", "kind", "cut_after_events", "repeat_event", "swap_events")
REPLY_KINDS: dict[str, Stop] = {"empty": "end_turn", "refusal": "refusal", "max_tokens": "max_tokens"}
"""Kinds that are replies of the model, not refusals of the provider, and how each stops."""


class ScriptCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool call.  ``arguments`` is an object, or text that is sent as it is (for JSON that does not parse)."""

    id: str
    name: str
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict)

    def call(self) -> ToolCall:
        text = self.arguments if isinstance(self.arguments, str) else compact(self.arguments)
        return ToolCall(self.id, self.name, text)


class Fail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One failure: a ``status`` (HTTP), a ``kind``, or ``cut_after_events`` (0 is before the first).

    ``status`` with ``cut_after_events`` is an error inside a stream that began well: HTTP 200, so many events, then the error.
    ``repeat_event`` sends that event of a stream twice (0 is the first), ``swap_events`` sends that one after the next; what an SDK makes
    of it only the emulator can show.  ``retry_after`` (seconds) and ``should_retry`` are sent as the provider's headers, ``message`` as
    its sentence.
    """

    status: int | None = None
    kind: FailKind | None = None
    cut_after_events: int | None = None
    repeat_event: int | None = None
    swap_events: int | None = None
    retry_after: float | None = None
    should_retry: bool | None = None
    message: str | None = None

    def __post_init__(self) -> None:
        given = [name for name in _FAIL_NAMES if getattr(self, name) is not None]
        if len(given) != 1 and given != ["status", "cut_after_events"]:
            raise ValueError(
                "fail needs one of status, kind, cut_after_events (with which a status may stand), repeat_event and swap_events, "
                f"not {' and '.join(given) or 'none'}"
            )
        if self.status is not None and not 400 <= self.status <= 599:
            raise ValueError(f"fail.status is {self.status}; a failure has a status from 400 to 599")
        for name in _FAIL_NAMES[2:]:
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"fail.{name} is {getattr(self, name)}; it cannot be negative")

    @property
    def disorders(self) -> bool:
        """Whether the reply comes whole, with its events in disorder."""
        return self.repeat_event is not None or self.swap_events is not None

    @property
    def stop(self) -> Stop | None:
        """How the reply stops when this is a reply of the model, else None."""
        return REPLY_KINDS.get(self.kind or "")


class StreamFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What befalls the response number ``request`` (0 is the first) of a cassette, after so many of its events.

    ``reset`` breaks the connection, ``end`` closes it cleanly where the next event would have come.  ``repeat`` delivers the last of
    those events twice, ``swap`` the two after them in the wrong order.  A response that is no stream can only break, before its first byte.
    """

    after_events: int
    request: int = 0
    how: Literal["reset", "end", "repeat", "swap"] = "reset"

    def __post_init__(self) -> None:
        if self.after_events < 0 or self.request < 0:
            raise ValueError("after_events and request cannot be negative")


class ScriptUsage(Usage, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``messages.Usage`` as a scenario writes it: a misspelt member is an error."""

    def value(self) -> Usage:
        return Usage(self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens)


class ScriptEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reply.  ``stop`` follows from the tool calls when it is not given; ``usage`` as the provider would count."""

    text: str = ""
    tool_calls: tuple[ScriptCall, ...] = ()
    usage: ScriptUsage | None = None
    stop: Stop | None = None
    fail: Fail | None = None

    @property
    def spoken(self) -> str:
        """The text the model says: an ``empty`` reply says nothing whatever else the entry holds."""
        return "" if self.fail is not None and self.fail.kind == "empty" else self.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        silent = self.fail is not None and self.fail.kind in ("empty", "refusal")
        return () if silent else tuple(call.call() for call in self.tool_calls)

    @property
    def count(self) -> Usage | None:
        return None if self.usage is None else self.usage.value()

    @property
    def ending(self) -> Stop:
        """Why the model stops."""
        if self.fail is not None and self.fail.stop is not None:
            return self.fail.stop
        return self.stop or ("tool_use" if self.tool_calls else "end_turn")


class ProviderSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replies in order: ``script`` for turns, ``summary`` and ``memory`` for those requests; or a ``cassette`` file.

    ``match`` is how a cassette's requests are compared, ``fault`` what goes wrong in one of its streams, ``model`` the name the provider goes by.
    """

    script: tuple[ScriptEntry, ...] = ()
    summary: tuple[ScriptEntry, ...] = ()
    memory: tuple[ScriptEntry, ...] = ()
    cassette: str | None = None
    match: Literal["strict", "projection"] = "strict"
    fault: StreamFault | None = None
    model: str = ""

    def __post_init__(self) -> None:
        if self.cassette is not None and self.script:
            raise ValueError("a provider has a script or a cassette, not both")
        if self.fault is not None and self.cassette is None:
            raise ValueError("fault is for a cassette; a script says what fails in its entries")

    def queue(self, purpose: Purpose) -> tuple[ScriptEntry, ...]:
        return {"turn": self.script, "summary": self.summary, "memory": self.memory}[purpose]


def in_disorder(fail: Fail, events: Sequence[T]) -> list[T]:
    """``events`` as ``fail`` sends them."""
    if fail.repeat_event is not None:
        return [*events[: fail.repeat_event + 1], *events[fail.repeat_event :]]
    if fail.swap_events is not None:
        place = fail.swap_events
        return [*events[:place], *reversed(events[place : place + 2]), *events[place + 2 :]]
    return list(events)


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
