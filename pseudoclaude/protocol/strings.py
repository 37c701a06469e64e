"""Rules about strings that hold for all providers: lone surrogates (S01), and the length of one string (C15, R19)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from pseudoclaude.protocol.values import Found
from pseudoclaude.text import clean

STRING_LENGTH_MAX = 10_485_760


def lone_surrogates(name: str, messages: Any) -> Iterator[Found]:
    """S01: the body is valid UTF-8."""
    if _encoded_length(messages) is None:
        for path, text in _strings(name, messages):
            if clean(text) is not text:
                yield path, "a lone surrogate is not valid UTF-8"


def long_strings(name: str, messages: Any) -> Iterator[Found]:
    """C15, R19: one string has at most 10,485,760 characters."""
    if _is_at_most(messages, STRING_LENGTH_MAX):
        return
    for path, text in _strings(name, messages):
        if len(text) > STRING_LENGTH_MAX:
            yield path, f"a string of {len(text):,} characters; at most {STRING_LENGTH_MAX:,} are accepted"


def exceeds(messages: Any, length_max: int) -> bool:
    """Whether all strings together, a lower bound of the body in bytes, have more than ``length_max`` characters."""
    return not _is_at_most(messages, length_max) and sum(len(text) for _, text in _strings("", messages)) > length_max


def _is_at_most(messages: Any, length: int) -> bool:
    """Whether the encoded whole fits already, so that nobody needs to look at its strings."""
    encoded = _encoded_length(messages)
    return encoded is not None and encoded <= length


def _encoded_length(messages: Any) -> int | None:
    """Bytes of the encoded JSON; None if it cannot be encoded, as with a lone surrogate in it."""
    try:
        return len(msgspec.json.encode(messages))
    except (UnicodeEncodeError, TypeError, RecursionError, msgspec.MsgspecError):
        return None


def _strings(name: str, value: Any) -> Iterator[Found]:
    """Every string of a JSON value with its path, keys included, in document order, without recursion."""
    stack: list[tuple[str, Any]] = [(name, value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, str):
            yield path, item
        elif isinstance(item, dict):
            stack.extend((f"{path}.{key}", inner) for key, inner in reversed(item.items()))
            for key in item:
                if isinstance(key, str):
                    yield path, key
        elif isinstance(item, (list, tuple)):
            stack.extend((f"{path}[{index}]", inner) for index, inner in reversed(tuple(enumerate(item))))
