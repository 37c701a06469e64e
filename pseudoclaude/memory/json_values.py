"""JSON values inside a model's answer, whatever stands around them.

The answer may be fenced, begin with a sentence, be cut off, or hold one broken object among good ones.  Values are taken in the order
in which they stand.  What cannot be read is reported with its reason and skipped *as a whole*: the scan never looks for objects
inside the text of a broken one, where a quoted example would turn into an instruction.
"""

from __future__ import annotations

import json
import re
from typing import Any

ANSWER_CHARS_MAX = 1_000_000

_WRAPPER = re.compile(r'\{\s*"operations"\s*:\s*\[')
_START = re.compile(r"[\[{]")

Placed = tuple[int, Any]


class Repeated(dict[str, Any]):
    """An object in which a member stands twice; ``repeated`` is that member's name."""

    repeated = ""


def find_values(text: str) -> tuple[list[Placed], list[tuple[int, str]]]:
    """``(values, rejected)``: each value, and each reason, with its place in the answer, counted from 1.

    Lists are opened, and so is the list of ``{"operations": [...]}``; their elements are the values.
    """
    values: list[Placed] = []
    rejected: list[tuple[int, str]] = []
    if len(text) > ANSWER_CHARS_MAX:
        return values, [(1, f"the answer has {len(text):,} characters; at most {ANSWER_CHARS_MAX:,} are read")]
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_object)
    position = 0
    while (start := _START.search(text, position)) is not None:
        at = start.start()
        place = len(values) + len(rejected) + 1
        try:
            value, position = decoder.raw_decode(text, at)
        except RecursionError:
            rejected.append((place, "nested too deeply to be read; the rest of the answer was not read"))
            break
        except ValueError as error:
            position = _after_broken(text, at)
            if position == len(text) and text[at] == "{":
                rejected.append(
                    (
                        place,
                        "not closed: it was cut off, or a quotation mark is missing; the rest of the answer was not read",
                    )
                )
            elif text[at] == "{" and _WRAPPER.match(text, at) is None:
                rejected.append((place, f"not JSON: {_reason(error)}"))
            continue
        values.extend((place + i, element) for i, element in enumerate(_elements(value)))
    if position == 0 and not rejected and text.strip():
        rejected.append((1, "no JSON in the answer"))
    return values, rejected


def _elements(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and isinstance(value.get("operations"), list):
        operations: list[Any] = value["operations"]
        return operations
    return [value]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: list[str] = []
    marked = Repeated(found)
    for key, _ in pairs:
        if key in seen:
            marked.repeated = key
            break
        seen.append(key)
    return marked


def _after_broken(text: str, at: int) -> int:
    """Where to go on after the value at ``at`` could not be read: inside a list, else behind the whole object."""
    wrapper = _WRAPPER.match(text, at)
    if wrapper is not None:
        return wrapper.end()
    if text[at] == "[":
        return at + 1
    return _object_end(text, at)


def _object_end(text: str, at: int) -> int:
    """Behind the brace that closes the one at ``at``, minding strings; the end of the text when none does."""
    depth = 0
    quoted = False
    position = at
    while position < len(text):
        char = text[position]
        if quoted:
            if char == "\\":
                position += 1
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return len(text)


def _reason(error: ValueError) -> str:
    return error.msg.lower() if isinstance(error, json.JSONDecodeError) else "a number that is too long"
