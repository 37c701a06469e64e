"""Must show: a cut of every recorded stream after every event keeps the text that had arrived, or is a clean error before any.

Also: the next request works, since nothing of the adapter's state is left over from a cut.
"""

from __future__ import annotations

from typing import Literal

import pytest

from pseudoclaude.errors import ProviderError, ProviderUnavailable, StreamInterrupted
from pseudoclaude.messages import Message
from simulator.replies.script import StreamFault
from simulator.replies.transport import split_events
from tests.providers import corpus
from tests.providers.corpus import Case
from tests.providers.wire_truth import text_of_events

SLOW_FROM_EVENTS = 20


def _streams() -> list[object]:
    cases = [case for case in corpus.cases() if corpus.skip_reason(case) is None and corpus.recorded(case).streams]
    return [
        pytest.param(case, marks=[pytest.mark.slow] if _count(case) >= SLOW_FROM_EVENTS else [], id=str(case))
        for case in cases
    ]


def _count(case: Case) -> int:
    return len(split_events(corpus.recorded(case).reply))


@pytest.mark.parametrize("case", _streams())
def test_a_cut_after_every_event(case: Case) -> None:
    one, events = corpus.recorded(case), _count(case)
    whole = text_of_events(one, events)
    for position in range(events):
        how: Literal["reset", "end"] = "reset" if position % 2 == 0 else "end"
        heard: list[str] = []
        error = _cut(case, StreamFault(position, how=how), heard)
        text = text_of_events(one, position)
        assert "".join(heard) == text
        if error is None:
            assert text == whole
            assert one.dialect == "openai-chat", "only a Chat stream may end quietly, after its finish reason"
            assert how == "end"
        elif text:
            assert isinstance(error, StreamInterrupted)
            assert error.partial == Message("assistant", text, stop="interrupted")
            assert "marked interrupted" in str(error)
        else:
            assert isinstance(error, ProviderUnavailable)
            assert error.retryable


def _cut(case: Case, cut: StreamFault, heard: list[str]) -> ProviderError | None:
    try:
        corpus.provider(case, cut=cut).complete(corpus.request(case), heard.append)
    except ProviderError as error:
        return error
    return None


def test_a_reply_that_does_not_stream_breaks_before_its_first_byte() -> None:
    plain = [case for case in corpus.cases() if corpus.skip_reason(case) is None and not corpus.recorded(case).streams]
    if not plain:
        pytest.skip("needs the shared folder")
    error = _cut(plain[0], StreamFault(3), [])
    assert isinstance(error, ProviderUnavailable)
    assert not isinstance(error, StreamInterrupted)
