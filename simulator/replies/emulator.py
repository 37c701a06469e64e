"""The three provider APIs over real HTTP on loopback, answering from a script: ``pseudosim serve``.

Built on Starlette and uvicorn.  Every request is judged by ``protocol.check`` (profile ``firm``) before the script is asked: a history
that a provider would refuse gets that provider's 400, and uses up no entry.  Streams and plain JSON, refusals, cut connections and
timeouts come from the same script form as in memory.  Nothing in a response depends on the clock, so a recording of it is
reproducible.

A request says nothing of its purpose on the wire; a summary is known by the prompt at its end and a memory update by its system
prompt, and then the queue of that purpose answers.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pseudoclaude.compact.summarize import SUMMARY_PROMPT
from pseudoclaude.memory.extraction import SYSTEM as MEMORY_SYSTEM
from pseudoclaude.messages import Usage
from pseudoclaude.protocol import check
from simulator.replies.errors import ScriptExhausted
from simulator.replies.refusals import Refusal, error_events, malformed_refusal, protocol_refusal, refusal
from simulator.replies.script import Fail, ProviderSpec, Purpose, ScriptEntry, in_disorder
from simulator.replies.scripted import Queues
from simulator.replies.wire_events import Event, Numbered, plain_body, stream_events

ROUTES: dict[str, str] = {
    "/v1/messages": "anthropic",
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
}
BASE_PATHS: dict[str, str] = {"anthropic": "", "openai-chat": "/v1", "openai-responses": "/v1"}
"""What the SDK of each dialect wants behind the server's address."""
HISTORY_MEMBER = {"anthropic": "messages", "openai-chat": "messages", "openai-responses": "input"}
SHUTDOWN_SECONDS = 1
"""How long a stop waits for a client that is waiting for a scripted timeout."""
BYTES_PER_TOKEN = 4
"""For replies whose script gives no usage."""


class ConnectionCut(Exception):
    """Raised inside a response so that the server drops the connection; the script wanted it."""


class Emulator:
    """The application and what it saw.  ``requests_checked`` counts every request that was judged, ``violations`` what was refused."""

    def __init__(self, spec: ProviderSpec) -> None:
        self._queues = Queues(spec)
        self._lock = threading.Lock()
        self._model = spec.model
        self.requests_checked = 0
        self.violations: list[str] = []
        self.exhausted: list[str] = []
        self.failures: list[str] = []
        """Exceptions of the emulator itself; a test that looks here finds none."""
        routes = [Route(path, self._endpoint, methods=["POST"]) for path in ROUTES]
        handlers = {HTTPException: _not_found, Exception: self._failed}
        self.app = Starlette(routes=routes, exception_handlers=handlers)

    @property
    def remaining(self) -> int:
        """Script entries not used so far."""
        return self._queues.remaining

    async def _endpoint(self, request: Request) -> Response:
        dialect = ROUTES[request.url.path]
        raw = await request.body()
        try:
            body = json.loads(raw)
            history = _history(dialect, body)
        except (ValueError, KeyError, TypeError) as error:
            return _refused(malformed_refusal(dialect, f"the request body cannot be read: {error}"))
        problem = self._judge(dialect, body, history, request.headers)
        if problem is not None:
            return _refused(problem)
        try:
            entry, number = self._take(_purpose(dialect, body, history))
        except ScriptExhausted as error:
            self.exhausted.append(str(error))
            return _refused(refusal(dialect, Fail(status=500, message=str(error), should_retry=False)))
        usage = entry.count or _estimate(raw, entry)
        reply = Numbered(entry, number, self._model or str(body.get("model", "")), usage)
        return await _respond(dialect, reply, body, request)

    async def _failed(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, (ClientDisconnect, ConnectionCut)):
            self.failures.append(f"{request.url.path}: {error!r}")
        return _refused(refusal(ROUTES.get(request.url.path, "anthropic"), Fail(status=500, message=repr(error))))

    def _judge(
        self, dialect: str, body: Mapping[str, Any], history: list[Any], headers: Mapping[str, str]
    ) -> Refusal | None:
        betas = [beta.strip() for beta in headers.get("anthropic-beta", "").split(",") if beta.strip()]
        context: dict[str, Any] = {"tools": body.get("tools") or [], "betas": betas}
        if dialect == "anthropic" and isinstance(body.get("thinking"), Mapping):
            context["thinking"] = body["thinking"].get("type", "disabled")
        if dialect == "openai-responses":
            context["store"] = body.get("store")
        violations = check(dialect, history, profile="firm", context=context)
        with self._lock:
            self.requests_checked += 1
            self.violations += [f"{found.rule} at {found.path}: {found.message}" for found in violations]
        return protocol_refusal(dialect, violations) if violations else None

    def _take(self, purpose: Purpose) -> tuple[ScriptEntry, int]:
        with self._lock:
            number = self._queues.taken
            return self._queues.take(purpose), number


