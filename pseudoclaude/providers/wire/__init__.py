"""Canonical history to the wire: one total projection a dialect, without any SDK.

``to_wire`` makes any repaired history valid for its dialect and leaves the canonical record alone.  It gives messages only: where the
system prompt and the tools go is the adapter's part.  Declared tools need the same names as the calls in the history: ``wire_name``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pseudoclaude.messages import Message
from pseudoclaude.providers.wire import anthropic, compatible, openai_chat, openai_responses
from pseudoclaude.providers.wire.aliases import wire_name

Projection = Callable[[Sequence[Message]], list[dict[str, Any]]]

PROJECTIONS: Mapping[str, Projection] = {
    "anthropic": anthropic.to_wire,
    "openai-chat": openai_chat.to_wire,
    "openai-responses": openai_responses.to_wire,
    "deepseek": compatible.reasoning,
    "kimi": compatible.reasoning,
    "mistral": compatible.mistral,
    "gemini": compatible.gemini,
    "vllm": compatible.chat_template,
    "ollama": openai_chat.to_wire,
    "bedrock-converse": compatible.bedrock,
}

__all__ = ["PROJECTIONS", "to_wire", "wire_name"]


def to_wire(dialect: str, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The wire messages of ``dialect`` (``input`` items for ``openai-responses``).  Raises ``ValueError`` for an unknown dialect."""
    projection = PROJECTIONS.get(dialect)
    if projection is None:
        raise ValueError(f"no projection for dialect {dialect!r}; known are {', '.join(PROJECTIONS)}")
    return projection(messages)
