"""Mending: a second look at a line that the strict decoder refuses.

Some lines that are no record for it are one for us: half a character in an escape, arguments that an older log kept as a JSON value.  What cannot be
mended gets its kind here: cut off, no UTF-8, no JSON, or JSON that is no object.
"""

from __future__ import annotations

import json
from typing import Any

from pseudoclaude.session.findings import BadLine, FindingKind
from pseudoclaude.text import clean

_TRUNCATED = "Input data was truncated"
"""msgspec's words for text that ends early (and for half of an escaped surrogate pair, which needs the second look)."""


def bad_utf8(raw: bytes) -> BadLine | None:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and raw.startswith(b"{"):
            return BadLine(replace_or("torn", raw), "it ends inside a character")
        return BadLine("utf8", f"byte {error.start} of the line is not UTF-8 ({error.reason})")
    return None


def replace_or(kind: FindingKind, raw: bytes) -> FindingKind:
    return "incomplete_replace" if raw.startswith(b'{"type":"replace"') else kind


def mended(raw: bytes, error: Exception) -> tuple[Any, bool] | BadLine:
    """The JSON object that a line holds, with lone surrogates replaced and arguments as text, and whether a surrogate was there; or why it
    holds none.  ``error`` is what the strict decoder said."""
    if str(error) == _TRUNCATED and raw.startswith(b"{") and b"\\u" not in raw:
        return _torn(raw)
    try:
        value = json.loads(raw)
    except json.JSONDecodeError as problem:
        if _ends_early(raw, problem):
            return _torn(raw)
        return BadLine("json", f"not JSON: {problem.msg} at byte {problem.pos}")
    except ValueError as problem:
        return BadLine("schema", str(problem).split(";", maxsplit=1)[0])
    if not isinstance(value, dict):
        return BadLine("schema", f"a JSON {type(value).__name__}, not an object")
    return _mend(value)


def _torn(raw: bytes) -> BadLine:
    return BadLine(replace_or("torn", raw), "it stops in the middle of the record")


def _ends_early(raw: bytes, problem: json.JSONDecodeError) -> bool:
    if not raw.startswith(b"{"):
        return False
    text = raw.decode("utf-8")
    return (
        problem.msg.startswith("Unterminated string")
        or problem.pos >= len(text.rstrip())
        or _cut_word(text, problem.pos)
    )


def _cut_word(text: str, position: int) -> bool:
    tail = text[position:]
    return any(word.startswith(tail) for word in ("true", "false", "null")) or tail in ("-", "\\", "\\u")


def _mend(value: Any) -> tuple[Any, bool]:
    """``value`` with lone surrogates replaced and the arguments of older logs (a JSON value) as text; was a surrogate there?"""
    healed = False

    def walk(item: Any) -> Any:
        nonlocal healed
        if isinstance(item, str):
            fixed = clean(item)
            healed = healed or fixed is not item
            return fixed
        if isinstance(item, list):
            return [walk(part) for part in item]
        if isinstance(item, dict):
            return {walk(key): walk(part) for key, part in item.items()}
        return item

    mended = walk(value)
    for entry in [mended, *_entries(mended)]:
        calls = entry.get("tool_calls") if isinstance(entry, dict) else None
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and not isinstance(call.get("arguments", ""), str):
                call["arguments"] = json.dumps(call["arguments"], ensure_ascii=False, separators=(",", ":"))
    return mended, healed


def _entries(value: dict[str, Any]) -> list[Any]:
    entries = value.get("messages")
    return entries if isinstance(entries, list) else []