@contextmanager
def running_emulator(spec: ProviderSpec, *, port: int = 0) -> Iterator[RunningEmulator]:
    """Serve ``spec`` on loopback in a thread of its own until the block ends.  Port 0 takes any free one."""
    with _listener(port) as listener:
        emulator = Emulator(spec)
        server = uvicorn.Server(_config(emulator.app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="emulator", daemon=True)
        thread.start()
        try:
            yield RunningEmulator(emulator, listener.getsockname()[1])
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


class RunningEmulator:
    """A served emulator.  ``base_url`` is the server's address; ``url(dialect)`` is what that API's SDK takes as base URL."""

    def __init__(self, emulator: Emulator, port: int) -> None:
        self.emulator = emulator
        self.base_url = f"http://127.0.0.1:{port}"

    def url(self, dialect: str) -> str:
        return self.base_url + BASE_PATHS[dialect]


def serve(spec: ProviderSpec, port: int, on_ready: Callable[[RunningEmulator], None]) -> None:
    """Serve ``spec`` on loopback until Ctrl-C; ``on_ready`` is told where, when the port is open.  Raises ``OSError`` for a port that is taken.

    SIGTERM ends the process, as it does any, once the server has let go of its connections.
    """
    with _listener(port) as listener:
        emulator = Emulator(spec)
        on_ready(RunningEmulator(emulator, listener.getsockname()[1]))
        try:
            uvicorn.Server(_config(emulator.app)).run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn has shut down and passes the signal on; here it means that all is done
            return


def _listener(port: int) -> socket.socket:
    """A listening socket on loopback.  Named as TCP, so that asyncio sends small writes at once instead of waiting for an ACK."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def _config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # a cut is an exception inside the application; an unexpected one stands in ``Emulator.failures``
        access_log=False,
        date_header=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


# --- requests --------------------------------------------------------------------------------------------------


def _history(dialect: str, body: Any) -> list[Any]:
    """The wire messages of a body.  Raises ``ValueError`` or ``KeyError`` for a body without any."""
    history = body[HISTORY_MEMBER[dialect]]
    if dialect == "openai-responses" and isinstance(history, str):
        return [{"role": "user", "content": history}]
    if not isinstance(history, list):
        raise ValueError(f"{HISTORY_MEMBER[dialect]} is no list")
    return history


def _purpose(dialect: str, body: Mapping[str, Any], history: list[Any]) -> Purpose:
    if SUMMARY_PROMPT in _words(history[-1]):
        return "summary"
    system = body.get("system") or body.get("instructions") or (history[0] if dialect == "openai-chat" else "")
    return "memory" if MEMORY_SYSTEM in _words(system) else "turn"


def _words(value: Any) -> str:
    """All text below a JSON value, as one."""
    if isinstance(value, str):
        return value
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return "\n".join(map(_words, items))


def _estimate(raw: bytes, entry: ScriptEntry) -> Usage:
    said = len(entry.spoken.encode()) + sum(len(call.arguments) for call in entry.calls)
    return Usage(max(1, len(raw) // BYTES_PER_TOKEN), max(1, said // BYTES_PER_TOKEN))


# --- responses -------------------------------------------------------------------------------------------------


async def _respond(dialect: str, reply: Numbered, body: Mapping[str, Any], request: Request) -> Response:
    fail = reply.entry.fail
    if fail is not None and fail.kind == "timeout":
        await _wait_for_disconnect(request)
        raise ClientDisconnect
    if fail is not None and fail.kind == "connection":
        return StreamingResponse(_cut([]), media_type="application/json")
    streams = bool(body.get("stream"))
    whole = fail is None or fail.stop is not None or fail.disorders
    if fail is not None and not whole and (fail.cut_after_events is None or (fail.status and not streams)):
        return _refused(refusal(dialect, fail))
    if streams:
        wants_usage = dialect != "openai-chat" or bool((body.get("stream_options") or {}).get("include_usage"))
        return StreamingResponse(_streamed(dialect, reply, wants_usage), media_type="text/event-stream")
    if fail is not None and fail.cut_after_events is not None:
        return StreamingResponse(_cut([]), media_type="application/json")
    try:
        return JSONResponse(plain_body(dialect, reply))
    except ValueError as error:
        return _refused(refusal(dialect, Fail(status=500, message=str(error), should_retry=False)))


def _streamed(dialect: str, reply: Numbered, wants_usage: bool) -> AsyncIterator[bytes]:
    """The events of a reply, with what its entry does to them."""
    events = stream_events(dialect, reply)
    if not wants_usage:
        events = [event for event in events if not (isinstance(event.data, dict) and event.data.get("choices") == [])]
    fail = reply.entry.fail
    if fail is None:
        return _all(events)
    cut = fail.cut_after_events
    if cut is None or cut >= len(events):
        return _all(in_disorder(fail, events))
    if fail.status is not None:
        return _all(events[:cut] + error_events(dialect, fail))
    return _cut(events[:cut])


async def _all(events: list[Event]) -> AsyncIterator[bytes]:
    for event in events:
        yield event.encode()


async def _cut(events: list[Event]) -> AsyncIterator[bytes]:
    for event in events:
        yield event.encode()
    raise ConnectionCut


async def _wait_for_disconnect(request: Request) -> None:
    while not await request.is_disconnected():
        await request.receive()


def _refused(answer: Refusal) -> JSONResponse:
    return JSONResponse(answer.body, status_code=answer.status, headers=dict(answer.headers))


async def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    known = ", ".join(f"POST {path}" for path in ROUTES)
    sentence = f"{request.method} {request.url.path} is not served; served are {known}"
    return _refused(refusal("anthropic", Fail(status=max(400, status), message=sentence)))
