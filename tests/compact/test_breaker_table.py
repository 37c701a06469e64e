"""The circuit breaker, kind of failure by kind of failure; the table is printed by ``python -m tests.compact.breaker_table``."""

import pytest

from tests.compact.breaker_table import KINDS, Row, render, row

LASTING = {
    "provider error 500": "provider",
    "key refused 401": "provider",
    "rate limit 429": "provider",
    "overload 529": "provider",
    "timeout": "provider",
    "connection reset": "provider",
    "stream cut": "provider",
    "empty summary": "empty_summary",
    "blank summary": "empty_summary",
    "only thinking": "empty_summary",
    "cut-off summary": "cut_off",
    "larger than the input": "no_saving",
    "tool call instead of text": "tool_call",
    "refusal": "refusal",
}
PASSING = {
    "text and a tool call": (1, ()),
    "too long once": (2, ()),
    "too long twice": (3, ()),
    "too long three times": (4, ()),
    "too long four times": (5, (1,)),
    "success after two failures": (3, (1, 2)),
    "no failure": (1, ()),
}


@pytest.mark.parametrize("kind", LASTING)
def test_a_lasting_failure_costs_three_requests_and_is_told_four_times(kind, tmp_path):
    found = row(kind, KINDS[kind], str(tmp_path))
    failed = LASTING[kind]
    assert found._replace(words=()) == Row(
        kind, 3, "open", (1, 2, 3), failed, (3,), True, f"{failed}, open", "compacted, closed"
    )


def test_a_request_that_stays_too_long_costs_four_requests_each_time(tmp_path):
    found = row("too long always", KINDS["too long always"], str(tmp_path))
    expected = Row(
        "too long always", 12, "open", (1, 2, 3), "too_long", (3,), True, "too_long, open", "compacted, closed"
    )
    assert found._replace(words=()) == expected


@pytest.mark.parametrize("kind", PASSING)
def test_a_success_closes_the_breaker_and_no_more_is_asked(kind, tmp_path):
    found = row(kind, KINDS[kind], str(tmp_path))
    requests, failures = PASSING[kind]
    assert (found.requests, found.failures, found.breaker, found.stopped) == (requests, failures, "closed", ())
    assert found.unchanged
    assert found.manual_good == "compacted, closed"


def test_every_kind_of_the_table_is_judged_and_printed(tmp_path):
    assert {*LASTING, *PASSING, "too long always"} == set(KINDS)
    text = render([row("timeout", KINDS["timeout"], str(tmp_path))])
    assert "provider in turns 1, 2, 3" in text
    assert "    Compaction failed: the summary request failed: the request timed out. The history is as it was." in text
    assert "    Automatic compaction stopped after 3 failures in a row; the last: the summary request failed" in text
