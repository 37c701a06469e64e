"""When and how Anthropic's own blocks go back.

They go back if they came from this API, still say what the canonical message says, and the server tools in them are settled: a
server call has its result in the same turn or in the turn that continues it.  Otherwise the caller projects the canonical message.
Left out of what goes back: keys the API returns but refuses (A06), cache marks (A66), empty text (A09, A10), blocks with a
user-only meaning (A31), thinking that ends a message (A13), and all thinking from the first forged signature on (A40, K1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pseudoclaude.messages import Message
from pseudoclaude.protocol.arguments import parse_object
from pseudoclaude.protocol.opaque import is_genuine
from pseudoclaude.providers.wire.aliases import CallIds, matcher, wire_name
from pseudoclaude.providers.wire.texts import JSONObject, native_payload, says_something

THINKING = ("thinking", "redacted_thinking")
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
NOT_IN_ASSISTANT = ("container_upload", "image", "document", "search_result")
SERVER_ID_LENGTH_MAX = 128
_RESULT_KEYS = ("type", "tool_use_id", "content")
BLOCK_KEYS: dict[str, tuple[str, ...]] = {
    "text": ("type", "text", "citations"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "tool_use": ("type", "id", "name", "input", "caller", "toolset_name"),
    "server_tool_use": ("type", "id", "name", "input", "caller"),
    "mcp_tool_use": ("type", "id", "name", "input", "server_name"),
    "mcp_tool_result": (*_RESULT_KEYS, "is_error"),
    "web_search_tool_result": (*_RESULT_KEYS, "caller"),
    "web_fetch_tool_result": (*_RESULT_KEYS, "caller"),
    "advisor_tool_result": _RESULT_KEYS,
    "code_execution_tool_result": _RESULT_KEYS,
    "bash_code_execution_tool_result": _RESULT_KEYS,
    "text_editor_code_execution_tool_result": _RESULT_KEYS,
    "tool_search_tool_result": _RESULT_KEYS,
    "compaction": ("type", "content", "encrypted_content", "signature", "tool_changes"),
    "fallback": ("type", "from", "to", "trigger"),
}
"""What each assistant block may carry on the way in (parameter types of anthropic 2.14)."""

_fits_server_id = matcher(SERVER_ID_LENGTH_MAX)


class Replay:
    """Decides for each message of one request whether its own blocks go back; ask in the order of the history."""

    def __init__(self, messages: Sequence[Message], ids: CallIds) -> None:
        self._messages = messages
        self._ids = ids
        self._unsettled: set[int] | None = None
        self._server_calls: set[str] = set()
        self._thinking_is_void = False

    def blocks(self, position: int, message: Message) -> list[JSONObject] | None:
        """The blocks to send, or None if the canonical message must be projected instead."""
        payload = _usable(message)
        if payload is None or not all(self._ids.is_free(call.id) for call in message.tool_calls):
            return None
        if any(wire_name(call.name) != call.name for call in message.tool_calls):
            return None
        if self._unsettled is None:
            self._unsettled = _unsettled(self._messages)
        if position in self._unsettled or not self._results_have_calls(payload):
            return None
        self._server_calls.update(_ids_of(payload, SERVER_CALLS))
        for call in message.tool_calls:
            self._ids.call(call.id)
        return self._cleaned(payload)

    def _results_have_calls(self, payload: list[JSONObject]) -> bool:
        known = self._server_calls.copy()
        for block in payload:
            if block["type"] in SERVER_CALLS:
                known.add(block["id"])
            elif is_server_result(block) and block["tool_use_id"] not in known:
                return False
        return True

    def _cleaned(self, payload: list[JSONObject]) -> list[JSONObject]:
        if not all(_is_signed(block) for block in payload if block["type"] in THINKING):
            self._thinking_is_void = True
        kept = []
        for block in payload:
            kind = block["type"]
            if kind in NOT_IN_ASSISTANT or (kind == "text" and not says_something(block["text"])):
                continue
            if kind in THINKING and self._thinking_is_void:
                continue
            keys = BLOCK_KEYS.get(kind)
            sent = keys if keys is not None else [key for key in block if key != "cache_control"]
            kept.append({key: block[key] for key in sent if key in block})
        while kept and kept[-1]["type"] in THINKING:
            kept.pop()
        return kept


def is_server_result(block: JSONObject) -> bool:
    kind: str = block["type"]
    return kind.endswith("_tool_result")


def is_compaction(content: Any) -> bool:
    """Whether a server-side compaction block opens the message: it stands for the beginning and comes first (A51)."""
    return isinstance(content, list) and content[0]["type"] == "compaction"


def _usable(message: Message) -> list[JSONObject] | None:
    """The payload if its shape is sound and it says what the canonical message says."""
    payload = native_payload(message, "anthropic", "messages")
    if not isinstance(payload, list) or not all(_is_block(block) for block in payload):
        return None
    text = "".join(block["text"] for block in payload if block["type"] == "text")
    calls = [block for block in payload if block["type"] == "tool_use"]
    if text != message.content or len(calls) != len(message.tool_calls):
        return None
    for block, call in zip(calls, message.tool_calls, strict=True):
        if block["id"] != call.id or block.get("name") != call.name or block["input"] != parse_object(call.arguments):
            return None
    return payload


def _is_block(block: Any) -> bool:
    """Whether the members that every reader of a block relies on are there, in their type."""
    if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str) or kind == "tool_result":
        return False
    if kind == "text":
        return isinstance(block.get("text"), str) and isinstance(block.get("citations"), list | None)
    if kind == "tool_use" or kind in SERVER_CALLS:
        return _is_call(block)
    if kind == "compaction":
        return _is_compaction_block(block)
    return not is_server_result(block) or _is_server_result_block(block)


def _is_call(block: JSONObject) -> bool:
    name, call_id = block.get("name"), block.get("id")
    if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(block.get("input"), dict):
        return False
    return block["type"] == "tool_use" or bool(name and _fits_server_id(call_id))


def _is_compaction_block(block: JSONObject) -> bool:
    """Content that is text or nothing, but not empty, under the provider's own signature (A52)."""
    content, signature = block.get("content"), block.get("signature")
    if (
        content == ""
        or not isinstance(content, str | None)
        or not isinstance(block.get("encrypted_content"), str | None)
    ):
        return False
    return (signature is None or is_genuine(signature)) and isinstance(block.get("tool_changes"), list | None)


