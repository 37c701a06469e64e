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
        position = 0
        while position < len(messages):
            message = messages[position]
            if message.role == "assistant":
                self._assistant(position, message)
                if message.tool_calls:
                    position = self._results(position + 1, message)
                    continue
            elif message.tool_result is not None:
                position = self._results(position, None)
                continue
            else:
                self._user_text(message.content)
            position += 1
        return self.out

    def _user_text(self, text: str) -> None:
        last = self.out[-1] if self.out else None
        if last is None or last["role"] != "user":
            self.out.append({"role": "user", "content": text if says_something(text) else EMPTY_MESSAGE})
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
        blocks: list[JSONObject] = [{"type": "text", "text": text}] if text else []
        for call in message.tool_calls:
            blocks.append(
                {
                    "type": "tool_use",
                    "id": self.ids.call(call.id),
                    "name": wire_name(call.name),
                    "input": arguments_object(call.arguments),
                }
            )
        return blocks

    def _results(self, position: int, caller: Message | None) -> int:
        """All results from ``position`` on as one user turn, in the order of the calls; the position behind them."""
        results: list[JSONObject] = []
        messages = self.messages
        while position < len(messages) and (result := messages[position].tool_result) is not None:
            block: JSONObject = {
                "type": "tool_result",
                "tool_use_id": self.ids.result(result.call_id),
                "content": result.content or EMPTY_RESULT,
            }
            if result.is_error:
                block["is_error"] = True
            results.append(block)
            position += 1
        if caller is not None and len(results) > 1:
            order = {wire: index for index, wire in enumerate(_call_ids(self.out[-1]["content"]))}
            results.sort(key=lambda block: order.get(block["tool_use_id"], len(order)))
        if results:
            self._user_blocks(results)
        return position


def _call_ids(blocks: list[JSONObject]) -> list[str]:
    return [block["id"] for block in blocks if block["type"] == "tool_use"]
