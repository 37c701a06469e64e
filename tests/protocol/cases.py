"""Protocol cases: read from JSON, with the directives for strings (and lists) that JSON should not hold expanded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

OWN_CASES = Path(__file__).with_name("extra_cases.json")


class Case(msgspec.Struct, frozen=True):
    """One request and its verdict; ``rule`` is among those reported if it is invalid, and nothing is if it is valid."""

    id: str
    provider: str
    rule: str
    valid: bool
    certainty: str
    why: str
    messages: list[Any]
    context: dict[str, Any] | None = None

    def expected(self, profile: str) -> bool:
        """Whether ``rule`` is reported in this profile."""
        return not self.valid and (self.certainty == "firm" or profile == "conservative")


def read_cases(path: Path) -> list[Case]:
    return [msgspec.convert(_expanded(case), Case) for case in json.loads(path.read_text(encoding="utf-8"))]


def _expanded(value: Any) -> Any:
    """``{"$repeat": [text or list, n]}``, ``{"$chr": code point}``, ``{"$concat": [...]}``, at any depth."""
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$repeat"}:
        what, times = value["$repeat"]
        return _expanded(what) * times
    if value.keys() == {"$chr"}:
        return chr(value["$chr"])
    if value.keys() == {"$concat"}:
        return "".join(_expanded(part) for part in value["$concat"])
    return {key: _expanded(item) for key, item in value.items()}
