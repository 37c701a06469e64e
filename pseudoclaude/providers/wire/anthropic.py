"""Canonical history to Anthropic ``messages``.

Total: any repaired history becomes one that the API accepts, without a change to the canonical record.  What is sent for a prefix of
a history does not change when the history grows (except that a last user turn gets longer), so signed thinking, which is bound to
what stood before it, stays valid.  A message's own blocks go back as they came when they still say what the message says; keys and
blocks that the API returns but refuses are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pseudoclaude.messages import Message
from pseudoclaude.protocol.repair import MISSING_BEGINNING
from pseudoclaude.providers.wire import anthropic_native as native
from pseudoclaude.providers.wire.aliases import CallIds, call_ids, wire_name
from pseudoclaude.providers.wire.texts import EMPTY_MESSAGE, EMPTY_RESULT, JSONObject, arguments_object, says_something

ID_LENGTH_MAX = 64


def to_wire(messages: Sequence[Message], *, with_native: bool = True) -> list[JSONObject]:
    """One wire message a turn; ``with_native`` False projects the canonical messages alone."""
    return _Projection(messages, with_native).run()


class _Projection:
    def __init__(self, messages: Sequence[Message], with_native: bool) -> None:
        self.messages = messages
        self.with_native = with_native
        self.out: list[JSONObject] = []
        self.ids: CallIds = call_ids(ID_LENGTH_MAX)
        self.native = native.Replay(messages, self.ids)

    def run(self) -> list[JSONObject]:
        messages = self.messages
        position, end = 0, len(messages)
        while position < end:
            message = messages[position]
            if message.role == "assistant":
                self._assistant(position, message)
                position = self._results(position + 1) if message.tool_calls else position + 1
            elif message.tool_result is not None:
                position = self._results(position)
            else:
                self._user_text(message.content)
                position += 1
        return self.out

    def _user_text(self, text: str) -> None:
        out = self.out
        if not out or out[-1]["role"] != "user":
            out.append({"role": "user", "content": text if says_something(text) else EMPTY_MESSAGE})
        elif says_something(text):
            self._user_blocks([{"type": "text", "text": text}])

    def _user_blocks(self, blocks: list[JSONObject]) -> None:
        """Add to the user turn that is being built, so that one turn is one message (A03)."""
        last = self.out[-1] if self.out else None
        if last is None or last["role"] != "user":
            self.out.append({"role": "user", "content": blocks})
            return
        content = last["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        last["content"] = content + blocks

    def _assistant(self, position: int, message: Message) -> None:
        content: Any = (
            self.native.blocks(position, message) if self.with_native and message.native is not None else None
        )
        if content is None:
            content = self._canonical(message)
        if not content:
            return
        if not self.out and not native.is_compaction(content):
            self.out.append({"role": "user", "content": MISSING_BEGINNING})
        self.out.append({"role": "assistant", "content": content})

    def _canonical(self, message: Message) -> str | list[JSONObject]:
        text = message.content if says_something(message.content) else ""
        if not message.tool_calls:
            return text
        wire_id = self.ids.call
        blocks: list[JSONObject] = [
            {
                "type": "tool_use",
                "id": wire_id(call.id),
                "name": wire_name(call.name),
                "input": arguments_object(call.arguments),
            }
            for call in message.tool_calls
        ]
        return [{"type": "text", "text": text}, *blocks] if text else blocks

    def _results(self, position: int) -> int:
        """All results from ``position`` on as one user turn, in the order of the calls; the position behind them."""
        results: list[JSONObject] = []
        wire_id, messages, end = self.ids.result, self.messages, len(self.messages)
        while position < end and (result := messages[position].tool_result) is not None:
            block: JSONObject = {
                "type": "tool_result",
                "tool_use_id": wire_id(result.call_id),
                "content": result.content or EMPTY_RESULT,
            }
            if result.is_error:
                block["is_error"] = True
            results.append(block)
            position += 1
        if len(results) > 1:
            called = _call_ids(self.out[-1]["content"] if self.out else "")
            results.sort(key=lambda block: called.get(block["tool_use_id"], len(called)))
        if results:
            self._user_blocks(results)
        return position


def _call_ids(content: str | list[JSONObject]) -> dict[str, int]:
    """The calls of a message by their place in it."""
    blocks = content if isinstance(content, list) else []
    return {block["id"]: place for place, block in enumerate(blocks) if block["type"] == "tool_use"}
