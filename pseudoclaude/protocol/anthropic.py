"""Anthropic Messages, rules A01 to A18: the list, the roles, the content, the end, system entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pseudoclaude.protocol.anthropic_request import THINKING, Entry, Request
from pseudoclaude.protocol.values import Check, Found

MESSAGES_MAX = 100_000
ROLES = ("user", "assistant", "system")
MESSAGE_KEYS = frozenset({"role", "content"})
SYSTEM_KEYS = MESSAGE_KEYS | {"output_config", "clear_at"}

_CALL = frozenset({"type", "cache_control", "id", "name", "input", "caller"})
_RESULT = frozenset({"type", "cache_control", "tool_use_id", "content"})
BLOCK_KEYS: dict[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control", "transformations"}),
    "document": frozenset({"type", "source", "cache_control", "citations", "context", "title"}),
    "search_result": frozenset({"type", "source", "cache_control", "citations", "content", "title"}),
    "thinking": frozenset({"type", "thinking", "signature", "cache_control"}),
    "redacted_thinking": frozenset({"type", "data", "cache_control"}),
    "tool_use": _CALL | {"toolset_name"},
    "tool_result": _RESULT | {"is_error", "toolset_name"},
    "server_tool_use": _CALL,
    "mcp_tool_use": _CALL - {"caller"} | {"server_name"},
    "mcp_tool_result": _RESULT | {"is_error"},
    "web_search_tool_result": _RESULT | {"caller"},
    "web_fetch_tool_result": _RESULT | {"caller"},
    "advisor_tool_result": _RESULT,
    "code_execution_tool_result": _RESULT,
    "bash_code_execution_tool_result": _RESULT,
    "text_editor_code_execution_tool_result": _RESULT,
    "tool_search_tool_result": _RESULT,
    "container_upload": frozenset({"type", "file_id", "cache_control"}),
    "compaction": frozenset({"type", "content", "cache_control", "encrypted_content", "signature", "tool_changes"}),
    "tool_addition": frozenset({"type", "tool", "cache_control"}),
    "tool_removal": frozenset({"type", "tool", "cache_control"}),
    "fallback": frozenset({"type", "from", "to", "trigger"}),
}
"""What each block may carry (parameter types of anthropic 2.14); cache marks have rules of their own (A66, A67)."""


def a01(request: Request) -> Iterator[Found]:
    if not request.messages:
        yield "messages", "the list is empty"


def a02(request: Request) -> Iterator[Found]:
    first = next((entry for entry in request.entries if entry.role != "system"), None)
    if first is not None and first.role == "assistant" and not (first.blocks and first.blocks[0].kind == "compaction"):
        yield first.path, "the first message is not from the user"


def a04(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        if entry.role not in ROLES:
            yield f"{entry.path}.role", f"there is no role {entry.role!r}"


def a05(request: Request) -> Iterator[Found]:
    yield from request.malformed


def a06(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        allowed = SYSTEM_KEYS if entry.role == "system" else MESSAGE_KEYS
        yield from _unknown(entry.path, entry.data, allowed)
        for block in entry.blocks:
            known = BLOCK_KEYS.get(block.kind)
            if known is not None:
                yield from _unknown(block.path, block.data, known)


def _unknown(path: str, data: dict[str, Any], allowed: frozenset[str]) -> Iterator[Found]:
    for key in data:
        if key not in allowed:
            yield f"{path}.{key}", "extra inputs are not permitted"


def a07(request: Request) -> Iterator[Found]:
    if len(request.messages) > MESSAGES_MAX:
        yield "messages", f"{len(request.messages):,} messages; at most {MESSAGES_MAX:,} are accepted"


def a08(request: Request) -> Iterator[Found]:
    for turn in request.turns:
        if turn.role == "user" and not turn.blocks and not _malformed(turn.entries):
            yield turn.entries[0].path, "a user turn without content"
    for entry in request.entries:
        if entry.role == "assistant" and entry.data.get("content") in ("", []) and entry is not request.last:
            yield entry.path, "an assistant message without content that is not the last one"


def _malformed(entries: list[Entry]) -> bool:
    """Content that is there in a wrong shape is A05, not empty."""
    return any(entry.data.get("content") not in ("", []) for entry in entries)


def a09(request: Request) -> Iterator[Found]:
    for block in request.blocks("text"):
        if block.data.get("text") == "":
            yield block.path, "an empty text block"


def a10(request: Request) -> Iterator[Found]:
    for block in request.blocks("text"):
        text = block.data.get("text")
        if isinstance(text, str) and text.isspace():
            yield block.path, "a text block of white space only"


def a11(request: Request) -> Iterator[Found]:
    last = request.last
    if last is None or last.role != "assistant" or not request.context.prefill or request.paused or not last.blocks:
        return
    text = last.blocks[-1].data.get("text")
    if isinstance(text, str) and text != text.rstrip():
        yield last.blocks[-1].path, "the final assistant text ends in white space"


def a12(request: Request) -> Iterator[Found]:
    last = request.last
    if last is not None and last.role == "assistant" and not request.context.prefill and not request.paused:
        yield last.path, "the list ends on an assistant message, and the model does not continue one"


def a13(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        if entry.role == "assistant" and entry.blocks and entry.blocks[-1].kind in THINKING:
            yield entry.blocks[-1].path, "an assistant message ends on thinking"


def a14(request: Request) -> Iterator[Found]:
    last = request.last
    if last is None or last.role != "assistant" or request.context.thinking != "disabled":
        return
    for block in last.blocks:
        if block.kind in THINKING:
            yield block.path, "thinking is disabled, and the final assistant message contains it"


def a15(request: Request) -> Iterator[Found]:
    if not request.context.system_in_messages:
        for entry in request.entries:
            if entry.role == "system":
                yield entry.path, "this model has no system messages inside the list"


def a16(request: Request) -> Iterator[Found]:
    if request.entries and request.entries[0].role == "system" and not request.entries[0].directive:
        yield request.entries[0].path, "the first instructions belong in the top-level 'system'"


def a17(request: Request) -> Iterator[Found]:
    turns = request.turns
    for index, turn in enumerate(turns):
        if turn.role != "system" or index == 0:
            continue
        before, after = turns[index - 1], turns[index + 1] if index + 1 < len(turns) else None
        ends_on_server_result = before.role == "assistant" and before.blocks and before.blocks[-1].is_server_result
        if before.role != "user" and not ends_on_server_result and (before.role != "system" or request.conservative):
            yield turn.entries[0].path, "a system message follows a user turn or a server tool's result"
        elif after is not None and after.role != "assistant" and (after.role != "system" or request.conservative):
            yield turn.entries[0].path, "a system message comes before an assistant message or ends the list"


def a18(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        if entry.role == "system" and not entry.directive and not any(_instructs(block.data) for block in entry.blocks):
            yield entry.path, "a system message without text"


def _instructs(block: dict[str, Any]) -> bool:
    if block["type"] in ("tool_addition", "tool_removal"):
        return True
    text = block.get("text")
    return isinstance(text, str) and bool(text.strip())


CHECKS = (
    Check("A01", a01),
    Check("A02", a02, firm=False),
    Check("A04", a04),
    Check("A05", a05),
    Check("A06", a06),
    Check("A07", a07),
    Check("A08", a08),
    Check("A09", a09),
    Check("A10", a10),
    Check("A11", a11),
    Check("A12", a12),
    Check("A13", a13),
    Check("A14", a14),
    Check("A15", a15),
    Check("A16", a16),
    Check("A17", a17),
    Check("A18", a18),
)
