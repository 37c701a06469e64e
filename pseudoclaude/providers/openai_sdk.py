"""What the two OpenAI adapters share: the client, its error classes, and how its usage is counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
import openai

from pseudoclaude.messages import Usage
from pseudoclaude.providers.sdk import SdkErrors, check_key, missing_key

ERRORS = SdkErrors(
    root=openai.OpenAIError,
    api=openai.APIError,
    status=openai.APIStatusError,
    connection=openai.APIConnectionError,
    timeout=openai.APITimeoutError,
)


class Connection:
    """How to reach the API.  The client is made at the first request, since this SDK refuses to be made without a key."""

    def __init__(
        self,
        *,
        api_key: str | None,
        base_url: str | None,
        http_client: httpx2.Client | None,
        timeout: float,
        where: str,
    ) -> None:
        self._api_key = api_key
        self._base_url = base_url
        self._http_client = http_client
        self._timeout = timeout
        self._where = where
        self._client: openai.OpenAI | None = None

    def client(self) -> openai.OpenAI:
        """Raises ``AuthenticationFailed`` when there is no key."""
        if self._client is None:
            try:
                self._client = openai.OpenAI(
                    api_key=self._api_key,
                    base_url=self._base_url,
                    http_client=self._http_client,
                    timeout=self._timeout,
                    max_retries=0,
                )
            except openai.OpenAIError:
                raise missing_key("OPENAI_API_KEY", self._where) from None
            check_key(self._client.api_key, self._where)
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def usage_value(usage: Mapping[str, Any] | None, input_name: str, output_name: str) -> Usage | None:
    """OpenAI counts cached tokens inside the input; ours are apart."""
    if not usage:
        return None
    details = usage.get(f"{input_name}_details") or {}
    read, written = details.get("cached_tokens") or 0, details.get("cache_write_tokens") or 0
    total = usage.get(input_name) or 0
    return Usage(
        max(0, total - read - written),
        usage.get(output_name) or 0,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
