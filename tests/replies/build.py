"""Small recordings made in code, for replies that no provider was caught giving."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pseudoclaude.messages import Message
from pseudoclaude.ports import Request
from simulator.replies.cassettes import ENDPOINTS, Cassette, Recorded
from simulator.replies.replay import CassetteProvider
from simulator.replies.script import ProviderSpec, StreamFault

HELLO = Request((Message("user", "Hello"),))
DIALECTS = tuple(ENDPOINTS)


def spec(*script: dict[str, Any], **others: Any) -> ProviderSpec:
    """The ``provider:`` part of a scenario, as it stands in a file."""
    return msgspec.convert({"script": list(script), **others}, ProviderSpec)


def recorded(
    dialect: str, reply: bytes, *, status: int = 200, headers: dict[str, str] | None = None, stream: bool = True
) -> Recorded:
    """One interaction whose request is ``HELLO``."""
    base = "https://api.example" + ("" if dialect == "anthropic" else "/v1")
    messages = [{"role": "user", "content": "Hello"}]
    kind = "text/event-stream" if stream and status == 200 else "application/json"
    return Recorded(
        method="POST",
        host="api.example",
        path=base.removeprefix("https://api.example") + ENDPOINTS[dialect],
        base_url=base,
        dialect=dialect,
        body={"model": "m", "stream": stream, ("input" if dialect == "openai-responses" else "messages"): messages},
        status=status,
        reason="",
        headers=tuple({"content-type": kind, **(headers or {})}.items()),
        reply=reply,
    )


def provider(dialect: str, reply: bytes, *, cut: StreamFault | None = None, **how: Any) -> CassetteProvider:
    """The adapter of ``dialect``, answered with ``reply``."""
    cassette = Cassette("in memory", (recorded(dialect, reply, **how),))
    return CassetteProvider(cassette, match="projection", fault=cut)


def sse(*events: Any, names: bool = True) -> bytes:
    """An event stream; text stands for itself, so that a test can break it."""
    return b"".join(_event(event, names) for event in events)


def _event(event: Any, names: bool) -> bytes:
    data = event if isinstance(event, str) else json.dumps(event)
    name = event.get("type") if isinstance(event, dict) and names else None
    return (
        f"event: {name}\n" if name else "event: message_delta\n" if names else ""
    ).encode() + f"data: {data}\n\n".encode()
