"""The scripted provider is a verified fake: the same script over real HTTP, through the real adapter, gives the same."""

from __future__ import annotations

from contextlib import closing
from typing import Any, NamedTuple

import pytest

from pseudoclaude.errors import ProviderError, StreamInterrupted
from pseudoclaude.messages import Message, Usage
from pseudoclaude.ports import Provider, Request
from pseudoclaude.providers.by_name import Adapter, make_adapter
from simulator.replies import ScriptExhausted
from simulator.replies.emulator import RunningEmulator, running_emulator
from simulator.replies.errors import NotScriptable
from simulator.replies.scripted import ScriptedProvider
from tests.replies.build import DIALECTS, HELLO, spec

SAID = "I will read it: héllo 世界 🙂, and then some more."
CALLS = [
    {"id": "call_1", "name": "read", "arguments": {}},
    {"id": "call_2", "name": "read", "arguments": {"path": "é.md"}},
]
USAGE = {"input_tokens": 120, "output_tokens": 30, "cache_read_tokens": 7, "cache_write_tokens": 5}

ENTRIES: list[dict[str, Any]] = [
    {"text": SAID, "usage": USAGE},
    {"text": SAID, "tool_calls": CALLS, "usage": USAGE},
    {"tool_calls": CALLS[1:], "usage": USAGE},
    {"tool_calls": [{"id": "c", "name": "read", "arguments": '{"path": "half'}], "stop": "max_tokens", "usage": USAGE},
    {"text": SAID, "stop": "max_tokens", "usage": USAGE},
    {"text": SAID, "usage": USAGE, "fail": {"kind": "refusal"}},
    {"usage": USAGE, "fail": {"kind": "refusal"}},
    {"text": SAID, "usage": USAGE, "fail": {"kind": "empty"}},
    {"text": SAID, "usage": USAGE, "fail": {"kind": "max_tokens"}},
    *[{"fail": {"status": status}} for status in (400, 401, 403, 404, 413, 429, 500, 502, 529)],
    {"fail": {"status": 429, "retry_after": 7}},
    {"fail": {"status": 500, "should_retry": False}},
    {"fail": {"status": 429, "message": "come back on Monday"}},
    {"fail": {"kind": "context_overflow"}},
    {"fail": {"kind": "quota"}},
    {"fail": {"kind": "too_large"}},
    {"fail": {"kind": "connection"}},
    *[
        {"text": SAID, "tool_calls": CALLS, "usage": USAGE, "fail": {"cut_after_events": events}}
        for events in (0, 1, 3, 5, 9, 12, 99)
    ],
    *[
        {"text": SAID, "usage": USAGE, "fail": {"status": status, "cut_after_events": events}}
        for status in (400, 429, 500, 529)
        for events in (0, 1, 5, 99)
    ],
]


class Heard(NamedTuple):
    """What a caller sees of one request."""

    text: str
    message: Message | None = None
    usage: Usage | None = None
    error: str = ""
    retryable: bool | None = None
    retry_after: float | None = None
    partial: Message | None = None


def _adapter(served: RunningEmulator, dialect: str, **how: Any) -> closing[Adapter]:
    return closing(make_adapter(dialect, "m", api_key="k", base_url=served.url(dialect), **how))


def _ask(provider: Provider, request: Request = HELLO) -> Heard:
    text: list[str] = []
    try:
        reply = provider.complete(request, text.append)
    except ProviderError as error:
        partial = error.partial if isinstance(error, StreamInterrupted) else None
        return Heard("".join(text), None, None, type(error).__name__, error.retryable, error.retry_after, partial)
    message = reply.message
    canonical = Message("assistant", message.content, message.tool_calls, stop=message.stop)
    return Heard("".join(text), canonical, reply.usage)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_script_in_memory_and_over_http(dialect: str) -> None:
    script = spec(*ENTRIES)
    memory = ScriptedProvider(script, dialect)
    with running_emulator(script) as served, _adapter(served, dialect) as adapter:
        for entry in ENTRIES:
            assert _ask(memory) == _ask(adapter), entry
        assert served.emulator.failures == []
        assert served.emulator.requests_checked == len(ENTRIES)
    assert memory.remaining == 0


def test_the_fake_hears_every_error_class() -> None:
    memory = ScriptedProvider(spec(*ENTRIES))
    names = {_ask(memory).error for _ in ENTRIES}
    assert names == {
        "",
        "AuthenticationFailed",
        "ContextOverflow",
        "InvalidRequest",
        "Overloaded",
        "ProviderUnavailable",
        "RateLimited",
        "StreamInterrupted",
    }


def test_a_timeout_in_memory_needs_no_waiting() -> None:
    heard = _ask(ScriptedProvider(spec({"fail": {"kind": "timeout"}})))
    assert (heard.error, heard.retryable) == ("ProviderUnavailable", True)


def test_a_timeout_over_http() -> None:
    with (
        running_emulator(spec({"fail": {"kind": "timeout"}})) as served,
        _adapter(served, "anthropic", timeout=0.05) as adapter,
    ):
        heard = _ask(adapter)
    assert (heard.error, heard.retryable) == ("ProviderUnavailable", True)


def test_each_purpose_has_its_own_queue() -> None:
    provider = ScriptedProvider(spec({"text": "turn"}, summary=[{"text": "sum"}], memory=[{"text": "mem"}]))
    said = [
        provider.complete(Request(HELLO.messages, purpose=purpose)).message.content
        for purpose in ("memory", "summary", "turn")
    ]
    assert said == ["mem", "sum", "turn"]


def test_an_exhausted_script_is_a_mistake_of_the_harness() -> None:
    provider = ScriptedProvider(spec({"text": "a"}))
    provider.complete(HELLO)
    with pytest.raises(ScriptExhausted, match=r"no entry for request 1 of kind turn \(provider.script, 1 entries\)"):
        provider.complete(HELLO)


def test_without_usage_nothing_is_counted() -> None:
    assert ScriptedProvider(spec({"text": "a"})).complete(HELLO).usage is None


def test_events_in_disorder_are_left_to_the_emulator() -> None:
    with pytest.raises(NotScriptable, match="Serve or record the script"):
        ScriptedProvider(spec({"text": "a", "fail": {"repeat_event": 3}})).complete(HELLO)
