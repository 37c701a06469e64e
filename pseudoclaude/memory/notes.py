"""One note: Markdown with YAML front matter (name, description, updated, source), as bytes and as a value.

Reading is tolerant, since people write notes too: a file without front matter is a note whose name is its file name.  Writing is a
function of the operation, its timestamp and its source alone, so that a journal replayed later writes the same bytes.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import msgspec
import yaml

from pseudoclaude.memory.operations import first_line, one_line
from pseudoclaude.text import clean, decode

_FENCE = "---\n"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C where PyYAML has it: ten times as fast."""


class Note(msgspec.Struct, frozen=True):
    """What a note says.  ``updated`` is ISO 8601 UTC text as the file has it, ``source`` the turn it came from; both may be empty."""

    slug: str
    name: str
    description: str
    body: str
    updated: str = ""
    source: str = ""


def timestamp(now: float) -> str:
    """Unix seconds as ``2026-12-01T07:20:42.123Z``."""
    moment = datetime.fromtimestamp(round(now * 1000) / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def render(note: Note) -> bytes:
    """The bytes of a note's file."""
    members = {"name": note.name, "description": note.description, "updated": note.updated, "source": note.source}
    given = {key: value for key, value in members.items() if value}
    front = yaml.safe_dump(given, sort_keys=False, allow_unicode=True, width=10_000)
    return clean(f"{_FENCE}{front}{_FENCE}\n{note.body}\n").encode("utf-8")


def parse(slug: str, data: bytes) -> Note:
    """The note in a file's bytes; whatever they are, something readable comes back."""
    text = decode(data).removeprefix("\ufeff").replace("\r\n", "\n")
    front, body = _split(text)
    name = one_line(_member(front, "name")) or slug
    description = one_line(_member(front, "description")) or first_line(body)
    return Note(slug, name, description, body.strip("\n"), _member(front, "updated"), _member(front, "source"))


def digest(data: bytes | None) -> str:
    """SHA-256 in hex of a file's bytes; empty for a file that is not there."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _split(text: str) -> tuple[dict[str, Any], str]:
    if not text.startswith(_FENCE):
        return {}, text
    end = text.find("\n" + _FENCE, len(_FENCE) - 1)
    if end < 0:
        return {}, text
    try:
        front = yaml.load(text[len(_FENCE) : end + 1], Loader=_LOADER)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, text
    return (front if isinstance(front, dict) else {}), text[end + 1 + len(_FENCE) :]


def _member(front: dict[str, Any], key: str) -> str:
    value = front.get(key)
    if value is None or isinstance(value, (dict, list)):
        return ""
    return clean(value.isoformat() if hasattr(value, "isoformat") else str(value))
