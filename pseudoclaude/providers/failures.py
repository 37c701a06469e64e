"""What a provider's refusal means to us: status, headers and error body -> one class of ``errors.ProviderError``.

Knows no SDK, so that the adapters, the scripted provider and a test can ask the same question.  Three traps decide the order of
the questions.  An error may arrive inside a stream that began with HTTP 200, so the body's type counts where the status says
nothing.  Context overflow comes as a 400 with a code (OpenAI), as a 400 with only a sentence (Anthropic), or as a 413; it is asked
first, because compacting helps and nothing else does.  A 429 is not always worth a retry: ``x-should-retry: false``, an exhausted
quota, or a single request larger than the limit a minute never succeed unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import regex

from pseudoclaude.errors import (
    AuthenticationFailed,
    ContextOverflow,
    InvalidRequest,
    Overloaded,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    StreamInterrupted,
)
from pseudoclaude.messages import Message

_OVERFLOW_CODES = frozenset({"context_length_exceeded", "model_context_window_exceeded"})
_OVERFLOW_TEXT = regex.compile(
    r"prompt is too long"
    r"|maximum context length"
    r"|exceeds? (?:the )?context (?:window|limit|length)"
    r"|context (?:window|limit|length) exceeded",
    regex.IGNORECASE,
)
_AUTHENTICATION = frozenset({"authentication_error", "permission_error", "invalid_api_key", "permission_denied"})
_RATE = frozenset(
    {"rate_limit_error", "rate_limit_exceeded", "insufficient_quota", "billing_error", "requests", "tokens"}
)
_HOPELESS = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"})
_TOO_LARGE_FOR_RATE = regex.compile(r"request too large", regex.IGNORECASE)
_OVERLOADED = frozenset(
    {"overloaded_error", "server_overloaded", "server_is_overloaded", "slow_down", "engine_overloaded"}
)
_REFUSED = frozenset(
    {
        "invalid_request_error",
        "not_found_error",
        "request_too_large",
        "model_not_found",
        "invalid_prompt",
        "content_filter",
        "content_policy_violation",
    }
)
_MESSAGE_MAX = 600


class _Refusal(NamedTuple):
    """One error, reduced to what is asked about it.  ``names`` are its type and code."""

    names: frozenset[str]
    message: str
    status: int | None
    should_retry: bool | None
    retry_after: float | None


def provider_failure(status: int | None, body: object, headers: Mapping[str, str], *, where: str) -> ProviderError:
    """The error a caller should see for one refused request.

    ``status`` is the HTTP status (200 for an error inside a stream, None when there was none), ``body`` the decoded JSON body or
    its ``error`` member, ``headers`` a case-blind mapping or one with lower-case names, ``where`` names API and model.
    """
    refusal = _read(status, body, headers)
    for question in (_overflow, _authentication, _overloaded, _rate, _refused):
        answer = question(refusal, where)
        if answer is not None:
            return answer
    return ProviderUnavailable(
        f"The provider failed: {refusal.message}",
        status=status,
        retryable=_retryable(refusal, default=True),
        retry_after=refusal.retry_after,
        where=where,
    )


def _read(status: int | None, body: object, headers: Mapping[str, str]) -> _Refusal:
    error: Any = body
    if isinstance(error, Mapping) and isinstance(error.get("error"), (Mapping, str)):
        error = error["error"]
    if isinstance(error, Mapping):
        names = frozenset(str(error[key]) for key in ("type", "code") if error.get(key))
        message = str(error.get("message") or "no reason given")
    else:
        names, message = frozenset(), str(error or "no reason given")
    flag = headers.get("x-should-retry")
    return _Refusal(
        names,
        message if len(message) <= _MESSAGE_MAX else message[:_MESSAGE_MAX] + "…",
        status,
        {"true": True, "false": False}.get(flag or ""),
        retry_after_seconds(headers),
    )


def _overflow(refusal: _Refusal, where: str) -> ProviderError | None:
    named = bool(refusal.names & _OVERFLOW_CODES)
    worded = refusal.status in (400, 200, None) and _OVERFLOW_TEXT.search(refusal.message) is not None
    if not (named or worded or refusal.status == 413):
        return None
    return ContextOverflow(
        f"The request does not fit the model's window: {refusal.message}",
        status=refusal.status,
        where=where,
        do_next="Compact the history, or use a model with a larger window",
    )


def _authentication(refusal: _Refusal, where: str) -> ProviderError | None:
    if refusal.status not in (401, 403) and not refusal.names & _AUTHENTICATION:
        return None
    return AuthenticationFailed(
        f"The provider did not accept the key: {refusal.message}",
        status=refusal.status,
        where=where,
        do_next="Check the API key and what it is allowed to use",
    )


def _overloaded(refusal: _Refusal, where: str) -> ProviderError | None:
    if refusal.status != 529 and not refusal.names & _OVERLOADED:
        return None
    return Overloaded(
        f"The provider is overloaded: {refusal.message}",
        status=refusal.status,
        retryable=_retryable(refusal, default=True),
        retry_after=refusal.retry_after,
        where=where,
    )


def _rate(refusal: _Refusal, where: str) -> ProviderError | None:
    if refusal.status not in (429, 402) and not refusal.names & _RATE:
        return None
    hopeless = bool(refusal.names & _HOPELESS) or refusal.status == 402
    too_large = _TOO_LARGE_FOR_RATE.search(refusal.message) is not None
    advice = "Check plan and billing" if hopeless else "Compact the history or raise the limit" if too_large else ""
    return RateLimited(
        f"The provider's rate limit refused the request: {refusal.message}",
        status=refusal.status,
        retryable=not (hopeless or too_large) and _retryable(refusal, default=True),
        retry_after=refusal.retry_after,
        where=where,
        do_next=advice,
    )


def _refused(refusal: _Refusal, where: str) -> ProviderError | None:
    client_error = refusal.status is not None and 400 <= refusal.status < 500 and refusal.status not in (408, 409)
    if not client_error and not refusal.names & _REFUSED:
        return None
    unknown_model = refusal.status == 404 or "model_not_found" in refusal.names
    return InvalidRequest(
        f"The provider refused the request: {refusal.message}",
        status=refusal.status,
        where=where,
        do_next="Check the model name and the base URL" if unknown_model else "",
    )


def _retryable(refusal: _Refusal, *, default: bool) -> bool:
    return default if refusal.should_retry is None else refusal.should_retry


def interrupted(text: str, failure: ProviderError) -> ProviderError:
    """``failure``, or what keeps ``text`` when some had arrived."""
    if not text:
        return failure
    return StreamInterrupted(
        "The reply was cut off",
        partial=Message("assistant", text, stop="interrupted"),
        where=failure.where,
        cause=f"Cause: {failure.what}",
    )


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait from ``retry-after-ms`` or ``retry-after``; a date counts from the response's own ``date``."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        until, now = parsedate_to_datetime(text), parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (until - now).total_seconds())
    except (TypeError, ValueError):  # an unreadable or mixed-zone date is no advice
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
