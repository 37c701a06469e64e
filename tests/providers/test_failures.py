"""One refusal, one class: what the status, the headers and the body of an error mean."""

from __future__ import annotations

from typing import Any

import pytest

from pseudoclaude.errors import (
    AuthenticationFailed,
    ContextOverflow,
    InvalidRequest,
    Overloaded,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
)
from pseudoclaude.providers.failures import provider_failure, retry_after_seconds


def _failure(status: int | None, headers: dict[str, str] | None = None, **error: Any) -> ProviderError:
    return provider_failure(status, {"error": error}, headers or {}, where="an API, a model")


OVERFLOWS = [
    (400, {"type": "invalid_request_error", "message": "prompt is too long: 233404 tokens > 200000 maximum"}),
    (400, {"message": "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000"}),
    (400, {"code": "context_length_exceeded", "message": "anything"}),
    (400, {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000."}),
    (400, {"message": "Your input exceeds the context window of this model."}),
    (413, {"type": "request_too_large", "message": "Request exceeds the maximum size"}),
    (200, {"type": "invalid_request_error", "message": "prompt is too long: 1 tokens > 0 maximum"}),
]


@pytest.mark.parametrize(("status", "error"), OVERFLOWS)
def test_every_shape_of_overflow_asks_for_compaction(status: int, error: dict[str, Any]) -> None:
    failure = _failure(status, **error)
    assert isinstance(failure, ContextOverflow)
    assert (failure.status, failure.retryable) == (status, False)
    assert "Compact" in str(failure)


CLASSES = [
    (401, {"type": "authentication_error"}, AuthenticationFailed, False),
    (403, {"type": "permission_error"}, AuthenticationFailed, False),
    (400, {"code": "invalid_api_key"}, AuthenticationFailed, False),
    (404, {"type": "not_found_error"}, InvalidRequest, False),
    (400, {"type": "invalid_request_error", "message": "messages.0: wrong"}, InvalidRequest, False),
    (422, {}, InvalidRequest, False),
    (402, {"type": "billing_error"}, RateLimited, False),
    (429, {"type": "rate_limit_error"}, RateLimited, True),
    (429, {"type": "insufficient_quota", "code": "insufficient_quota"}, RateLimited, False),
    (429, {"type": "tokens", "message": "Request too large for gpt on tokens per min"}, RateLimited, False),
    (529, {"type": "overloaded_error"}, Overloaded, True),
    (503, {"code": "server_is_overloaded"}, Overloaded, True),
    (200, {"type": "overloaded_error"}, Overloaded, True),
    (500, {"type": "api_error"}, ProviderUnavailable, True),
    (502, {}, ProviderUnavailable, True),
    (408, {}, ProviderUnavailable, True),
    (409, {}, ProviderUnavailable, True),
    (200, {"type": "server_error"}, ProviderUnavailable, True),
    (200, {"type": "invalid_request_error"}, InvalidRequest, False),
]


@pytest.mark.parametrize(("status", "error", "kind", "retryable"), CLASSES)
def test_class_and_hope(status: int, error: dict[str, Any], kind: type[ProviderError], retryable: bool) -> None:
    failure = _failure(status, **error)
    assert type(failure) is kind
    assert (failure.status, failure.retryable) == (status, retryable)
    assert "an API, a model" in str(failure)


@pytest.mark.parametrize("status", [429, 500, 529])
def test_should_retry_decides_against_the_status(status: int) -> None:
    assert not _failure(status, {"x-should-retry": "false"}).retryable
    assert _failure(status, {"x-should-retry": "true"}).retryable


def test_no_header_makes_an_exhausted_quota_worth_a_retry() -> None:
    assert not _failure(429, {"x-should-retry": "true"}, type="insufficient_quota").retryable


def test_an_unknown_model_says_what_to_check() -> None:
    assert "model name" in str(_failure(404, message="model: no-such-model"))


@pytest.mark.parametrize("body", [None, "", "<html>busy</html>", [], {"error": "text"}, {"error": None}])
def test_any_body_is_an_answer(body: Any) -> None:
    assert isinstance(provider_failure(503, body, {}, where="w"), ProviderUnavailable)


def test_a_very_long_sentence_is_cut() -> None:
    assert len(str(_failure(400, message="x" * 100_000))) < 1_000


WAITS = [
    ({}, None),
    ({"retry-after": "41"}, 41.0),
    ({"retry-after": "1.5"}, 1.5),
    ({"retry-after-ms": "20000", "retry-after": "21"}, 20.0),
    ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
    ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:28:30 GMT"}, 0.0),
    ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "-1"}, None),
    ({"retry-after": "inf"}, None),
    ({"retry-after": "nan"}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), WAITS)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds
