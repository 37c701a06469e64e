"""The one retry policy: a provider around another, on tenacity, with our clock and our jitter.

Retries what may succeed later and only that.  A provider's ``retry-after`` is a floor: waiting less is refused again.  Without one
the wait doubles from the minimum to the maximum, and jitter takes away up to half of it, so that clients that failed together do
not come back together.  An interrupted stream is not retried: its text has been shown, and the Runner keeps it.
"""

from __future__ import annotations

from collections.abc import Callable

import tenacity

from pseudoclaude.errors import ProviderError, StreamInterrupted
from pseudoclaude.ports import Clock, Ids, Provider, Reply, Request
from pseudoclaude.settings import Settings

PATIENCE_MAX_SECONDS = 600.0
"""A provider that asks for a longer wait is not waited for: the error goes to the user, with the time in it."""


class Retrying:
    """``ports.Provider`` that asks ``provider`` up to ``settings.request_attempts`` times.

    ``on_retry`` is called with the failure and the seconds before each wait.  What is raised at the end is the last failure itself.
    """

    def __init__(
        self,
        provider: Provider,
        settings: Settings,
        clock: Clock,
        ids: Ids,
        *,
        on_retry: Callable[[ProviderError, float], None] | None = None,
    ) -> None:
        self._provider = provider
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._on_retry = on_retry

    @property
    def dialect(self) -> str:
        return self._provider.dialect

    @property
    def model(self) -> str:
        return self._provider.model

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        policy = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(max(1, self._settings.request_attempts)),
            retry=tenacity.retry_if_exception(worth_retrying),
            wait=self._wait,
            sleep=self._clock.sleep,
            before_sleep=self._tell,
            reraise=True,
        )
        return policy(self._provider.complete, request, on_text)

    def _wait(self, state: tenacity.RetryCallState) -> float:
        failure = _failure(state)
        if failure.retry_after is not None:
            return failure.retry_after + self._ids.fraction() * self._settings.retry_wait_min_seconds
        least, most = self._settings.retry_wait_min_seconds, self._settings.retry_wait_max_seconds
        backoff: float = min(most, least * 2.0 ** (state.attempt_number - 1))
        return backoff * (1.0 - self._ids.fraction() / 2)

    def _tell(self, state: tenacity.RetryCallState) -> None:
        if self._on_retry is not None:
            self._on_retry(_failure(state), state.upcoming_sleep)


def worth_retrying(error: BaseException) -> bool:
    """Whether the same request may succeed later and nothing of its reply has been shown."""
    if not isinstance(error, ProviderError) or isinstance(error, StreamInterrupted):
        return False
    return error.retryable and (error.retry_after or 0.0) <= PATIENCE_MAX_SECONDS


def _failure(state: tenacity.RetryCallState) -> ProviderError:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, ProviderError), "only provider errors are retried"
    return error
