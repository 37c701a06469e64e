"""Operations: what the model may ask memory to do, and the checks that each passes before it comes near a disk.

The model's answer is data from outside.  ``validate_operation`` judges one JSON value and either returns a clean ``Operation`` or says
in one sentence why not; ``parse_operations`` finds the values in whatever text the model wrapped them in.  One malformed operation
never takes another with it.

A slug names a file, so it is made here and nowhere else: NFC, lower case, letters, digits and hyphens, at most 80 bytes, never
the name of the index or of a device.  A name that points anywhere (``../x``, ``/x``) is refused, not cleaned.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pseudoclaude.errors import InvalidOperation
from pseudoclaude.memory.json_values import Repeated, find_values
from pseudoclaude.memory.secrets import find_secret
from pseudoclaude.text import clean, cut_graphemes, size

Action = Literal["create", "update", "delete"]
Level = Literal["project", "user"]

OPERATIONS_MAX = 50
SLUG_BYTES_MAX = 80
NAME_BYTES_MAX = 200
DESCRIPTION_BYTES_MAX = 300
BODY_BYTES_MAX = 20_000

_FIELDS: dict[str, tuple[str, ...]] = {
    "action": ("action", "op", "operation"),
    "level": ("level", "scope"),
    "slug": ("slug", "id", "file", "filename"),
    "name": ("name", "title"),
    "description": ("description", "summary"),
    "body": ("body", "content", "text"),
}
"""The field's name, then what models write in its place."""

