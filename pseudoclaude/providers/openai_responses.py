"""OpenAI Responses on the official SDK, streaming or not; the SDK's own retries are off.

The history is ours, so nothing is stored on the server (``store: false``) and encrypted reasoning is asked for where the model has
it; a reasoning item goes back with what it produced.  A stream ends with ``response.completed``, ``.incomplete`` or ``.failed``,
whose output is authoritative; there is no ``[DONE]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import msgspec
import regex

from pseudoclaude.messages import Message, Native, Stop, ToolCall
from pseudoclaude.ports import Reply, Request, ToolSpec
from pseudoclaude.providers.failures import provider_failure
from pseudoclaude.providers.openai_sdk import ERRORS, Connection, usage_value
from pseudoclaude.providers.sdk import MalformedReply, Where, as_ours, read_stream, read_whole, with_tool_names
from pseudoclaude.providers.wire import to_wire, wire_name

_REASONING_MODEL = regex.compile(r"^(o\d|gpt-[5-9](?!\d))(?!.*chat)")
_SAYS_NOTHING = frozenset({"id", "status", "object", "logprobs"})
"""Members of an item that the canonical form may lose: the server's own name and state of it."""
_TEXT_DELTAS = frozenset({"response.output_text.delta", "response.refusal.delta"})
_ENDS = frozenset({"response.completed", "response.incomplete"})


class OpenAIResponsesProvider:
    """``ports.Provider`` for the Responses API.

    ``options`` are further members of the request body.  ``encrypted_reasoning`` asks for reasoning items that can be sent back;
    None decides by the model's name, since a model without reasoning refuses the request.  Raises the classes under
    ``errors.ProviderError``.
    """

    dialect = "openai-responses"

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
        encrypted_reasoning: bool | None = None,
    ) -> None:
        self.model = model
        self._stream = stream
        self._options = dict(options or {})
        by_name = _REASONING_MODEL.match(model) is not None
        self._encrypted_reasoning = by_name if encrypted_reasoning is None else encrypted_reasoning
        self._where = Where("OpenAI Responses", model)
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
        responses = self._connection.client().responses
        received = ReceivedResponse(str(self._where))
        body = self._body(request)
        try:
            if self._stream:
                with responses.create(**body, stream=True) as events:
                    return read_stream(events, received, ERRORS, on_text, self._where)
            answer = responses.with_raw_response.create(**body)
            return read_whole(answer.http_response.content, received, ERRORS, on_text, self._where)
        except ERRORS.of_request as error:
            raise as_ours(error, ERRORS, str(self._where)) from error

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "input": to_wire("openai-responses", request.messages),
            "max_output_tokens": request.max_tokens,
            "store": False,
        }
        if request.system:
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = [tool_wire(tool) for tool in request.tools]
        if self._encrypted_reasoning:
            body["include"] = ["reasoning.encrypted_content"]
        if self._options:
            body["extra_body"] = self._options
        return body


def tool_wire(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": wire_name(tool.name),
        "description": tool.description,
        "parameters": msgspec.to_builtins(tool.parameters),
        "strict": False,
    }


class ReceivedResponse:
    """One reply while it arrives.  Its last event carries the whole response, so only the text is followed before."""

    may_end = False

    def __init__(self, where: str) -> None:
        self.done = False
        self._where = where
        self._body: Mapping[str, Any] = {}

    def take_whole(self, body: Any) -> None:
        if not isinstance(body, dict):
            raise MalformedReply("the body is no object")
        if body.get("error"):
            raise provider_failure(200, body, {}, where=self._where)
        if not isinstance(body.get("output"), list):
            raise MalformedReply("the body has no output")
        self._body = body
        self.done = True

    def feed(self, event: Mapping[str, Any]) -> str:
        kind = event.get("type")
        if kind in _TEXT_DELTAS:
            return str(event["delta"])
        if kind in _ENDS:
            self.take_whole(event["response"])
        elif kind == "response.failed":
            raise provider_failure(200, event["response"], {}, where=self._where)
        elif kind == "error":
            raise provider_failure(200, event, {}, where=self._where)
        return ""

    def reply(self, asked_model: str) -> Reply:
        items = [item for item in self._body["output"] if isinstance(item, dict)]
        parts = [part for item in items if item.get("type") == "message" for part in item.get("content") or ()]
        refused = any(part.get("type") == "refusal" for part in parts)
        text = "".join(part.get("text") or part.get("refusal") or "" for part in parts)
        calls = tuple(
            ToolCall(item["call_id"], item["name"], item.get("arguments") or "{}")
            for item in items
            if item.get("type") == "function_call"
        )
        model = self._body.get("model") or asked_model
        same = _canonical(text, calls) == [_meaning(item) for item in items]
        native = None if same else Native("openai", "responses", model, items)
        return Reply(
            Message("assistant", text, calls, native=native, stop=self._stop(bool(calls), refused)),
            usage_value(self._body.get("usage"), "input_tokens", "output_tokens"),
            model,
        )

    def _stop(self, calls: bool, refused: bool) -> Stop:
        reason = (self._body.get("incomplete_details") or {}).get("reason")
        if refused or reason == "content_filter":
            return "refusal"
        if reason is not None or self._body.get("status") == "incomplete":
            return "max_tokens"
        return "tool_use" if calls else "end_turn"


def _canonical(text: str, calls: tuple[ToolCall, ...]) -> list[dict[str, Any]]:
    """The items that say no more than the canonical form does."""
    items: list[dict[str, Any]] = []
    if text:
        items.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
    for call in calls:
        items.append({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments})
    return items


def _meaning(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if key not in _SAYS_NOTHING and item not in (None, [], {})}
        return {key: _meaning(item) for key, item in kept.items()}
    return [_meaning(item) for item in value] if isinstance(value, list) else value
