"""What a tool takes: one struct a tool, from which both the schema that the model sees and the check of what it sends are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from pseudoclaude.errors import ToolFailed
from pseudoclaude.ports import ToolSpec
from pseudoclaude.text import clean

_T = TypeVar("_T", bound=msgspec.Struct)


def spec_of(name: str, description: str, arguments: type[msgspec.Struct]) -> ToolSpec:
    """The tool as the model is told of it; ``arguments`` is a struct of scalars."""
    schema = msgspec.json.schema(arguments)["$defs"][arguments.__name__]
    return ToolSpec(
        name, description, {key: schema[key] for key in ("type", "properties", "required", "additionalProperties")}
    )


def parsed(arguments: Mapping[str, Any], kind: type[_T]) -> _T:
    """The arguments as ``kind``.  Numbers may come as text, as some models send them.  Raises ``ToolFailed``."""
    cleaned = {key: clean(value) if isinstance(value, str) else value for key, value in arguments.items()}
    try:
        return msgspec.convert(cleaned, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ToolFailed(f"the arguments do not fit: {error}", do_next="Send them as the tool's schema says") from error
