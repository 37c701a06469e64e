"""The estimate against real usage figures; what the tests assert is printed by ``python -m tests.compact.estimator_report``."""

import pytest

from tests.compact.estimator_report import full_estimates, pairs, read_requests, report
from tests.shared import shared_file

REASONS = {"dropped thinking", "paused turn", "server tools", "other tools"}


@pytest.mark.slow
def test_with_the_anchor_the_next_request_is_within_ten_percent_or_a_hundred_tokens():
    recordings = read_requests(shared_file("cassettes/real"))
    found = pairs(recordings)
    judged = [pair for pair in found if not pair.reason]
    assert len(judged) >= 20
    assert [pair for pair in judged if not pair.within] == []
    assert {pair.reason for pair in found if pair.reason} <= REASONS
    ratios = sorted(one.estimate / one.counted for one in full_estimates(recordings) if not one.reason)
    assert len(ratios) >= 100
    assert 0.5 < ratios[len(ratios) // 2] < 1.5
    assert f"{len(judged)} of {len(judged)} pairs within" in report(recordings)
