"""Text at the boundary and cuts of it, compared with the slow way of saying the same."""

from __future__ import annotations

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pseudoclaude.text import clean, cut_bytes, cut_graphemes, decode, head, size

DERANDOMIZED = settings(derandomize=True, deadline=None, database=None, max_examples=80)

FAMILY = "👩‍👩‍👧"
PIECES = ["a", "é", "世", "🙂", "e\u0301", FAMILY, "🇨🇭", "\r\n", "\n", "\u2028", "\u200d", "\x00", "क्षि", "\ufffd"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
LIMITS = st.integers(-2, 60)


def longest(parts: list[str], limit: int) -> str:
    """As many of ``parts`` as fit, counted one by one."""
    kept = ""
    for part in parts:
        if len((kept + part).encode()) > limit:
            break
        kept += part
    return kept


@DERANDOMIZED
@given(TEXTS, LIMITS)
def test_a_cut_by_bytes_is_the_longest_that_fits(text: str, limit: int) -> None:
    assert cut_bytes(text, limit) == longest(list(text), limit)


@DERANDOMIZED
@given(TEXTS, LIMITS)
@example(FAMILY, 10)
@example(f"a{FAMILY}b", 18)
@example("e\u0301", 1)
def test_a_cut_by_graphemes_breaks_none_unless_the_first_does_not_fit(text: str, limit: int) -> None:
    whole = longest(regex.findall(r"\X", text), limit)
    assert cut_graphemes(text, limit) == (whole or cut_bytes(text, limit))


@DERANDOMIZED
@given(TEXTS, LIMITS)
@example("\nabc", 3)
@example("ab\ncd", 3)
@example(f"ab{FAMILY}\n", 10)
@example("a\u2028b\rcd", 6)
def test_a_head_ends_after_a_line_if_one_fits_and_at_a_grapheme_if_not(text: str, limit: int) -> None:
    lines = longest(regex.findall(r"[^\n]*\n|[^\n]+", text), limit)
    wanted = lines if lines == text or len(lines) > 1 else cut_graphemes(text, limit)
    assert head(text, limit) == wanted


@DERANDOMIZED
@given(TEXTS)
def test_a_text_that_fits_is_the_same_object_and_its_size_is_in_bytes(text: str) -> None:
    assert size(text) == len(text.encode())
    for cut in (cut_bytes, cut_graphemes, head):
        assert cut(text, max(1, size(text))) is text


@DERANDOMIZED
@given(st.text(st.characters() | st.characters(categories=["Cs"]), max_size=8))
@example("\ud83d\ude42")
@example("plain")
def test_cleaning_replaces_each_lone_surrogate_and_nothing_else(text: str) -> None:
    cleaned = clean(text)
    assert cleaned == "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    assert clean(cleaned) is cleaned
    assert cleaned != text or cleaned is text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("世🙂\x00\n".encode(), "世🙂\x00\n"),
        (b"a\xffb", "a\ufffdb"),
        (b"\xe4\xb8", "\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"\xc0\xaf", "\ufffd\ufffd"),
    ],
)
def test_tool_output_of_any_bytes_becomes_text(data: bytes, text: str) -> None:
    assert decode(data) == text
