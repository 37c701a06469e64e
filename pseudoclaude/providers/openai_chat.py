"""OpenAI Chat Completions on the official SDK, streaming or not; the SDK's own retries are off.

Also what compatible servers speak, so it reads tolerantly: a first chunk without choices (Azure), a usage chunk without choices at
the end, several choices of which the first counts, members we do not know.  The finish reason is not believed alone: tool calls come
with ``stop``, and a refusal is ``stop`` with null content and its text elsewhere.

An error chunk inside a stream is the end for us, although the API sends a usage chunk of zeros and ``[DONE]`` after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import httpx2
import msgspec

from pseudoclaude.messages import Message, Native, Stop, ToolCall
from pseudoclaude.ports import Reply, Request, ToolSpec
from pseudoclaude.providers.failures import provider_failure
from pseudoclaude.providers.openai_sdk import ERRORS, Connection, usage_value
from pseudoclaude.providers.sdk import MalformedReply, Where, as_ours, read_stream, read_whole, with_tool_names
from pseudoclaude.providers.wire import to_wire, wire_name

STOPS: dict[str, Stop] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


class OpenAIChatProvider:
    """``ports.Provider`` for Chat Completions.

    ``options`` are further members of the request body.  ``output_limit`` is the member that carries ``max_tokens``: the newer
    name, or the older one for servers that know only that.  Raises the classes under ``errors.ProviderError``.
    """

    dialect = "openai-chat"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        http_client: httpx2.Client | None = None,
        timeout: float = 600.0,
        stream: bool = True,
        options: Mapping[str, Any] | None = None,
        output_limit: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens",
    ) -> None:
        self.model = model
        self._stream = stream
        self._options = dict(options or {})
        self._output_limit = output_limit
        self._where = Where("OpenAI Chat Completions", model)
        self._connection = Connection(
            api_key=api_key, base_url=base_url, http_client=http_client, timeout=timeout, where=str(self._where)
        )

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        """Send ``request`` once.  Text is handed to ``on_text`` as it arrives; without streaming, once, whole."""
        return with_tool_names(self._answer(request, on_text), request.tools)

    def close(self) -> None:
        """Let go of the connections.  The provider can not be used afterwards."""
        self._connection.close()

    def _answer(self, request: Request, on_text: Callable[[str], None] | None) -> Reply:
        completions = self._connection.client().chat.completions
        received = ReceivedCompletion(str(self._where))
        body = self._body(request)
        try:
            if self._stream:
                with completions.create(**body, stream=True, stream_options={"include_usage": True}) as events:
                    return read_stream(events, received, ERRORS, on_text, self._where)
            answer = completions.with_raw_response.create(**body)
            return read_whole(answer.http_response.content, received, ERRORS, on_text, self._where)
        except ERRORS.of_request as error:
            raise as_ours(error, ERRORS, str(self._where)) from error

    def _body(self, request: Request) -> dict[str, Any]:
        messages = to_wire("openai-chat", request.messages)
        if request.system:
            messages = [{"role": "system", "content": request.system}, *messages]
        body: dict[str, Any] = {"model": self.model, "messages": messages, self._output_limit: request.max_tokens}
        if request.tools:
            body["tools"] = [tool_wire(tool) for tool in request.tools]
        if self._options:
            body["extra_body"] = self._options
        return body


def tool_wire(tool: ToolSpec) -> dict[str, Any]:
    function = {
        "name": wire_name(tool.name),
        "description": tool.description,
        "parameters": msgspec.to_builtins(tool.parameters),
    }
    return {"type": "function", "function": function}


class ReceivedCompletion:
    """The first choice of one reply while it arrives."""

    def __init__(self, where: str) -> None:
        self.done = False  # what ends a stream is its end: usage follows the finish reason
        self._where = where
        self._model = ""
        self._finish: str | None = None
        self._usage: Mapping[str, Any] | None = None
        self._message: dict[str, Any] = {}

    @property
    def may_end(self) -> bool:
        return self._finish is not None

    def take_whole(self, body: Any) -> None:
        if isinstance(body, dict) and body.get("error"):
            raise provider_failure(200, body, {}, where=self._where)
        choices = body.get("choices") if isinstance(body, dict) else None
        if not choices:
            raise MalformedReply("the body has no choices")
        self._model = body.get("model") or ""
        self._usage = body.get("usage")
        self._finish = choices[0].get("finish_reason")
        if "message" not in choices[0] and not self._finish:
            raise MalformedReply("the choice has no message")
        self._message = dict(choices[0].get("message") or {})  # Azure sends none when its filter kept the reply back

    def feed(self, event: Mapping[str, Any]) -> str:
        self._model = event.get("model") or self._model
        self._usage = event.get("usage") or self._usage
        text = ""
        for choice in event.get("choices") or ():
            if choice.get("index", 0) == 0:
                self._finish = choice.get("finish_reason") or self._finish
                text += self._grow(choice.get("delta") or {})
        return text

    def reply(self, asked_model: str) -> Reply:
        message = {key: value for key, value in self._message.items() if value not in (None, "", [], {})}
        calls = tuple(
            ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in _completed(message.get("tool_calls") or [])
        )
        refusal = message.get("refusal") or ""
        text = (message.get("content") or "") + refusal
        model = self._model or asked_model
        message["role"] = "assistant"
        same = _canonical(text, calls) == message
        native = None if same else Native("openai", "chat", model, message)
        stop: Stop | None = "refusal" if refusal else "tool_use" if calls else STOPS.get(self._finish or "")
        if calls and self._finish in ("length", "content_filter"):
            stop = STOPS[self._finish]  # the last call may be cut off
        return Reply(
            Message("assistant", text, calls, native=native, stop=stop),
            usage_value(self._usage, "prompt_tokens", "completion_tokens"),
            model,
        )

    def _grow(self, delta: Mapping[str, Any]) -> str:
        for key, value in delta.items():
            if key == "tool_calls":
                self._grow_calls(value or [])
            elif key != "role" and value is not None:
                old = self._message.get(key)
                self._message[key] = old + value if isinstance(old, str) and isinstance(value, str) else value
        return (delta.get("content") or "") + (delta.get("refusal") or "")

    def _grow_calls(self, pieces: list[dict[str, Any]]) -> None:
        calls: list[dict[str, Any]] = self._message.setdefault("tool_calls", [])
        for piece in pieces:
            position = piece.get("index", len(calls))
            if position > len(calls):
                raise MalformedReply(f"tool call {position} starts where {len(calls)} was due")
            if position == len(calls):
                calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
            call, function = calls[position], piece.get("function") or {}
            call["id"] = piece.get("id") or call["id"]
            name = function.get("name") or ""
            call["function"]["name"] += (
                name if name != call["function"]["name"] else ""
            )  # sent again, not a second half
            call["function"]["arguments"] += function.get("arguments") or ""
            call.update({key: value for key, value in piece.items() if key not in ("index", "id", "function")})


def _completed(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The function calls, in place, with what a server left out and needs to see again: an id, and JSON where it sent no text."""
    functions = [call for call in calls if "function" in call]
    for position, call in enumerate(functions):
        call["id"] = call.get("id") or f"call_{position}"
        call["function"]["arguments"] = call["function"].get("arguments") or "{}"
    return functions


def _canonical(text: str, calls: tuple[ToolCall, ...]) -> dict[str, Any]:
    """The message that says no more than the canonical form does."""
    message: dict[str, Any] = {"role": "assistant"}
    if text:
        message["content"] = text
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
    return message
