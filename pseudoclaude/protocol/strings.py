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
    try:
        msgspec.json.encode(messages)
    except (UnicodeEncodeError, TypeError, RecursionError, msgspec.MsgspecError):
        for path, text in _strings(name, messages):
            if clean(text) is not text:
                yield path, "a lone surrogate is not valid UTF-8"


def long_strings(name: str, messages: Any) -> Iterator[Found]:
    """C15, R19: one string has at most 10,485,760 characters."""
    for path, text in _strings(name, messages):
        if len(text) > STRING_LENGTH_MAX:
            yield path, f"a string of {len(text):,} characters; at most {STRING_LENGTH_MAX:,} are accepted"


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


def text_length(messages: Any) -> int:
    """Characters in all strings: a lower bound of the body's size in bytes."""
    return sum(len(text) for _, text in _strings("", messages))
