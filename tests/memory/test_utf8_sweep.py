from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.memory import trim_index
from tests.memory import utf8_sweep
from tests.memory.utf8_sweep import CLUSTERS, Case, by_slicing_bytes, by_trim_index, cases, faults


@pytest.mark.parametrize("kind", CLUSTERS)
def test_every_cut_of_the_last_bytes_is_clean(kind: str) -> None:
    wrong = {
        (case.max_lines, case.max_bytes): found
        for case in cases()
        if case.kind == kind and (found := faults(by_trim_index, case))
    }
    assert wrong == {}


@pytest.mark.parametrize("kind", CLUSTERS)
def test_slicing_bytes_is_caught_wherever_it_breaks_a_character(kind: str) -> None:
    mine = [case for case in cases() if case.kind == kind]
    broken = [case for case in mine if faults(by_slicing_bytes, case) == ["not UTF-8"]]
    inside = [case for case in mine if not _at_character(_first_lines(case), case.max_bytes)]
    assert broken == inside
    assert bool(broken) == any(not cluster.isascii() for cluster in CLUSTERS[kind])


def test_the_planted_variant_is_wrong_wherever_it_cuts_more_than_the_end_of_the_last_line() -> None:
    rows = utf8_sweep.sweep(by_slicing_bytes)
    right = {kind: row.tried - row.wrong for kind, row in rows.items()}
    assert right == {kind: 6 if kind == "CRLF" else 0 for kind in CLUSTERS}
    assert sum(row.broken_characters for row in rows.values()) > 1_000


def _first_lines(case: Case) -> str:
    return "\n".join(case.text.split("\n")[: case.max_lines])


def _at_character(text: str, offset: int) -> bool:
    data = text.encode()
    return offset >= len(data) or data[offset] & 0xC0 != 0x80


PIECES = st.sampled_from([*CLUSTERS.values(), "\n", "\r\n", " ", "- [x](y.md): z", "\ufffd", "\u200d", "\x00"])


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.lists(PIECES, max_size=40).map("".join), st.integers(-1, 12), st.integers(-1, 160))
def test_limits_hold_for_any_text_and_trimming_twice_is_once(text: str, max_lines: int, max_bytes: int) -> None:
    once = trim_index(text, max_lines=max_lines, max_bytes=max_bytes)
    assert len(once.encode("utf-8")) <= max(0, max_bytes)
    assert once.count("\n") + 1 <= max(1, max_lines)
    assert once.count("\ufffd") <= text.count("\ufffd")
    assert trim_index(once, max_lines=max_lines, max_bytes=max_bytes) == once
