"""The byte limit at every offset of the last 64 bytes of an index, for every kind of character that a cut can break.

``python -m tests.memory.utf8_sweep`` prints the sweep for ``trim_index`` and for the planted variant that slices bytes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator

import msgspec
import regex

from pseudoclaude.memory import trim_index

Trim = Callable[[str, int, int], str]

LAST_BYTES = 64
CLUSTERS = {
    "1-byte": "a",
    "2-byte": "é",
    "3-byte": "世",
    "4-byte": "🙂",
    "combining mark": "e\u0301",
    "ZWJ sequence": "👩‍👩‍👧",
    "flag": "🇩🇪",
    "CRLF": "ab\r\n",
    "BOM": "\ufeffb",
    "U+2028": "é\u2028",
}
NOTICE = re.compile(r"\[(\d+) lines? left out(, the line above is cut short)?\]")


class Case(msgspec.Struct, frozen=True):
    """One index and the limits to cut it to."""

    kind: str
    text: str
    max_lines: int
    max_bytes: int


def cases() -> Iterator[Case]:
    """For each kind: many lines and one long line, the byte limit at each of the last offsets, once more at the line limit."""
    for kind, cluster in CLUSTERS.items():
        long_line = cluster * (-(-200 // len(cluster.encode())))
        many = "\n".join(f"- [{cluster.strip()}{i}](n{i}.md): {cluster * 4}" for i in range(12))
        for text in (long_line, many):
            total = len(text.encode())
            for limit in range(total - LAST_BYTES, total):
                yield Case(kind, text, 200, limit)
                yield Case(kind, text, text.count("\n") + 1, limit)
                yield Case(kind, text, max(1, text.count("\n")), limit)


def by_trim_index(text: str, max_lines: int, max_bytes: int) -> str:
    return trim_index(text, max_lines=max_lines, max_bytes=max_bytes)


def by_slicing_bytes(text: str, max_lines: int, max_bytes: int) -> str:
    """The planted variant: what a slice of the encoded text leaves; half a character shows as a lone surrogate."""
    whole = "\n".join(text.split("\n")[:max_lines])
    return whole.encode()[:max_bytes].decode("utf-8", errors="surrogateescape")


def faults(trim: Trim, case: Case) -> list[str]:
    """What is wrong with the cut of one case; the order is fixed, broken UTF-8 first."""
    result = trim(case.text, case.max_lines, case.max_bytes)
    try:
        data = result.encode("utf-8")
    except UnicodeEncodeError:
        return ["not UTF-8"]
    found: list[str] = []
    if len(data) > case.max_bytes or result.count("\n") + 1 > case.max_lines:
        found.append("over a limit")
    if result.count("\ufffd") > case.text.count("\ufffd"):
        found.append("a new replacement character")
    if trim(result, case.max_lines, case.max_bytes) != result:
        found.append("twice is not once")
    return found + _wrong_end(case, result)


def _wrong_end(case: Case, result: str) -> list[str]:
    """Whether the content is a prefix that ends with a line or a cluster, and the notice counts the rest."""
    if result == case.text.removesuffix("\n").removesuffix("\r"):
        return []  # only the end of the last line is missing
    *content, last = result.split("\n")
    notice = NOTICE.fullmatch(last)
    if notice is None:
        return ["no notice"]
    kept = "\n".join(content)
    found = [] if case.text.startswith(kept) else ["not a prefix"]
    lines = case.text.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    if int(notice[1]) != len(lines) - len(content):
        found.append("the notice counts wrongly")
    whole_lines = content == lines[: len(content)]
    if not whole_lines and (notice[2] is None or len(kept) not in _boundaries(case.text)):
        found.append("ends inside a cluster")
    return found


def _boundaries(text: str) -> frozenset[int]:
    return frozenset(match.end() for match in regex.finditer(r"\X", text))


class Row(msgspec.Struct):
    """Of one kind: how many cuts were tried, how many were wrong, and how many of those were no UTF-8."""

    tried: int = 0
    wrong: int = 0
    broken_characters: int = 0


def sweep(trim: Trim) -> dict[str, Row]:
    rows = {kind: Row() for kind in CLUSTERS}
    for case in cases():
        row = rows[case.kind]
        found = faults(trim, case)
        row.tried += 1
        row.wrong += bool(found)
        row.broken_characters += "not UTF-8" in found
    return rows


def table() -> str:
    """Both sweeps as text."""
    ours, sliced = sweep(by_trim_index), sweep(by_slicing_bytes)
    lines = [f"{'characters':<16}{'cuts':>6}{'trim_index wrong':>18}{'slicing caught':>16}{'as broken UTF-8':>17}"]
    for kind, row in ours.items():
        lines.append(
            f"{kind:<16}{row.tried:>6}{row.wrong:>18}{sliced[kind].wrong:>16}{sliced[kind].broken_characters:>17}"
        )
    total = Row(*(sum(getattr(row, field) for row in sliced.values()) for field in Row.__struct_fields__))
    wrong = sum(row.wrong for row in ours.values())
    lines.append(f"{'all':<16}{total.tried:>6}{wrong:>18}{total.wrong:>16}{total.broken_characters:>17}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