_DEVICES = ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)))
_RESERVED = ("memory", *_DEVICES)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SPACES = re.compile("[\\s\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of one note.  A create has a name and a body; an update has what it changes; a delete has the slug alone.

    ``name`` and ``description`` are one line each.  ``body`` is Markdown text with ``\\n`` line ends.
    """

    action: Action
    level: Level
    slug: str
    name: str = ""
    description: str = ""
    body: str = ""


class Rejected(msgspec.Struct, frozen=True):
    """One thing the model asked for that is not done: its place in the answer (from 1), and why."""

    place: int
    reason: str


def parse_operations(text: str) -> tuple[tuple[Operation, ...], tuple[Rejected, ...]]:
    """The valid operations of a model's answer, in order, at most one a note, and what was dropped and why.

    The answer may be fenced, stand between sentences, be one object, a list, ``{"operations": [...]}``, JSON lines, or end early.
    Never raises for the content of ``text``.
    """
    values, rejected = find_values(clean(text))
    dropped = [Rejected(place, reason) for place, reason in rejected]
    accepted: list[tuple[int, Operation]] = []
    for place, value in values:
        if len(accepted) == OPERATIONS_MAX:
            dropped.append(Rejected(place, f"more than {OPERATIONS_MAX} operations in one answer"))
            continue
        try:
            accepted.append((place, validate_operation(value)))
        except InvalidOperation as error:
            dropped.append(Rejected(place, error.what))
    kept = _one_a_note(accepted, dropped)
    return tuple(kept), tuple(sorted(dropped, key=lambda item: item.place))


def _one_a_note(accepted: list[tuple[int, Operation]], dropped: list[Rejected]) -> list[Operation]:
    """Settle operations on the same note: a repeat goes, a delete never beats a fact, else the last one stands."""
    standing: dict[tuple[str, str], tuple[int, Operation]] = {}
    for place, operation in accepted:
        key = (operation.level, operation.slug)
        earlier = standing.get(key)
        if earlier is None:
            standing[key] = (place, operation)
        elif earlier[1] == operation:
            dropped.append(Rejected(place, f"the same as operation {earlier[0]}"))
        elif operation.action == "delete":
            dropped.append(
                Rejected(place, f"contradicts operation {earlier[0]}, which keeps the note {operation.slug!r}")
            )
        else:
            verb = "contradicts" if earlier[1].action == "delete" else "is replaced by"
            dropped.append(Rejected(earlier[0], f"{verb} operation {place} on the same note {operation.slug!r}"))
            standing.pop(key)
            standing[key] = (place, operation)
    return [operation for _, operation in sorted(standing.values(), key=lambda item: item[0])]


def validate_operation(value: object) -> Operation:
    """The operation that a JSON value stands for; raises ``InvalidOperation`` whose ``what`` is the reason.

    Unknown members are ignored.  Text is cleaned: lone surrogates and control characters become U+FFFD, names one line.
    """
    if isinstance(value, Operation):
        value = msgspec.to_builtins(value)
    if not isinstance(value, Mapping):
        raise InvalidOperation(f"{_json_kind(value)}, not an object")
    if isinstance(value, Repeated):
        raise InvalidOperation(f"the member {value.repeated[:40]!r} is given twice")
    texts = {field: _text(value, field) for field in _FIELDS}
    action, level = texts["action"].strip().lower(), texts["level"].strip().lower()
    if action not in ("create", "update", "delete"):
        raise InvalidOperation(f"the action is {_shown(texts['action'])}, not create, update or delete")
    if level not in ("project", "user"):
        raise InvalidOperation(f"the level is {_shown(texts['level'])}, not project or user")
    name = cut_graphemes(one_line(texts["name"]), NAME_BYTES_MAX).strip()
    body = _body(texts["body"])
    description = cut_graphemes(one_line(texts["description"]), DESCRIPTION_BYTES_MAX).strip()
    slug = checked_slug(texts["slug"]) if texts["slug"].strip() else slug_of(name)
    _check_content(action, slug, name, description, body)
    if action == "delete":
        name = description = body = ""
    elif action == "create":
        description = description or first_line(body)
    return Operation(action, level, slug, name or (slug if action == "create" else ""), description, body)  # type: ignore[arg-type]


def _check_content(action: str, slug: str, name: str, description: str, body: str) -> None:
    if not slug:
        raise InvalidOperation("neither a slug nor a name that a file could be called by")
    if action == "create" and not body.strip():
        raise InvalidOperation("a create without a body holds no fact")
    if action == "update" and not (body.strip() or name or description):
        raise InvalidOperation("an update that changes nothing")
    if size(body) > BODY_BYTES_MAX:
        raise InvalidOperation(f"the body has {size(body):,} bytes; a note has at most {BODY_BYTES_MAX:,}")
    kind = find_secret("\n".join((slug, name, description, body)))
    if kind is not None:
        raise InvalidOperation(f"it looks like {kind}; secrets are not stored")


def _text(value: Mapping[Any, Any], field: str) -> str:
    given = [value[key] for key in _FIELDS[field] if value.get(key) is not None]
    if not given:
        return ""
    if not isinstance(given[0], str):
        raise InvalidOperation(f"{field} is {_json_kind(given[0])}, not text")
    if any(other != given[0] for other in given[1:]):
        raise InvalidOperation(f"{field} is given twice with different values")
    return clean(given[0])


def _body(text: str) -> str:
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("\ufffd", unified).strip("\n")


def one_line(text: str) -> str:
    """``text`` on one line: every run of white space, line separators and control characters is one space."""
    return _SPACES.sub(" ", clean(text)).strip()


def first_line(body: str) -> str:
    """The description of a note that has none of its own: the first line of its body that says something, shortened."""
    return cut_graphemes(next((line for line in map(one_line, body.split("\n")) if line), ""), 100).strip()


def _json_kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", type(None): "null"}
    return names.get(type(value), "an object")


def _shown(text: str) -> str:
    return repr(cut_graphemes(text, 40)) if text else "missing"


# --- slugs -----------------------------------------------------------------------------------------------------


def checked_slug(requested: str) -> str:
    """The safe form of a slug the model gave; raises ``InvalidOperation`` for one that points somewhere or means the index."""
    stem = requested.strip()
    if stem.lower().endswith(".md"):
        stem = stem[:-3]
    if re.search(r"[/\\\x00]", stem) or re.match(r"[A-Za-z]:", stem) or stem.startswith("."):
        raise InvalidOperation(f"the slug {_shown(requested)} points outside the store")
    if unicodedata.normalize("NFKC", stem).casefold() in _RESERVED:
        raise InvalidOperation(f"the slug {_shown(requested)} is reserved")
    return slug_of(stem)


def slug_of(name: str) -> str:
    """A file stem for any name: different spellings of one name (NFC, NFD, case) give the same; empty only for an empty name."""
    if not name.strip():
        return ""
    letters: list[str] = []
    for char in fold(name):
        mark = unicodedata.category(char).startswith("M") and bool(letters) and letters[-1] != "-"
        if char.isalnum() or mark:
            letters.append(char)
        elif letters and letters[-1] != "-":
            letters.append("-")
    slug = "".join(letters).strip("-")
    digest = hashlib.sha256(fold(name).encode("utf-8", errors="replace")).hexdigest()[:8]
    if not slug:
        return f"note-{digest}"
    if slug in _RESERVED:
        return f"{slug}-note"
    if size(slug) > SLUG_BYTES_MAX:
        return f"{cut_graphemes(slug, SLUG_BYTES_MAX - 9).strip('-')}-{digest}"
    return slug


def fold(name: str) -> str:
    """The form in which two names are the same name, as on disks that ignore case and normalization."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
