"""The bench measures what it says, on a small history; the target itself is printed, not asserted on a busy machine."""

from __future__ import annotations

import pytest

from tests.protocol.bench_protocol import DIALECTS, RATIO_MAX, measure, tool_loop


@pytest.mark.parametrize("dialect", DIALECTS)
def test_judging_and_repairing_costs_about_as_much_as_encoding(dialect: str) -> None:
    """Twice the target: what every rule instead of the screen would cost is twenty times as much."""
    assert measure(dialect, tool_loop(400), rounds=15).ratio < 2 * RATIO_MAX
