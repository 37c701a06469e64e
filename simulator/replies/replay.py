"""A cassette as a provider: the real SDK adapter of the recorded API over the replay transport."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2

from pseudoclaude.ports import Reply, Request
from pseudoclaude.providers.by_name import ADAPTERS, make_adapter
from simulator.replies.cassettes import Cassette, Recorded, load_cassette
from simulator.replies.errors import CassetteUnreadable
from simulator.replies.script import StreamFault
from simulator.replies.transport import Match, ReplayTransport

REPLAY_KEY = "replay-needs-no-key"


class CassetteProvider:
    """``ports.Provider`` that answers from a cassette.  Streams where the first recording streamed."""

    def __init__(
        self,
        cassette: Cassette,
        *,
        dialect: str | None = None,
        model: str | None = None,
        match: Match = "strict",
        fault: StreamFault | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        first = cassette.interactions[0]
        chosen = dialect or first.dialect
        if chosen not in ADAPTERS or first.dialect != chosen:
            raise CassetteUnreadable(
                f"The cassette holds {first.dialect or 'an endpoint that is no model request'}, asked for is {chosen}",
                where=f"{cassette.path}, {first.path}",
                still_true="Nothing was replayed",
                do_next=f"Use one of {', '.join(ADAPTERS)}",
            )
        self.dialect: str = chosen
        self.model = model or str(first.body.get("model", ""))
        self._transport = ReplayTransport(cassette, match=match, fault=fault)
        self._adapter = make_adapter(
            chosen,
            self.model,
            api_key=REPLAY_KEY,
            base_url=first.base_url,
            http_client=httpx2.Client(transport=self._transport, trust_env=False),
            stream=bool(first.body.get("stream")),
            options=options,
        )

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        return self._adapter.complete(request, on_text)

    @property
    def remaining(self) -> tuple[Recorded, ...]:
        """Recordings that answered nothing so far."""
        return self._transport.remaining

    @property
    def differences(self) -> tuple[str, ...]:
        """How the requests differed from the recorded ones in what projection matching lets pass."""
        return tuple(self._transport.differences)


def cassette_provider(
    path: str | Path,
    dialect: str | None = None,
    model: str | None = None,
    match: Match = "strict",
    fault: StreamFault | None = None,
) -> CassetteProvider:
    """The provider for one file.  Raises ``CassetteUnreadable``; its requests may raise ``CassetteMiss``."""
    return CassetteProvider(load_cassette(path), dialect=dialect, model=model, match=match, fault=fault)
