"""What the three adapters share: reading a stream to its end, and turning an SDK's exceptions into ours.

Promise: text that arrived is never lost.  A stream that stops early, for whatever reason, raises ``StreamInterrupted`` with the text
so far, or the plain failure when no text had arrived.  An exception of a transport that is no HTTP error (a recording that does not
match, a bug in a test) travels as itself: the SDKs would wrap it as a connection error, and it would be retried.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import httpx2
from msgspec.structs import replace

from pseudoclaude.errors import (
    AuthenticationFailed,
    InvalidRequest,
    ProviderError,
    ProviderUnavailable,
)
from pseudoclaude.ports import Reply, ToolSpec
from pseudoclaude.providers.failures import interrupted, provider_failure
from pseudoclaude.providers.wire import wire_name

UNSENDABLE = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)
"""Failures before anything was sent, which no retry mends."""


class SdkErrors(NamedTuple):
    """The exception classes of one SDK, by role."""

    root: type[Exception]
    api: type[Exception]
    status: type[Exception]
    connection: type[Exception]
    timeout: type[Exception]

    @property
    def of_request(self) -> tuple[type[Exception], ...]:
        """What sending a request may raise."""
        return (self.root, httpx2.HTTPError, httpx2.StreamError)

    @property
    def of_reading(self) -> tuple[type[Exception], ...]:
        """What reading a reply may raise as well: a body or event is not JSON, or not what the API promises."""
        return (*self.of_request, ValueError, KeyError, TypeError, AttributeError)


class Where(NamedTuple):
    """Which API and model a failure is about."""

    api: str
    model: str

    def __str__(self) -> str:
        return f"{self.api}, {self.model}"


class MalformedReply(ValueError):
    """A reply that does not have the shape the API promises.  Never leaves the adapters."""


class Accumulator(Protocol):
    """A reply being read.  ``done`` says that nothing more is awaited, ``may_end`` that an end here is no cut."""

    @property
    def done(self) -> bool: ...
    @property
    def may_end(self) -> bool: ...
    def feed(self, event: Mapping[str, Any]) -> str:
        """Take one event; the text in it, or ``""``."""
        ...

    def take_whole(self, body: Any) -> None:
        """Take the JSON body of a reply that was not streamed."""
        ...

    def reply(self, asked_model: str) -> Reply:
        """The canonical reply.  Call it at the end."""
        ...


def read_whole(
    body: bytes, reply: Accumulator, sdk: SdkErrors, on_text: Callable[[str], None] | None, where: Where
) -> Reply:
    """The reply in one JSON body; its text goes to ``on_text`` at once."""
    try:
        reply.take_whole(json.loads(body))
        answer = reply.reply(where.model)
    except sdk.of_reading as error:
        raise as_ours(error, sdk, str(where)) from error
    if on_text is not None and answer.message.content:
        on_text(answer.message.content)
    return answer


def read_stream(
    events: Iterable[Any],
    reply: Accumulator,
    sdk: SdkErrors,
    on_text: Callable[[str], None] | None,
    where: Where,
) -> Reply:
    """The reply of a stream read until it is done.  ``events`` are the SDK's own objects; each is fed as the JSON it came from."""
    iterator = iter(events)
    text: list[str] = []
    while not reply.done:
        try:
            piece = reply.feed(_json_value(next(iterator)))
        except StopIteration:
            if reply.may_end:
                break
            cut = ProviderUnavailable(
                "The stream ended before the reply was complete", retryable=True, where=str(where)
            )
            raise interrupted("".join(text), cut) from None
        except ProviderError as failure:
            raise interrupted("".join(text), failure) from failure
        except sdk.of_reading as error:
            raise interrupted("".join(text), as_ours(error, sdk, str(where))) from error
        if piece:
            text.append(piece)
            if on_text is not None:
                on_text(piece)
    try:
        return reply.reply(where.model)
    except sdk.of_reading as error:
        raise interrupted("".join(text), as_ours(error, sdk, str(where))) from error


def as_ours(error: Exception, sdk: SdkErrors, where: str) -> ProviderError:
    """The error a caller should see.  Raises the cause itself when a transport failed for a reason that is not the network."""
    if isinstance(error, sdk.status):
        return provider_failure(error.status_code, error.body, error.response.headers, where=where)  # type: ignore[attr-defined]
    if isinstance(error, (sdk.timeout, httpx2.TimeoutException)):
        return ProviderUnavailable(
            "The provider did not answer in time",
            retryable=True,
            where=where,
            do_next="Try again, or raise request_timeout_seconds",
        )
    if isinstance(error, sdk.connection) and not isinstance(error.__cause__, httpx2.HTTPError):
        if error.__cause__ is not None:
            raise error.__cause__
        return _broken(error, where)
    if isinstance(error, (sdk.connection, httpx2.HTTPError, httpx2.StreamError)):
        cause = error if isinstance(error, httpx2.HTTPError) else error.__cause__ or error
        return _unsendable(cause, where) if isinstance(cause, UNSENDABLE) else _broken(cause, where)
    if isinstance(error, sdk.api):
        body = error.body  # type: ignore[attr-defined]
        return provider_failure(200, body or {"message": str(error)}, {}, where=where)
    if isinstance(error, sdk.root):
        return _unsendable(error, where)
    return ProviderUnavailable(f"The provider's reply could not be read: {error!r}", retryable=True, where=where)


def with_tool_names(reply: Reply, tools: Sequence[ToolSpec]) -> Reply:
    """``reply`` with calls under the tools' own names, where the API knows a tool by another one."""
    names = {wire_name(tool.name): tool.name for tool in tools}
    calls = reply.message.tool_calls
    if all(names.get(call.name, call.name) == call.name for call in calls):
        return reply
    renamed = tuple(replace(call, name=names.get(call.name, call.name)) for call in calls)
    return replace(reply, message=replace(reply.message, tool_calls=renamed))


def missing_key(variable: str, where: str) -> AuthenticationFailed:
    """No key at all; nothing was sent."""
    return AuthenticationFailed(
        "There is no API key", where=where, still_true="Nothing was sent", do_next=f"Set {variable} or pass api_key"
    )


def check_key(key: str | None, where: str) -> None:
    """Refuse a key that no HTTP header can carry, before the SDK fails on it with an encoding error."""
    if key and not (key.isascii() and key.isprintable()):
        raise AuthenticationFailed(
            "The API key holds characters that no key has",
            where=where,
            still_true="Nothing was sent",
            do_next="Check that it was copied whole and without line breaks",
        )


def _unsendable(error: BaseException, where: str) -> InvalidRequest:
    return InvalidRequest(
        f"The request could not be made: {error}",
        where=where,
        still_true="Nothing was sent",
        do_next="Check the base URL",
    )


def _broken(error: BaseException, where: str) -> ProviderUnavailable:
    reason = str(error) or type(error).__name__
    return ProviderUnavailable(
        f"The connection to the provider failed: {reason}",
        retryable=True,
        where=where,
        do_next="Check the network and the base URL",
    )


def _json_value(event: Any) -> Mapping[str, Any]:
    to_dict = getattr(event, "to_dict", None)
    if to_dict is None:
        raise MalformedReply(f"an event of the stream is {type(event).__name__}, not an object")
    value: Mapping[str, Any] = to_dict(mode="json", warnings=False)
    return value
