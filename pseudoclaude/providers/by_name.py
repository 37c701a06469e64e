"""The SDK adapters by the name of their dialect, imported when one is asked for.

An SDK takes a second or two to import, and a program that lists sessions, or replays a script, needs none of them.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any, Protocol, cast

from pseudoclaude.ports import Provider

ADAPTERS: dict[str, str] = {
    "anthropic": "pseudoclaude.providers.anthropic:AnthropicProvider",
    "openai-chat": "pseudoclaude.providers.openai_chat:OpenAIChatProvider",
    "openai-responses": "pseudoclaude.providers.openai_responses:OpenAIResponsesProvider",
}


class Adapter(Provider, Protocol):
    """A provider that holds connections."""

    def close(self) -> None: ...


def make_adapter(dialect: str, model: str, **options: Any) -> Adapter:
    """The adapter of one API.

    ``options`` are those that all adapters share (``api_key``, ``base_url``, ``http_client``, ``timeout``, ``stream``, ``options``) and
    the adapter's own.  Raises ``KeyError`` for a dialect that is none of ``ADAPTERS``.
    """
    return cast(Adapter, resolve_name(ADAPTERS[dialect])(model, **options))
