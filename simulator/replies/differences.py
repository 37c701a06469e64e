"""What differs between two JSON values, in words, with the path of each difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

SHOWN_MAX = 80
_ABSENT = object()


def first_difference(recorded: Any, sent: Any, path: str = "") -> str:
    """The first difference in reading order, or ``""``."""
    return next(_walk(recorded, sent, path), "")


def all_differences(recorded: Any, sent: Any, path: str = "") -> list[str]:
    """Every difference, in reading order."""
    return list(_walk(recorded, sent, path))


def likeness(recorded: Any, sent: Any) -> float:
    """From 0 (nothing in common) to 1 (equal): the share of equal leaves."""
    ours, theirs = dict(_leaves(recorded, "")), dict(_leaves(sent, ""))
    paths = [*ours, *(path for path in theirs if path not in ours)]
    equal = sum(path in ours and path in theirs and bool(ours[path] == theirs[path]) for path in paths)
    return equal / max(1, len(paths))


def _walk(recorded: Any, sent: Any, path: str) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(sent, dict):
        for key in [*recorded, *(key for key in sent if key not in recorded)]:
            yield from _walk(recorded.get(key, _ABSENT), sent.get(key, _ABSENT), f"{path}.{key}" if path else str(key))
    elif isinstance(recorded, list) and isinstance(sent, list):
        for position in range(max(len(recorded), len(sent))):
            ours = recorded[position] if position < len(recorded) else _ABSENT
            theirs = sent[position] if position < len(sent) else _ABSENT
            yield from _walk(ours, theirs, f"{path}[{position}]")
    elif type(recorded) is not type(sent) or recorded != sent:
        yield f"{path or 'value'}: recorded {_shown(recorded)}, sent {_shown(sent)}"


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from _leaves(item, f"{path}[{position}]")
    else:
        yield path, repr(value)


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "…"
