"""What decides validity beside the history: model abilities, declared tools, thinking mode, what the server knows.

A history alone does not decide.  Whoever knows more says so in a mapping; what is not said takes the default below, which is the
strict reading where one exists and "not checked" where none does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_type_hints

import msgspec

from pseudoclaude.protocol.opaque import is_genuine


class Context(msgspec.Struct, frozen=True):
    """One request's circumstances; each field is a key of the mapping given to ``check``."""

    tools: tuple[str, ...] | None = None
    """Names of the declared tools; None: not known, not checked."""
    prefill: bool = False
    """The model accepts a history that ends on an assistant turn (Claude 4.5 and earlier)."""
    thinking: Literal["disabled", "enabled", "adaptive"] = "disabled"
    system_in_messages: bool = True
    prefix_binding: Literal["off", "error", "drop_block"] = "off"
    thinking_prefixes: Mapping[str, list[Any]] = {}
    """Signature to the wire messages it was produced after (A45)."""
    thinking_order: tuple[str, ...] = ()
    """All signatures of the conversation in the order they were produced (A44)."""
    original_latest_assistant: list[Any] | None = None
    """The blocks of the latest assistant turn as the API returned them (A41)."""
    last_stop_reason: str | None = None
    betas: tuple[str, ...] = ()
    store: bool | None = None
    known_ids: tuple[str, ...] | None = None
    """Item ids the server knows; None: not known, not checked."""
    pairs: Mapping[str, str] = {}
    """Item id to the id of the reasoning item it was produced after (R06, R23)."""
    previous_response: Mapping[str, Any] | None = None
    """State the server holds; ``open_calls`` lists call ids that wait there."""
    roles: tuple[str, ...] | None = None
    """The roles this model accepts (C02); None: all of the API."""
    strict_upstream: bool = False
    model: str = ""
    genuine: Callable[[Any], bool] = is_genuine
    """Which opaque values count as the provider's own."""


DEFAULT = Context()
_SHAPES: dict[str, Any] = {
    **{key: hint for key, hint in get_type_hints(Context).items() if key in Context.__struct_fields__},
    "tools": tuple[Any, ...] | None,  # by name or by definition
    "previous_response": Any,
    "genuine": Any,
}
"""What may be given for each key."""


def context_of(given: Mapping[str, Any] | None) -> Context:
    """The context that a mapping describes.  Raises ``ValueError`` for a key that does not exist and for a value of another type."""
    if not given:
        return DEFAULT
    unknown = [key for key in given if key not in Context.__struct_fields__]
    if unknown:
        raise ValueError(f"unknown context keys {', '.join(unknown)}; known are {', '.join(Context.__struct_fields__)}")
    fields: dict[str, Any] = {key: _shaped(key, value) for key, value in given.items()}
    if fields.get("tools") is not None:
        fields["tools"] = tuple(_tool_name(tool) for tool in fields["tools"])
    if fields.get("previous_response") is not None and not isinstance(fields["previous_response"], Mapping):
        fields[
            "previous_response"
        ] = {}  # only its id is known: there is such a state, and nobody here knows what it holds
    return Context(**fields)


def _shaped(key: str, value: Any) -> Any:
    try:
        return msgspec.convert(value, _SHAPES[key])
    except msgspec.ValidationError as error:
        raise ValueError(f"context key {key!r} has a value of another type: {error}") from error


def _tool_name(tool: Any) -> str:
    """A tool given by its name, or by its definition in the form of any of the APIs."""
    if isinstance(tool, Mapping):
        inner = tool.get("function")
        name = inner.get("name") if isinstance(inner, Mapping) else tool.get("name")
        return name if isinstance(name, str) else str(tool.get("type", ""))
    return str(tool)
