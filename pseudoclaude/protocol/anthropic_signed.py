"""Anthropic Messages, rules A40 to A54: thinking, what it is bound to, compaction blocks, tool references."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from pseudoclaude.protocol.anthropic_request import THINKING, Block, Request
from pseudoclaude.protocol.names import is_one_of
from pseudoclaude.protocol.values import Check, Found

COMPACT_BETA = "compact-2026-09-04"


def _thinking(request: Request) -> Iterator[tuple[int, Block]]:
    """All thinking blocks with the index of their message."""
    for index, entry in enumerate(request.entries):
        for block in entry.blocks:
            if block.kind in THINKING and entry.role == "assistant":
                yield index, block


def _seal(block: dict[str, Any]) -> Any:
    return block.get("signature") if block["type"] == "thinking" else block.get("data")


def a40(request: Request) -> Iterator[Found]:
    genuine = request.context.genuine
    for _, block in _thinking(request):
        if not genuine(_seal(block.data)):
            what = "signature" if block.kind == "thinking" else "data"
            yield f"{block.path}.{what}", f"the {what} of a {block.kind} block is not the provider's"
        elif block.kind == "thinking" and not isinstance(block.data.get("thinking"), str):
            yield f"{block.path}.thinking", "a thinking block without its text"


def a41(request: Request) -> Iterator[Found]:
    original = request.context.original_latest_assistant
    latest = next((turn for turn in reversed(request.turns) if turn.role == "assistant"), None)
    if original is None or latest is None:
        return
    sent = [block.data for block in latest.blocks if block.kind in THINKING]
    returned = [block for block in original if isinstance(block, dict) and is_one_of(block.get("type"), THINKING)]
    if sent and sent != returned:
        yield latest.entries[0].path, "thinking of the latest assistant turn is not as it was returned"


def a42(request: Request) -> Iterator[Found]:
    turns = request.turns
    if request.context.thinking != "enabled" or len(turns) < 2 or turns[-1].role != "user":
        return
    blocks = turns[-2].blocks
    in_loop = turns[-2].role == "assistant" and any(block.kind == "tool_use" for block in blocks)
    if in_loop and blocks[0].kind not in THINKING and any(block.kind == "tool_result" for block in turns[-1].blocks):
        yield blocks[0].path, "in manual thinking mode the turn of an open tool loop starts with thinking"


def a44(request: Request) -> Iterator[Found]:
    order = request.context.thinking_order
    if request.context.prefix_binding != "error" or not order:
        return
    sent = {str(_seal(block.data)): block for _, block in _thinking(request)}
    present = [position for position, seal in enumerate(order) if seal in sent]
    for before, position in pairwise(present):
        if position != before + 1:
            yield sent[order[position]].path, "thinking that preceded this block is missing"
            return


def a45(request: Request) -> Iterator[Found]:
    prefixes = request.context.thinking_prefixes
    if request.context.prefix_binding != "error" or not prefixes:
        return
    for index, block in _thinking(request):
        prefix = prefixes.get(str(_seal(block.data)))
        if prefix is not None and _plain(prefix) != _plain([entry.data for entry in request.entries[:index]]):
            yield block.path, "the block is bound to a different conversation"


def _plain(messages: list[Any]) -> list[tuple[Any, Any]]:
    """Messages without what is not part of the binding: cache marks, and whether one text is a string or a block."""
    return [
        (message.get("role"), _plain_content(message.get("content")))
        for message in messages
        if isinstance(message, dict)
    ]


def _plain_content(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return content
    return [
        {key: value for key, value in block.items() if key != "cache_control"}
        for block in content
        if isinstance(block, dict)
    ]


def a50(request: Request) -> Iterator[Found]:
    blocks = [block for block in request.blocks("compaction") if block.data.get("content")]
    if COMPACT_BETA in request.context.betas:
        for block in blocks[1:]:
            yield block.path, "a second compaction block with content"


def a51(request: Request) -> Iterator[Found]:
    if COMPACT_BETA not in request.context.betas:
        return
    for position, block in enumerate(request.blocks()):
        if block.kind == "compaction" and position > 0 and block.data.get("content"):
            yield block.path, "a compaction block that is not the first block of the conversation"


def a52(request: Request) -> Iterator[Found]:
    for block in request.blocks("compaction"):
        signature = block.data.get("signature")
        if block.data.get("content") == "":
            yield f"{block.path}.content", "the content of a compaction block is empty"
        elif signature is not None and not request.context.genuine(signature):
            yield f"{block.path}.signature", "the signature of a compaction block is not the provider's"


def a54(request: Request) -> Iterator[Found]:
    tools = request.context.tools
    if tools is None:
        return
    for path, reference in _references(request):
        name = reference.get("tool_name", reference.get("name"))
        if reference.get("type") == "tool_reference" and name not in tools:
            yield path, f"tool reference {name!r} names no declared tool"


def _references(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    for block in request.blocks("tool_result", "tool_addition", "tool_removal"):
        if block.kind == "tool_result":
            content = block.data.get("content")
            for part in content if isinstance(content, list) else ():
                if isinstance(part, dict):
                    yield block.path, part
        elif isinstance(tool := block.data.get("tool"), dict):
            yield block.path, tool


CHECKS = (
    Check("A40", a40),
    Check("A41", a41, firm=False),
    Check("A42", a42),
    Check("A44", a44),
    Check("A45", a45),
    Check("A50", a50),
    Check("A51", a51),
    Check("A52", a52),
    Check("A54", a54, firm=False),
)
