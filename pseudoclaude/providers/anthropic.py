"""Anthropic Messages on the official SDK, streaming or not; the SDK's own retries are off.

Canonical form: the text blocks joined, the client tool calls with their arguments as the JSON text that streamed (compact JSON where
the API gave an object; ``{}`` where a call without arguments streamed none), the stop reason.  ``native`` holds the blocks as they
came, and only if those three do not say the same: thinking, server tools, citations, a compaction, keys we do not know.

Usage in ``message_delta`` is cumulative and replaces that of ``message_start``; older replies give only the output there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import anthropic
import httpx2
import msgspec

from pseudoclaude.messages import Message, Native, Stop, ToolCall, Usage
from pseudoclaude.ports import Reply, Request, ToolSpec
from pseudoclaude.providers.sdk import (
    MalformedReply,
    SdkErrors,
    Where,
    as_ours,
    check_key,
    missing_key,
    read_stream,
    read_whole,
    with_tool_names,
)
from pseudoclaude.providers.wire import to_wire, wire_name

ERRORS = SdkErrors(
    root=anthropic.AnthropicError,
    api=anthropic.APIError,
    status=anthropic.APIStatusError,
    connection=anthropic.APIConnectionError,
    timeout=anthropic.APITimeoutError,
)
STOPS: dict[str, Stop] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "stop_sequence": "stop_sequence",
    "refusal": "refusal",
    "pause_turn": "pause_turn",
    "compaction": "pause_turn",
}


class AnthropicProvider:
    """``ports.Provider`` for the Messages API.

    ``options`` are further members of the request body (``thinking``, ``temperature``, …).  Raises the classes under
    ``errors.ProviderError``.  A missing key is an ``AuthenticationFailed`` of the first request, so that a program can start
    and list its sessions without one.
    """

    dialect = "anthropic"

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
    ) -> None:
        self.model = model
        self._stream = stream
        self._options = dict(options or {})
        self._where = Where("Anthropic Messages", model)
        self._client = anthropic.Anthropic(
            api_key=api_key, base_url=base_url, http_client=http_client, timeout=timeout, max_retries=0
        )

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        """Send ``request`` once.  Text is handed to ``on_text`` as it arrives; without streaming, once, whole."""
        return with_tool_names(self._answer(request, on_text), request.tools)

    def close(self) -> None:
        """Let go of the connections.  The provider can not be used afterwards."""
        self._client.close()

    def _answer(self, request: Request, on_text: Callable[[str], None] | None) -> Reply:
        check_key(self._client.api_key, str(self._where))
        received = ReceivedMessage()
        try:
            if self._stream:
                with self._client.messages.create(**self._body(request), stream=True) as events:
                    return read_stream(events, received, ERRORS, on_text, self._where)
            answer = self._client.messages.with_raw_response.create(**self._body(request))
            return read_whole(answer.http_response.content, received, ERRORS, on_text, self._where)
        except TypeError as error:  # how this SDK says that it found no credentials
            if "authentication method" not in str(error):
                raise
            raise missing_key("ANTHROPIC_API_KEY", str(self._where)) from None
        except ERRORS.of_request as error:
            raise as_ours(error, ERRORS, str(self._where)) from error

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "messages": to_wire("anthropic", request.messages),
        }
        if request.system:
            body["system"] = request.system
        if request.tools:
            body["tools"] = [tool_wire(tool) for tool in request.tools]
        if self._options:
            body["extra_body"] = self._options
        return body


def tool_wire(tool: ToolSpec) -> dict[str, Any]:
    return {
        "name": wire_name(tool.name),
        "description": tool.description,
        "input_schema": msgspec.to_builtins(tool.parameters),
    }


class ReceivedMessage:
    """One reply while it arrives: an ``Accumulator`` over stream events, or filled at once from a whole body."""

    def __init__(self) -> None:
        self.done = False
        self.may_end = False
        self._model = ""
        self._stop: str | None = None
        self._usage: dict[str, Any] = {}
        self._blocks: list[dict[str, Any]] = []
        self._inputs: dict[int, list[str]] = {}

    def take_whole(self, body: Any) -> None:
        """The body of a reply that was not streamed."""
        if not isinstance(body, dict) or not isinstance(body.get("content"), list):
            raise MalformedReply("the body is no message")
        self._start(body)
        self._blocks = body["content"]
        self.done = True

    def feed(self, event: Mapping[str, Any]) -> str:
        kind = event.get("type")
        if kind == "message_start":
            self._start(event["message"])
        elif kind == "content_block_start":
            return self._open_block(event)
        elif kind == "content_block_delta":
            return self._grow_block(self._block(event), event["index"], event["delta"])
        elif kind == "message_delta":
            self._stop = event["delta"].get("stop_reason") or self._stop
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.done = True
        return ""

    def reply(self, asked_model: str) -> Reply:
        """The canonical reply.  Call when ``done``."""
        self._settle_inputs()
        text = "".join(block.get("text") or "" for block in self._blocks if block.get("type") == "text")
        calls = tuple(
            ToolCall(block["id"], block["name"], self._arguments(index, block))
            for index, block in enumerate(self._blocks)
            if block.get("type") == "tool_use"
        )
        model = self._model or asked_model
        received = [_without_empty(block) for block in self._blocks if block.get("type") != "text" or block.get("text")]
        same = canonical_blocks(text, calls) == received
        native = None if same else Native("anthropic", "messages", model, self._blocks)
        message = Message("assistant", text, calls, native=native, stop=STOPS.get(self._stop or ""))
        return Reply(message, self._usage_value(), model)

    def _start(self, message: Mapping[str, Any]) -> None:
        self._model = message.get("model") or ""
        self._stop = message.get("stop_reason")
        self._count(message.get("usage"))

    def _count(self, usage: Mapping[str, Any] | None) -> None:
        self._usage.update({key: value for key, value in (usage or {}).items() if value is not None})

    def _open_block(self, event: Mapping[str, Any]) -> str:
        if event["index"] != len(self._blocks):
            raise MalformedReply(f"block {event['index']} starts where {len(self._blocks)} was due")
        block = dict(event["content_block"])
        self._blocks.append(block)
        return block.get("text") or "" if block.get("type") == "text" else ""

    def _block(self, event: Mapping[str, Any]) -> dict[str, Any]:
        if not 0 <= event["index"] < len(self._blocks):
            raise MalformedReply(f"a delta for block {event['index']}, which was never started")
        block: dict[str, Any] = self._blocks[event["index"]]
        return block

    def _grow_block(self, block: dict[str, Any], index: int, delta: Mapping[str, Any]) -> str:
        kind = delta.get("type")
        if kind == "input_json_delta":
            self._inputs.setdefault(index, []).append(delta["partial_json"])
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        else:  # text, thinking, signature, compaction, and what comes later: texts grow, other members are set
            for key, value in delta.items():
                if key != "type":
                    old = block.get(key)
                    block[key] = old + value if isinstance(old, str) and isinstance(value, str) else value
        return delta["text"] if kind == "text_delta" else ""

    def _settle_inputs(self) -> None:
        for index, pieces in self._inputs.items():
            streamed = "".join(pieces)
            if not streamed:
                continue  # a call without arguments, or one whose block began with all of them
            try:
                self._blocks[index]["input"] = json.loads(streamed)
            except ValueError:  # cut off by max_tokens; the text itself stands in the canonical call
                self._blocks[index]["input"] = {}

    def _arguments(self, index: int, block: Mapping[str, Any]) -> str:
        streamed = "".join(self._inputs.get(index, ()))
        return streamed or compact_json(block.get("input") or {})

    def _usage_value(self) -> Usage | None:
        if not self._usage:
            return None
        count = self._usage.get
        return Usage(
            count("input_tokens") or 0,
            count("output_tokens") or 0,
            cache_read_tokens=count("cache_read_input_tokens") or 0,
            cache_write_tokens=count("cache_creation_input_tokens") or 0,
        )


def canonical_blocks(text: str, calls: tuple[ToolCall, ...]) -> list[dict[str, Any]]:
    """The blocks that say no more than the canonical form does."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for call in calls:
        block: dict[str, Any] = {"type": "tool_use", "id": call.id, "name": call.name}
        arguments = _object_or_none(call.arguments)
        if arguments:
            block["input"] = arguments
        blocks.append(block)
    return blocks


def compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _object_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _without_empty(block: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if value not in (None, [], {})}
