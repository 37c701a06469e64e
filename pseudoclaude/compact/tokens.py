"""How many tokens a history takes, without asking anyone.

Owns the estimate and its anchor.  The estimate counts UTF-8 bytes of what goes over the wire (role, text, calls, results, or the
provider's own blocks when they are larger) and divides by a ratio from the settings.  The anchor is the provider's own count at
some point of the history; what came after it is estimated and added.

Promises: with an anchor, the cost is that of the messages after it.  An anchor holds only for the history it was taken from: it
remembers the first and the last message it covers as objects, and a replaced history has others.

Refuses to guess per model: one ratio, and the anchor corrects it after the first reply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from pseudoclaude.messages import History, Message
from pseudoclaude.ports import ToolSpec
from pseudoclaude.text import size

BYTES_PER_TOKEN = 3.5


class Prefix(NamedTuple):
    """The first ``length`` messages of a history, recognised by the objects at its two ends; no copy, no comparison of text."""

    length: int
    first: Message | None
    last: Message | None

    @classmethod
    def of(cls, messages: History, length: int) -> Prefix:
        return cls(length, messages[0], messages[length - 1]) if length else cls(0, None, None)

    def begins(self, messages: History) -> bool:
        """Whether ``messages`` still starts with this prefix."""
        length = self.length
        if length == 0:
            return True
        return len(messages) >= length and messages[0] is self.first and messages[length - 1] is self.last


class Anchor(NamedTuple):
    """``tokens`` is what a request with ``prefix`` takes, system prompt and tools included."""

    tokens: int
    prefix: Prefix


def message_bytes(message: Message) -> int:
    """UTF-8 bytes of one message as a request carries it."""
    total = len(message.role) + size(message.content)
    for call in message.tool_calls:
        total += size(call.id) + size(call.name) + size(call.arguments)
    if message.tool_result is not None:
        total += size(message.tool_result.call_id) + size(message.tool_result.content)
    if message.native is not None:
        total = max(total, len(msgspec.json.encode(message.native.payload)))
    return total


def estimate(messages: Sequence[Message], bytes_per_token: float = BYTES_PER_TOKEN) -> int:
    """Estimated tokens of ``messages`` alone, without system prompt and tools."""
    return tokens_of_bytes(sum(map(message_bytes, messages)), bytes_per_token)


def estimate_with_anchor(
    messages: History, anchor: Anchor | None, bytes_per_token: float = BYTES_PER_TOKEN, *, overhead_tokens: int = 0
) -> int:
    """Tokens of the next request with ``messages``: the anchor plus an estimate of what came after it.

    Without an anchor, or with one of another history, all of it is estimated and ``overhead_tokens`` (system prompt, tools) added.
    """
    if anchor is None or not anchor.prefix.begins(messages):
        return overhead_tokens + estimate(messages, bytes_per_token)
    if anchor.prefix.length == len(messages):
        return anchor.tokens
    return anchor.tokens + estimate(messages[anchor.prefix.length :], bytes_per_token)


def overhead(system: str, tools: Sequence[ToolSpec], bytes_per_token: float = BYTES_PER_TOKEN) -> int:
    """Estimated tokens of what every request carries beside its messages."""
    tools_bytes = len(msgspec.json.encode(list(tools))) if tools else 0
    return tokens_of_bytes(size(system) + tools_bytes, bytes_per_token)


def tokens_of_bytes(count: int, bytes_per_token: float) -> int:
    return math.ceil(count / bytes_per_token)
