"""Settings that work are taken as they are; settings that cannot are refused when they are built, with the numbers."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from pseudoclaude.errors import InvalidSettings
from pseudoclaude.settings import Settings


@pytest.mark.parametrize(
    ("dialect", "window", "compact_at"),
    [("anthropic", 200_000, 167_000), ("openai-chat", 128_000, 95_000), ("openai-responses", 128_000, 95_000)],
)
def test_the_window_of_the_dialect_is_the_default(dialect: Any, window: int, compact_at: int) -> None:
    settings = Settings(dialect=dialect)
    assert (settings.context_window, settings.compact_at_tokens) == (window, compact_at)


def test_a_window_that_is_given_counts() -> None:
    assert Settings(dialect="openai-chat", context_window=1_000_000).compact_at_tokens == 967_000


BAD: list[tuple[dict[str, Any], str]] = [
    ({"dialect": "gemini"}, "dialect is 'gemini'; it is one of anthropic, openai-chat, openai-responses"),
    ({"dialect": None, "context_window": 100_000}, "dialect is None"),
    ({"durability": "sometimes"}, "durability is 'sometimes'; it is one of always, batch, off"),
    ({"when_full": "drop"}, "when_full is 'drop'; it is one of raise, drop_oldest"),
    ({"context_window": "200000"}, "context_window is '200000'; it is a whole number"),
    ({"result_limit_bytes": 50_000.0}, "result_limit_bytes is 50000.0; it is a whole number"),
    ({"request_attempts": True}, "request_attempts is True; it is a whole number"),
    ({"bytes_per_token": None}, "bytes_per_token is None; it is a number"),
    ({"saving_min_ratio": math.nan}, "saving_min_ratio is nan; it is a finite number"),
    ({"request_timeout_seconds": math.inf}, "request_timeout_seconds is inf; it is a finite number"),
    ({"context_window": 10**5000}, "context_window is beyond 64 bits"),
    ({"saving_min_ratio": -(10**5000)}, "saving_min_ratio is beyond 64 bits"),
    ({"context_window": -1}, "context_window is -1; it cannot be negative"),
    ({"retry_wait_min_seconds": -0.5}, "retry_wait_min_seconds is -0.5; it cannot be negative"),
    ({"bytes_per_token": 0}, "bytes_per_token is 0; it lies between 0 and 16"),
    ({"bytes_per_token": 16.5}, "bytes_per_token is 16.5; it lies between 0 and 16"),
    ({"saving_min_ratio": 1.0}, "saving_min_ratio is 1.0; no summary saves that part of a history"),
    (
        {"retry_wait_min_seconds": 90.0},
        "retry_wait_min_seconds (90.0) is above retry_wait_max_seconds (60.0)",
    ),
    ({"preview_bytes": 50_000}, "preview_bytes (50000) must be smaller than result_limit_bytes (50000)"),
    ({"result_limit_bytes": 0}, "preview_bytes (2000) must be smaller than result_limit_bytes (0)"),
    (
        {"context_window": 33_000},
        "a context window of 33,000 tokens is too small for a summary reserve of 20,000 and an automatic margin of 13,000. "
        "Use a model with a window above 33,000 tokens, or lower summary_reserve_tokens and auto_margin_tokens.",
    ),
    (
        {"summary_reserve_tokens": 187_000},
        "a context window of 200,000 tokens is too small for a summary reserve of 187,000",
    ),
    (
        {"auto_margin_tokens": 180_000},
        "a context window of 200,000 tokens is too small for a summary reserve of 20,000",
    ),
    ({"keep_recent_tokens": 167_000}, "keep_recent_tokens (167,000) must be below the threshold of 167,000 tokens"),
    ({"context_window": 43_000}, "keep_recent_tokens (10,000) must be below the threshold of 10,000 tokens"),
]


@pytest.mark.parametrize(("wrong", "words"), BAD)
def test_what_cannot_work_is_refused_with_its_numbers(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        Settings(**wrong)
    assert str(caught.value).startswith(words)


NUMBERS = [field.name for field in msgspec.structs.fields(Settings) if field.type in (int, float)]


@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_may_be_negative(name: str) -> None:
    with pytest.raises(InvalidSettings, match=f"{name} is -1; it cannot be negative"):
        Settings(**{name: -1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "edge",
    [
        {"preview_bytes": 49_999},
        {"context_window": 33_001, "keep_recent_tokens": 0},
        {"keep_recent_tokens": 166_999},
        {"bytes_per_token": 16},
        {"saving_min_ratio": 0},
        {"retry_wait_min_seconds": 60},
        {"preview_bytes": 0, "result_limit_bytes": 1},
    ],
)
def test_the_last_value_that_works_is_taken(edge: dict[str, Any]) -> None:
    settings = Settings(**edge)
    assert {name: getattr(settings, name) for name in edge} == edge


def test_settings_from_a_file_are_refused_in_the_same_words() -> None:
    with pytest.raises(
        msgspec.ValidationError, match=r"preview_bytes \(9\) must be smaller than result_limit_bytes \(9\)"
    ):
        msgspec.convert({"preview_bytes": 9, "result_limit_bytes": 9}, Settings)
    with pytest.raises(msgspec.ValidationError, match="unknown field `preview_byte`"):
        msgspec.convert({"preview_byte": 9}, Settings)


def test_settings_cannot_be_changed_after_they_were_checked() -> None:
    with pytest.raises(AttributeError):
        Settings().preview_bytes = 60_000  # type: ignore[misc]


@pytest.mark.parametrize(
    "name",
    [
        "max_output_tokens",
        "breaker_failures",
        "memory_lines_max",
        "memory_bytes_max",
        "request_attempts",
        "request_timeout_seconds",
        "tool_timeout_seconds",
        "turn_requests_max",
    ],
)
def test_what_must_happen_at_least_once_cannot_be_none(name: str) -> None:
    with pytest.raises(InvalidSettings, match=f"{name} is 0"):
        Settings(**{name: 0})
