"""The one retry policy, with a clock that only notes how long it was asked to sleep."""

from __future__ import annotations

from typing import Any

import pytest

from pseudoclaude.errors import Overloaded, ProviderError, RateLimited, StreamInterrupted
from pseudoclaude.providers.retry import Retrying
from pseudoclaude.settings import Settings
from simulator.replies import ScriptExhausted
from simulator.replies.scripted import ScriptedProvider
from tests.replies.build import HELLO, spec


class NotingClock:
    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class FixedIds:
    def __init__(self, fraction: float) -> None:
        self._fraction = fraction

    def session_id(self, now: float) -> str:
        return "s"

    def fraction(self) -> float:
        return self._fraction

    def owner(self) -> str:
        return "test"


BUSY = {"fail": {"status": 529}}
ANSWER = {"text": "Here."}


def _retrying(
    *script: dict[str, Any], fraction: float = 0.0, **settings: Any
) -> tuple[Retrying, NotingClock, ScriptedProvider]:
    clock, inner = NotingClock(), ScriptedProvider(spec(*script))
    return Retrying(inner, Settings(**settings), clock, FixedIds(fraction)), clock, inner


def test_waits_double_up_to_the_maximum_and_then_the_answer_comes() -> None:
    retrying, clock, _ = _retrying(
        BUSY, BUSY, BUSY, BUSY, ANSWER, retry_wait_min_seconds=1.0, retry_wait_max_seconds=3.0
    )
    assert retrying.complete(HELLO).message.content == "Here."
    assert clock.slept == [1.0, 2.0, 3.0, 3.0]


def test_jitter_takes_away_up_to_half() -> None:
    retrying, clock, _ = _retrying(BUSY, BUSY, ANSWER, fraction=0.5, retry_wait_min_seconds=1.0)
    retrying.complete(HELLO)
    assert clock.slept == [0.75, 1.5]


def test_retry_after_is_a_floor() -> None:
    limited = {"fail": {"status": 429, "retry_after": 65}}
    retrying, clock, _ = _retrying(
        limited, ANSWER, fraction=0.5, retry_wait_min_seconds=1.0, retry_wait_max_seconds=10.0
    )
    retrying.complete(HELLO)
    assert clock.slept == [65.5]


def test_the_last_failure_itself_is_raised() -> None:
    retrying, clock, inner = _retrying(*[BUSY] * 5, ANSWER, request_attempts=3)
    with pytest.raises(Overloaded):
        retrying.complete(HELLO)
    assert len(clock.slept) == 2
    assert inner.remaining == 3


HOPELESS = [
    {"fail": {"status": 400}},
    {"fail": {"status": 401}},
    {"fail": {"kind": "context_overflow"}},
    {"fail": {"kind": "quota"}},
    {"fail": {"kind": "too_large"}},
    {"fail": {"status": 429, "should_retry": False}},
    {"fail": {"status": 500, "should_retry": False}},
    {"fail": {"status": 429, "retry_after": 3600}},
]


@pytest.mark.parametrize("entry", HOPELESS, ids=str)
def test_what_cannot_succeed_is_asked_once(entry: dict[str, Any]) -> None:
    retrying, clock, inner = _retrying(entry, ANSWER)
    with pytest.raises(ProviderError):
        retrying.complete(HELLO)
    assert (clock.slept, inner.remaining) == ([], 1)


def test_a_stream_that_had_begun_to_speak_is_not_retried() -> None:
    retrying, clock, inner = _retrying(
        {"text": "Some words that arrive in pieces", "fail": {"cut_after_events": 4}}, ANSWER
    )
    heard: list[str] = []
    with pytest.raises(StreamInterrupted) as caught:
        retrying.complete(HELLO, heard.append)
    assert caught.value.partial.content == "".join(heard) != ""
    assert (clock.slept, inner.remaining) == ([], 1)


def test_a_stream_cut_before_any_text_is_retried() -> None:
    retrying, clock, _ = _retrying({"text": "Words", "fail": {"cut_after_events": 1}}, ANSWER)
    assert retrying.complete(HELLO).message.content == "Here."
    assert len(clock.slept) == 1


def test_a_mistake_of_the_harness_is_not_retried() -> None:
    retrying, clock, _ = _retrying()
    with pytest.raises(ScriptExhausted):
        retrying.complete(HELLO)
    assert clock.slept == []


def test_the_user_can_be_told_of_each_wait() -> None:
    told: list[tuple[str, float]] = []
    inner = ScriptedProvider(spec({"fail": {"status": 429, "retry_after": 7}}, BUSY, ANSWER))
    clock = NotingClock()
    Retrying(
        inner,
        Settings(retry_wait_min_seconds=0.5),
        clock,
        FixedIds(0.0),
        on_retry=lambda error, seconds: told.append((type(error).__name__, seconds)),
    ).complete(HELLO)
    assert told == [(RateLimited.__name__, 7.0), (Overloaded.__name__, 1.0)]
    assert clock.slept == [7.0, 1.0]


def test_it_is_the_provider_it_wraps() -> None:
    retrying, _, inner = _retrying()
    assert (retrying.dialect, retrying.model) == (inner.dialect, inner.model)
