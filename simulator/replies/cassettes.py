"""Cassettes: vcrpy's files as frozen values, read without vcrpy's patching.

A cassette that cannot be read is an error that names the file: vcrpy itself takes a missing or empty file for a new cassette, and a
``.yaml.gz`` for an empty one.  Bodies come decoded (``content-encoding: gzip`` undone, also where the header claims it of a plain
body), and headers that would no longer be true of them are gone.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml
from vcr.serialize import deserialize  # type: ignore[import-untyped]
from vcr.serializers import yamlserializer  # type: ignore[import-untyped]

from simulator.replies.errors import CassetteUnreadable

GZIP_MAGIC = b"\x1f\x8b"
UNTRUE_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection"})
ENDPOINTS: dict[str, str] = {
    "anthropic": "/v1/messages",
    "openai-chat": "/chat/completions",
    "openai-responses": "/responses",
}
"""How the path of each API ends."""


class Recorded(NamedTuple):
    """One request and its response.  ``body`` is the request's JSON value (None when it is none), ``reply`` the response's bytes."""

    method: str
    host: str
    path: str
    base_url: str
    dialect: str | None
    body: Any
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    reply: bytes

    @property
    def streams(self) -> bool:
        """Whether the response is an event stream; its content type may have been scrubbed."""
        kind = dict(self.headers).get("content-type", "")
        return "event-stream" in kind or (self.status == 200 and self.reply.lstrip().startswith((b"data:", b"event:")))


class Cassette(NamedTuple):
    """A whole file, in recorded order."""

    path: str
    interactions: tuple[Recorded, ...]

    def only(self, *positions: int) -> Cassette:
        """The same file reduced to some interactions."""
        return Cassette(self.path, tuple(self.interactions[position] for position in positions))


def load_cassette(path: str | Path) -> Cassette:
    """Read one file.  Raises ``CassetteUnreadable``."""
    name = str(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise _unreadable(f"The cassette cannot be opened: {error.strerror}", name) from None
    if data.startswith(GZIP_MAGIC):
        raise _unreadable("The cassette is compressed", name, "Decompress it: vcrpy would open it as empty")
    if not data.strip():
        raise _unreadable("The cassette is empty", name)
    try:
        requests, responses, *_ = deserialize(data.decode("utf-8"), yamlserializer)
    except (ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise _unreadable(f"The cassette is not what vcrpy writes: {type(error).__name__}: {reason}", name) from None
    if not requests:
        raise _unreadable("The cassette holds no interactions", name)
    try:
        return Cassette(name, tuple(map(_recorded, requests, responses)))
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise _unreadable(
            f"An interaction of the cassette cannot be used: {type(error).__name__}: {error}", name
        ) from None


def dialect_of(path: str) -> str | None:
    """The API a path belongs to; None for another endpoint (token counts, compaction)."""
    return next((dialect for dialect, end in ENDPOINTS.items() if path.endswith(end)), None)


def _unreadable(what: str, name: str, do_next: str = "Record it again, or correct the path") -> CassetteUnreadable:
    return CassetteUnreadable(what, where=name, still_true="Nothing was replayed", do_next=do_next)


def _recorded(request: Any, response: Mapping[str, Any]) -> Recorded:
    parts = urlsplit(request.uri)
    dialect = dialect_of(parts.path)
    status = response["status"]
    head = parts.path.removesuffix(ENDPOINTS[dialect]) if dialect else parts.path
    return Recorded(
        method=request.method,
        host=parts.netloc,
        path=parts.path,
        base_url=f"{parts.scheme}://{parts.netloc}{head}",
        dialect=dialect,
        body=_json_or_none(request.body),
        status=int(status["code"]),
        reason=status.get("message") or "",
        headers=_headers(response["headers"]),
        reply=_decoded(response["body"]["string"]),
    )


def _headers(headers: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for name, values in headers.items():
        if name.lower() not in UNTRUE_HEADERS:
            pairs += [(name.lower(), str(value)) for value in (values if isinstance(values, list) else [values])]
    return tuple(pairs)


def _decoded(body: bytes | str | None) -> bytes:
    data = body.encode("utf-8") if isinstance(body, str) else body or b""
    return gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data


def _json_or_none(body: bytes | None) -> Any:
    try:
        return json.loads(body or b"")
    except ValueError:
        return None
