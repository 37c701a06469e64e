"""One Anthropic request, indexed so that each rule is a few lines: entries (messages), turns (runs of one role), blocks.

Total: any JSON value can be indexed.  What is not a message or not a block is left out and named in ``malformed``; the rules see only
blocks that are objects with a textual ``type``.  Consecutive messages of one role form one turn, as the API joins them (A03).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pseudoclaude.protocol.context import Context
from pseudoclaude.protocol.values import Found

THINKING = frozenset({"thinking", "redacted_thinking"})
SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})


class Block(NamedTuple):
    """A content block; ``text_only`` marks a message's plain string, seen as one text block."""

    path: str
    kind: str
    data: dict[str, Any]
    text_only: bool = False

    @property
    def is_server_result(self) -> bool:
        return self.kind.endswith("_tool_result")


class Entry(NamedTuple):
    """A message; ``directive`` is a system entry without text that only sets an output configuration (beta)."""

    path: str
    role: Any
    data: dict[str, Any]
    blocks: list[Block]
    directive: bool


class Turn(NamedTuple):
    role: Any
    entries: list[Entry]

    @property
    def blocks(self) -> list[Block]:
        return [block for entry in self.entries for block in entry.blocks]


class Request:
    """What the rules read."""

    def __init__(self, messages: Sequence[Any], context: Context, conservative: bool) -> None:
        self.messages = messages
        self.context = context
        self.conservative = conservative
        self.malformed: list[Found] = []
        self.entries: list[Entry] = []
        for index, message in enumerate(messages):
            path = f"messages[{index}]"
            if isinstance(message, dict):
                self.entries.append(self._entry(path, message))
            else:
                self.malformed.append((path, f"a message is an object, not {type(message).__name__}"))
        self.turns = _turns(self.entries)

    def blocks(self, *kinds: str) -> Iterator[Block]:
        """All blocks of the request in order, or those of some kinds."""
        for entry in self.entries:
            for block in entry.blocks:
                if not kinds or block.kind in kinds:
                    yield block

    @property
    def last(self) -> Entry | None:
        return self.entries[-1] if self.entries else None

    @property
    def paused(self) -> bool:
        """The last reply was stopped by the server and goes back as it is."""
        return self.context.last_stop_reason in ("pause_turn", "compaction")

    def _entry(self, path: str, message: dict[str, Any]) -> Entry:
        role, content = message.get("role"), message.get("content")
        directive = role == "system" and not content and "output_config" in message
        blocks: list[Block] = []
        if isinstance(content, str):
            if content:
                blocks.append(Block(f"{path}.content", "text", {"type": "text", "text": content}, True))
        elif isinstance(content, list):
            for index, block in enumerate(content):
                place = f"{path}.content[{index}]"
                if isinstance(block, dict) and isinstance(kind := block.get("type"), str):
                    blocks.append(Block(place, kind, block))
                else:
                    self.malformed.append((place, "a block is an object with a 'type'"))
        elif not directive:
            self.malformed.append(
                (f"{path}.content", f"content is text or a list of blocks, not {type(content).__name__}")
            )
        return Entry(path, role, message, blocks, directive)


def _turns(entries: list[Entry]) -> list[Turn]:
    turns: list[Turn] = []
    for entry in entries:
        if entry.directive:
            continue
        if turns and turns[-1].role == entry.role and entry.role in ("user", "assistant"):
            turns[-1].entries.append(entry)
        else:
            turns.append(Turn(entry.role, [entry]))
    return turns
