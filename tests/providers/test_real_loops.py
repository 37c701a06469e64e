"""The recorded tool loops run to their end, so that a Runner can be driven with them."""

from __future__ import annotations

import pytest

from tests.providers import real_loops
from tests.providers.real_loops import Loop

LOOPS = real_loops.loops()


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_a_recorded_loop_runs_to_its_end(loop: Loop) -> None:
    provider = loop.provider()
    history = real_loops.drive(loop, provider)
    assert provider.finished
    assert history[-1].role == "assistant"
    assert not history[-1].tool_calls
    assert (history[-1].content == real_loops.CLOSING) == loop.closing_is_scripted
    assert any(len(message.tool_calls) > 1 for message in history) == loop.parallel


def test_all_four_kinds_are_there() -> None:
    if not LOOPS:
        pytest.skip("needs the shared folder")
    kinds = {(loop.streams, loop.parallel) for loop in LOOPS}
    assert kinds == {(False, False), (False, True), (True, False), (True, True)}
    assert any(not loop.closing_is_scripted and len(loop.positions) > 1 for loop in LOOPS)
