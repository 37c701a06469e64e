"""Tool arguments: JSON text that may not parse.

One question, asked by the rules and by the projections alike, so that both mean the same: is this text a JSON object that every
server will read?  Stricter than ``json.loads``: no NaN, no lone surrogates behind escapes, no nesting that makes readers recurse.
"""

from __future__ import annotations

from typing import Any

import msgspec

_OBJECT = msgspec.json.Decoder(dict[str, Any])

DEPTH_MAX = 200
"""Deeper nesting is refused, so that the answer does not depend on how deep the caller's own stack is."""


def parse_object(text: str) -> dict[str, Any] | None:
    """The object, or None if ``text`` is not one."""
    if len(text) > DEPTH_MAX and text.count("[") + text.count("{") > DEPTH_MAX and _depth(text) > DEPTH_MAX:
        return None
    try:
        return _OBJECT.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def _depth(text: str) -> int:
    """Deepest nesting of brackets outside of strings."""
    deepest = depth = 0
    in_string = escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif character == '"':
            in_string = not in_string
        elif in_string:
            escaped = character == "\\"
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest
