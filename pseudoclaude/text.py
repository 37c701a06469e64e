"""Text at the boundary: strict UTF-8 in, and cuts that never break a character.

Owns three decisions that the rest of the code relies on.  Bytes from tools are decoded with replacement.  A lone surrogate
(from a cut by UTF-16 unit, or from ``os.fsdecode``) becomes U+FFFD, once, when text enters.  Every cut names its unit:
bytes of UTF-8, grapheme clusters, or lines, where lines are what ``\\n`` separates and nothing else (not U+2028, not ``\\r``).
"""

from __future__ import annotations

import regex

REPLACEMENT = "\ufffd"
_LONE_SURROGATES = regex.compile(r"[\ud800-\udfff]")
_GRAPHEME = regex.compile(r"\X")


def clean(text: str) -> str:
    """``text`` with every lone surrogate replaced by U+FFFD; the same object when there is none."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _LONE_SURROGATES.sub(REPLACEMENT, text)
    return text


def decode(data: bytes) -> str:
    """Tool output of any bytes as text; what is not UTF-8 becomes U+FFFD."""
    return data.decode("utf-8", errors="replace")


def size(text: str) -> int:
    """Length in UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def cut_bytes(text: str, limit: int) -> str:
    """The longest prefix of whole code points that fits in ``limit`` UTF-8 bytes."""
    if limit <= 0:
        return ""
    data = text.encode("utf-8")
    if len(data) <= limit:
        return text
    return data[:limit].decode("utf-8", errors="ignore")


def cut_graphemes(text: str, limit: int) -> str:
    """The longest prefix of whole grapheme clusters that fits in ``limit`` UTF-8 bytes.

    A first cluster larger than the limit is cut at a code point, so that the result is never needlessly empty.
    """
    prefix = cut_bytes(text, limit)
    if len(prefix) == len(text):
        return text
    kept = 0
    for match in _GRAPHEME.finditer(text):
        if match.end() > len(prefix):
            break
        kept = match.end()
    return text[:kept] if kept else prefix


def head(text: str, limit: int) -> str:
    """A readable beginning of at most ``limit`` UTF-8 bytes: cut after a line when one ends in it, else at a grapheme."""
    prefix = cut_bytes(text, limit)
    if len(prefix) == len(text):
        return text
    newline = prefix.rfind("\n")
    return prefix[: newline + 1] if newline > 0 else cut_graphemes(text, limit)
