"""Short words for histories in tests."""

from __future__ import annotations

from typing import Any, Literal

from pseudoclaude.messages import Message, Native, ToolCall, ToolResult


def asks(text: str) -> Message:
    return Message("user", text)


def says(text: str, native: list[dict[str, Any]] | None = None) -> Message:
    return Message(
        "assistant", text, native=None if native is None else Native("anthropic", "messages", "claude", native)
    )


def calls(*ids: str, text: str = "") -> Message:
    return Message(
        "assistant", text, tuple(ToolCall(each, "read_file", '{"path":"a.py"}') for each in ids), stop="tool_use"
    )


def answer(call_id: str, text: str, origin: Literal["tool", "interrupted"] = "tool") -> Message:
    return Message("tool", tool_result=ToolResult(call_id, text, is_error=origin == "interrupted", origin=origin))


def signed(text: str, *made: ToolCall) -> Message:
    """An assistant message with signed thinking in its own form."""
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "step ", "signature": "sig:ok:1"},
        {"type": "text", "text": text},
    ]
    blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": {}} for call in made]
    return Message("assistant", text, made, native=Native("anthropic", "messages", "claude", blocks))
