"""How each provider says no: status, headers and body of a scripted failure, and of a history that breaks the protocol.

The sentences and types are those of the recordings, so that whoever reads them (our adapters, another client) is tried on real text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pseudoclaude.protocol.values import Violation
from simulator.replies.script import Fail
from simulator.replies.wire_events import DONE, Event


class Refusal(NamedTuple):
    """One HTTP response that is no reply."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]


ANTHROPIC_TYPES: dict[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
OPENAI_TYPES: dict[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}
SENTENCES: dict[int, str] = {
    401: "invalid x-api-key",
    404: "model: no such model",
    429: "This request would exceed your organization's rate limit. Please try again later.",
    500: "Internal server error",
    529: "Overloaded",
}
TOO_LARGE = "Request too large on tokens per min (TPM): Limit 30000, Requested 2500013. The input or output tokens must be reduced."
QUOTA = "You exceeded your current quota, please check your plan and billing details."
OVERFLOW = {
    "anthropic": "prompt is too long: 233404 tokens > 200000 maximum",
    "openai-chat": "This model's maximum context length is 128000 tokens. However, your messages resulted in 150008 tokens.",
    "openai-responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
}


def refusal(dialect: str, fail: Fail) -> Refusal:
    """The response for a ``fail`` with a status, or of the kinds ``context_overflow``, ``quota`` and ``too_large``."""
    if fail.kind == "context_overflow":
        return _refusal(dialect, 400, fail, OVERFLOW[dialect], code="context_length_exceeded")
    if fail.kind == "quota":
        return _refusal(dialect, 429, fail, QUOTA, kind="insufficient_quota", code="insufficient_quota", hopeless=True)
    if fail.kind == "too_large":
        return _refusal(dialect, 429, fail, TOO_LARGE, kind="tokens", code="rate_limit_exceeded", hopeless=True)
    assert fail.status is not None, f"{fail} is no refusal"
    return _refusal(dialect, fail.status, fail, SENTENCES.get(fail.status, "The request failed"))


def error_events(dialect: str, fail: Fail) -> list[Event]:
    """How a stream goes on that meets an error: Chat sends a count of zeros and ``[DONE]`` after it."""
    body = refusal(dialect, fail).body
    if dialect == "anthropic":
        return [Event("error", body)]
    error = body["error"]
    if dialect == "openai-responses":
        return [
            Event(
                "error",
                {"type": "error", "code": error["code"] or error["type"], "message": error["message"], "param": None},
            )
        ]
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    return [
        Event("", body),
        Event("", {"object": "chat.completion.chunk", "choices": [], "usage": zeros}),
        Event("", DONE),
    ]


def protocol_refusal(dialect: str, violations: Sequence[Violation]) -> Refusal:
    """The 400 for a history that breaks the protocol; all broken rules stand in it."""
    sentence = "; ".join(f"{violation.path}: {violation.message} [{violation.rule}]" for violation in violations)
    return _refusal(dialect, 400, Fail(status=400), sentence)


def malformed_refusal(dialect: str, what: str) -> Refusal:
    """The 400 for a body that is no request at all."""
    return _refusal(dialect, 400, Fail(status=400), what)


def _refusal(
    dialect: str,
    status: int,
    fail: Fail,
    sentence: str,
    *,
    kind: str | None = None,
    code: str | None = None,
    hopeless: bool = False,
) -> Refusal:
    headers: dict[str, str] = {}
    if fail.retry_after is not None:
        headers["retry-after"] = f"{fail.retry_after:g}"
    should_retry = False if hopeless and dialect == "anthropic" and fail.should_retry is None else fail.should_retry
    if should_retry is not None:
        headers["x-should-retry"] = str(should_retry).lower()
    return Refusal(status, headers, error_body(dialect, status, fail.message or sentence, kind=kind, code=code))


def error_body(
    dialect: str, status: int, sentence: str, *, kind: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """The body of an error in the provider's shape."""
    if dialect == "anthropic":
        return {"type": "error", "error": {"type": ANTHROPIC_TYPES.get(status, "api_error"), "message": sentence}}
    usual = ("server_error", "server_error") if status >= 500 else ("invalid_request_error", None)
    usual_kind, usual_code = OPENAI_TYPES.get(status, usual)
    return {"error": {"message": sentence, "type": kind or usual_kind, "param": None, "code": code or usual_code}}
