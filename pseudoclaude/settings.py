"""Every limit and policy of the context system, validated in one place.

Numbers come from the source design and DESIGN.md §6-§7.  Units stand last in each name.  A combination that could not work, such
as a window smaller than its reserves, is refused when the settings are built, not discovered by a compaction every turn.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import force_setattr

from pseudoclaude.errors import InvalidSettings

Durability = Literal["always", "batch", "off"]
Dangling = Literal["trim", "answer"]
Dialect = Literal["anthropic", "openai-chat", "openai-responses"]

WINDOW_TOKENS: dict[str, int] = {
    "anthropic": 200_000,
    "openai-chat": 128_000,
    "openai-responses": 128_000,
}


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All limits.  Raises ``InvalidSettings`` with the numbers when they cannot work together.

    ``durability``: ``always`` - an append that returned is on the disk, its directory entries included; ``batch`` - it is on the
    disk after the turn's end, a replace or close; ``off`` - the operating system decides.
    ``when_full``: what happens when the window is full and compaction may not run - ``raise`` ``ContextWindowExceeded``, or
    ``drop_oldest`` rounds without asking a model.
    """

    dialect: Dialect = "anthropic"
    context_window: int = 0
    """Tokens; 0 means the default of the dialect (200,000 Anthropic, 128,000 OpenAI)."""
    max_output_tokens: int = 8_192
    durability: Durability = "always"

    result_limit_bytes: int = 50_000
    turn_results_limit_bytes: int = 200_000
    preview_bytes: int = 2_000

    summary_reserve_tokens: int = 20_000
    auto_margin_tokens: int = 13_000
    bytes_per_token: float = 3.5
    keep_recent_tokens: int = 10_000
    """How much of the latest history stays word for word beside a summary."""
    saving_min_ratio: float = 0.10
    breaker_failures: int = 3
    summary_retries: int = 3
    when_full: Literal["raise", "drop_oldest"] = "raise"

    memory_lines_max: int = 200
    memory_bytes_max: int = 25_000

    request_attempts: int = 5
    retry_wait_min_seconds: float = 0.5
    retry_wait_max_seconds: float = 60.0
    request_timeout_seconds: float = 600.0
    tool_timeout_seconds: float = 120.0
    turn_requests_max: int = 200
    """Model requests in one user turn before the Runner stops, so that a loop cannot run for ever."""

    def __post_init__(self) -> None:
        for field in _FIELDS:
            _check_value(field.name, getattr(self, field.name), field.type)
        if self.context_window == 0:
            force_setattr(self, "context_window", WINDOW_TOKENS[self.dialect])
        _check(self)

    @property
    def compact_at_tokens(self) -> int:
        """The estimate from which an automatic summary is made: window - reserve - margin."""
        return self.context_window - self.summary_reserve_tokens - self.auto_margin_tokens


_FIELDS = msgspec.structs.fields(Settings)


def _check_value(name: str, value: Any, kind: Any) -> None:
    """One setting on its own: a type is not checked by building a struct, only by decoding one."""
    choices = get_args(kind)
    if choices:
        if value not in choices:
            raise InvalidSettings(f"{name} is {value!r}; it is one of {', '.join(choices)}")
        return
    if isinstance(value, bool) or not isinstance(value, int if kind is int else (int, float)):
        raise InvalidSettings(f"{name} is {value!r}; it is a {'whole number' if kind is int else 'number'}")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise InvalidSettings(f"{name} is beyond 64 bits")
    if not math.isfinite(value):
        raise InvalidSettings(f"{name} is {value}; it is a finite number")
    if value < 0:
        raise InvalidSettings(f"{name} is {value}; it cannot be negative")


_AT_LEAST_SOME = (
    "max_output_tokens",
    "breaker_failures",
    "memory_lines_max",
    "memory_bytes_max",
    "request_attempts",
    "request_timeout_seconds",
    "tool_timeout_seconds",
    "turn_requests_max",
)
"""With none of these nothing would ever happen."""


def _check(settings: Settings) -> None:
    """The settings together."""
    for name in _AT_LEAST_SOME:
        if not getattr(settings, name):
            raise InvalidSettings(f"{name} is 0; it is at least 1, or a part of one where it is a time")
    if not 0 < settings.bytes_per_token <= 16:
        raise InvalidSettings(f"bytes_per_token is {settings.bytes_per_token}; it lies between 0 and 16")
    if settings.saving_min_ratio >= 1:
        raise InvalidSettings(
            f"saving_min_ratio is {settings.saving_min_ratio}; no summary saves that part of a history"
        )
    if settings.retry_wait_min_seconds > settings.retry_wait_max_seconds:
        raise InvalidSettings(
            f"retry_wait_min_seconds ({settings.retry_wait_min_seconds}) is above retry_wait_max_seconds "
            f"({settings.retry_wait_max_seconds})"
        )
    if settings.preview_bytes >= settings.result_limit_bytes:
        raise InvalidSettings(
            f"preview_bytes ({settings.preview_bytes}) must be smaller than result_limit_bytes ({settings.result_limit_bytes}): "
            "a preview larger than what it stands for saves nothing"
        )
    if settings.compact_at_tokens <= 0:
        raise InvalidSettings(
            f"a context window of {settings.context_window:,} tokens is too small for a summary reserve of "
            f"{settings.summary_reserve_tokens:,} and an automatic margin of {settings.auto_margin_tokens:,}",
            do_next=(
                f"Use a model with a window above {settings.summary_reserve_tokens + settings.auto_margin_tokens:,} tokens, "
                "or lower summary_reserve_tokens and auto_margin_tokens"
            ),
        )
    if settings.keep_recent_tokens >= settings.compact_at_tokens:
        raise InvalidSettings(
            f"keep_recent_tokens ({settings.keep_recent_tokens:,}) must be below the threshold of "
            f"{settings.compact_at_tokens:,} tokens: otherwise a compaction could not get under it"
        )
