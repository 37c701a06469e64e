"""Replay: an ``httpx2`` transport that answers from a cassette, under the real SDK.  It never opens a connection.

It stands where the network would, so everything above it is the real client.  vcrpy's own replay patches globally (two threads with
two cassettes disturb each other) and hands over a stream as one chunk; this one is an object of one client and delivers a stream
event by event, so that a fault can fall between any two.

Each recording answers once, the first unused one that matches.  ``strict``: method, host, path and the JSON body are equal.
``projection``: method, host, path and the canonical conversation are; everything else that differs is listed in ``differences``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import httpx2

from pseudoclaude.errors import InvalidMessage
from pseudoclaude.providers.wire import to_wire
from simulator.replies.cassettes import Cassette, Recorded
from simulator.replies.differences import all_differences, first_difference, likeness
from simulator.replies.errors import CassetteMiss
from simulator.replies.projection import Fingerprint, fingerprint, read_history
from simulator.replies.script import StreamFault

Match = Literal["strict", "projection"]


class ReplayTransport(httpx2.BaseTransport):
    """Answers requests from ``cassette``.  Raises ``CassetteMiss`` for one that nothing recorded answers."""

    def __init__(self, cassette: Cassette, *, match: Match = "strict", fault: StreamFault | None = None) -> None:
        self._cassette = cassette
        self._match: Match = match
        self._fault = fault
        self._unused = list(range(len(cassette.interactions)))
        self._answered = 0
        self.differences: list[str] = []
        """What differed in requests that were answered all the same (``projection`` only)."""

    @property
    def remaining(self) -> tuple[Recorded, ...]:
        """Recordings that answered nothing so far, in order."""
        return tuple(self._cassette.interactions[position] for position in self._unused)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        sent = _sent(request)
        position = next((position for position in self._unused if self._answers(position, sent)), None)
        if position is None:
            raise self._miss(sent)
        self._unused.remove(position)
        recorded = self._cassette.interactions[position]
        if self._match == "projection":
            self.differences += [
                f"request {self._answered}: {line}"
                for line in all_differences(_parameters(recorded.body), _parameters(sent.body))
            ]
        fault = self._fault if self._fault is not None and self._fault.request == self._answered else None
        self._answered += 1
        return _response(recorded, request, fault)

    def _answers(self, position: int, sent: Sent) -> bool:
        recorded = self._cassette.interactions[position]
        if (recorded.method, recorded.host, recorded.path) != (sent.method, sent.host, sent.path):
            return False
        if self._match == "strict":
            return not first_difference(recorded.body, sent.body)
        conversation = _conversation(recorded.dialect, recorded.body)
        return conversation is not None and conversation == _conversation(recorded.dialect, sent.body)

    def _miss(self, sent: Sent) -> CassetteMiss:
        interactions = self._cassette.interactions
        nearest = max(range(len(interactions)), key=lambda position: _likeness(interactions[position], sent))
        recorded = interactions[nearest]
        if nearest not in self._unused and self._answers(nearest, sent):
            difference = "it is the same, but it has already answered a request"
        else:
            difference = "the first difference: " + self._first_difference(recorded, sent)
        return CassetteMiss(
            f"No recording answers request {self._answered} ({sent.method} {sent.host}{sent.path})",
            where=self._cassette.path,
            still_true=f"The nearest is interaction {nearest} of {len(interactions)}; {difference}",
            do_next="Record the cassette again, or correct what the request was made from",
        )

    def _first_difference(self, recorded: Recorded, sent: Sent) -> str:
        for name, ours, theirs in (
            ("method", recorded.method, sent.method),
            ("host", recorded.host, sent.host),
            ("path", recorded.path, sent.path),
        ):
            if ours != theirs:
                return f"{name}: recorded {ours}, sent {theirs}"
        if self._match == "projection":
            ours, theirs = (_listed(_conversation(recorded.dialect, body)) for body in (recorded.body, sent.body))
            return first_difference(ours, theirs, "conversation") or "none in the conversation"
        return first_difference(recorded.body, sent.body, "body") or "none"


class Sent(NamedTuple):
    """A request as the SDK made it."""

    method: str
    host: str
    path: str
    body: Any


def _sent(request: httpx2.Request) -> Sent:
    raw = request.read()
    try:
        body = json.loads(raw or b"null")
    except ValueError:
        body = None
    return Sent(request.method, request.url.netloc.decode("ascii"), request.url.path, body)


def _conversation(dialect: str | None, body: Any) -> Fingerprint | None:
    """The fingerprint of a body as our own wire form would spell it, so that only the conversation is compared."""
    if dialect is None or not isinstance(body, Mapping):
        return None
    try:
        spelled = to_wire(dialect, read_history(dialect, body))
    except (InvalidMessage, KeyError, TypeError, AttributeError):  # a body that the provider refused, too
        return None
    return fingerprint(read_history(dialect, {"messages": spelled, "input": spelled}))


def _parameters(body: Any) -> dict[str, Any]:
    return {key: value for key, value in sorted(body.items()) if key not in ("messages", "input", "instructions")}


def _likeness(recorded: Recorded, sent: Sent) -> float:
    place = sum((recorded.method == sent.method, recorded.host == sent.host, recorded.path == sent.path))
    return place + likeness(recorded.body, sent.body)


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


# --- responses -------------------------------------------------------------------------------------------------


def _response(recorded: Recorded, request: httpx2.Request, fault: StreamFault | None) -> httpx2.Response:
    headers = list(recorded.headers)
    if recorded.streams:
        headers = [pair for pair in headers if pair[0] != "content-type"] + [
            ("content-type", "text/event-stream; charset=utf-8")
        ]
        chunks = split_events(recorded.reply)
    else:
        chunks = [recorded.reply]
        if fault is not None and fault.how in ("reset", "end"):
            raise httpx2.ReadError("connection reset by the cassette's fault", request=request)
    return httpx2.Response(
        recorded.status,
        headers=headers,
        stream=EventStream(chunks, fault),
        request=request,
        extensions={"reason_phrase": recorded.reason.encode("ascii", "replace")},
    )


def split_events(body: bytes) -> list[bytes]:
    """An event stream, one chunk an event, each with the blank line that ends it."""
    events: list[bytes] = []
    lines: list[bytes] = []
    for line in body.splitlines(keepends=True):
        lines.append(line)
        if not line.strip(b"\r\n"):
            if any(part.strip() for part in lines):
                events.append(b"".join(lines))
            lines = []
    if any(part.strip() for part in lines):
        events.append(b"".join(lines))
    return events


class EventStream(httpx2.SyncByteStream):
    """Chunks, one by one, with what goes wrong."""

    def __init__(self, chunks: list[bytes], fault: StreamFault | None = None) -> None:
        self._chunks = chunks
        self._fault = fault

    def __iter__(self) -> Iterator[bytes]:
        if self._fault is None:
            yield from self._chunks
            return
        place, how = self._fault.after_events, self._fault.how
        yield from self._chunks[:place]
        if how == "repeat":
            yield from self._chunks[max(0, place - 1) :]
        elif how == "swap":
            yield from reversed(self._chunks[place : place + 2])
            yield from self._chunks[place + 2 :]
        elif how == "reset":
            raise httpx2.RemoteProtocolError("peer closed connection without sending complete message body")