def _is_server_result_block(block: JSONObject) -> bool:
    """With the id of its call; what a web search found goes back only with its encrypted content (A38)."""
    content = block.get("content")
    if not isinstance(block.get("tool_use_id"), str) or not isinstance(content, str | list | dict):
        return False
    if block["type"] != "web_search_tool_result" or not isinstance(content, list):
        return True
    return all(isinstance(found, dict) and is_genuine(found.get("encrypted_content")) for found in content)


def _is_signed(block: JSONObject) -> bool:
    if block["type"] == "redacted_thinking":
        return is_genuine(block.get("data"))
    return isinstance(block.get("thinking"), str) and is_genuine(block.get("signature"))


def _ids_of(payload: list[JSONObject], kinds: tuple[str, ...]) -> set[str]:
    return {block["id"] for block in payload if block["type"] in kinds}


def _unsettled(messages: Sequence[Message]) -> set[int]:
    """Positions of messages with a server call whose result never comes (A35, A37).

    Walked from the end, because a call may be settled by the turn that continues it, if that turn itself goes back.
    """
    unsettled: set[int] = set()
    following: int | None = None
    for position in reversed(range(len(messages))):
        message = messages[position]
        if message.role == "tool":
            continue
        payload = _usable(message) if message.native is not None else None
        if payload is not None:
            answered = {block["tool_use_id"] for block in payload if is_server_result(block)}
            waiting = _ids_of(payload, SERVER_CALLS) - answered
            if waiting and not _settles(messages, following, unsettled, waiting, message):
                unsettled.add(position)
        following = position
    return unsettled


def _settles(
    messages: Sequence[Message], following: int | None, unsettled: set[int], waiting: set[str], message: Message
) -> bool:
    if following is None:
        return message.stop == "pause_turn" or bool(message.tool_calls)
    if messages[following].role != "assistant" or following in unsettled:
        return False
    payload = _usable(messages[following])
    return payload is not None and waiting <= {block["tool_use_id"] for block in payload if is_server_result(block)}
