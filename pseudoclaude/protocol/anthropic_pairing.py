"""Anthropic Messages, rules A20 to A38: calls and results, client and server tools, and which block stands where."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pseudoclaude.protocol.anthropic_request import SERVER_CALLS, THINKING, Block, Request, Turn
from pseudoclaude.protocol.names import is_one_of
from pseudoclaude.protocol.values import Check, Found

ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME_LENGTH_MAX = 200
DECLARED_NAME_LENGTH_MAX, DECLARED_NAME_LENGTH_SAFE = 128, 64
RESULT_CONTENT = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})
NOT_IN_ASSISTANT = frozenset({"container_upload", "image"})


def _ids(blocks: list[Block], kinds: frozenset[str] | set[str], key: str) -> list[str]:
    return [block.data[key] for block in blocks if block.kind in kinds and isinstance(block.data.get(key), str)]


def _calls(turn: Turn) -> list[str]:
    return _ids(turn.blocks, {"tool_use"}, "id")


def _results(blocks: list[Block]) -> list[str]:
    return _ids(blocks, {"tool_result"}, "tool_use_id")


def _open_server_calls(turn: Turn) -> dict[str, Block]:
    """Server calls whose result does not come later in the same turn."""
    waiting: dict[str, Block] = {}
    for block in turn.blocks:
        if block.kind in SERVER_CALLS and isinstance(block.data.get("id"), str):
            waiting[block.data["id"]] = block
        elif block.is_server_result:
            waiting.pop(str(block.data.get("tool_use_id")), None)
    return waiting


def _replies(request: Request) -> Iterator[tuple[int, Turn, Turn | None]]:
    """Each assistant turn with its index and the user turn right after it, if there is one."""
    for index, turn in enumerate(request.turns):
        if turn.role == "assistant":
            after = request.turns[index + 1] if index + 1 < len(request.turns) else None
            yield index, turn, after if after is not None and after.role == "user" else None


def a20(request: Request) -> Iterator[Found]:
    for _, turn, reply in _replies(request):
        answered = set(_results(reply.blocks)) if reply else set()
        together = set(_results(reply.entries[0].blocks)) if reply else set()
        for block in turn.blocks:
            if block.kind != "tool_use":
                continue
            name = block.data.get("id")
            if not is_one_of(name, answered):
                yield block.path, f"call {name!r} has no result in the next message"
            elif request.conservative and name not in together:
                yield block.path, f"the result of call {name!r} is not in the one user message right after it"


def a21(request: Request) -> Iterator[Found]:
    before: Turn | None = None
    for turn in request.turns:
        if turn.role == "user":
            called = set(_calls(before)) if before is not None and before.role == "assistant" else set()
            for block in turn.blocks:
                if block.kind == "tool_result" and not is_one_of(block.data.get("tool_use_id"), called):
                    yield block.path, f"no call {block.data.get('tool_use_id')!r} in the assistant turn right before"
        before = turn


def a22(request: Request) -> Iterator[Found]:
    for turn in request.turns:
        if turn.role != "user":
            continue
        other = False
        for block in turn.blocks:
            if block.kind == "tool_result" and other:
                yield block.path, "a result stands behind other content of its user turn"
            other = other or block.kind != "tool_result"


def a23(request: Request) -> Iterator[Found]:
    for turn in request.turns:
        seen: set[str] = set()
        for block in turn.blocks:
            name = block.data.get("tool_use_id")
            if turn.role == "user" and block.kind == "tool_result" and isinstance(name, str):
                if name in seen:
                    yield block.path, f"a second result for call {name!r}"
                seen.add(name)


def a24(request: Request) -> Iterator[Found]:
    seen: set[str] = set()
    for block in request.blocks("tool_use"):
        name = block.data.get("id")
        if isinstance(name, str):
            if name in seen:
                yield block.path, f"call id {name!r} is used twice"
            seen.add(name)


def a25(request: Request) -> Iterator[Found]:
    for block in request.blocks("tool_use", "tool_result"):
        key = "id" if block.kind == "tool_use" else "tool_use_id"
        name = block.data.get(key)
        if not isinstance(name, str) or ID.fullmatch(name) is None:
            yield f"{block.path}.{key}", f"{name!r} does not match ^[a-zA-Z0-9_-]+$"


def a26(request: Request) -> Iterator[Found]:
    for block in request.blocks("tool_use", *SERVER_CALLS):
        if not isinstance(block.data.get("input"), dict):
            yield f"{block.path}.input", "the input of a call is not an object"


def a27(request: Request) -> Iterator[Found]:
    for block in request.blocks("tool_use"):
        name = block.data.get("name")
        if not isinstance(name, str) or not 1 <= len(name) <= NAME_LENGTH_MAX:
            yield f"{block.path}.name", f"a tool name has 1 to {NAME_LENGTH_MAX} characters"


def a28(request: Request) -> Iterator[Found]:
    tools = request.context.tools or ()
    length_max = DECLARED_NAME_LENGTH_SAFE if request.conservative else DECLARED_NAME_LENGTH_MAX
    for index, name in enumerate(tools):
        if ID.fullmatch(name) is None or len(name) > length_max:
            yield f"tools[{index}]", f"{name!r} is no tool name: 1 to {length_max} of a-z, A-Z, 0-9, _ and -"
        elif name in tools[:index]:
            yield f"tools[{index}]", f"two tools are named {name!r}"


def a29(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        for block in entry.blocks:
            ours = block.kind == "tool_result"
            theirs = block.kind in THINKING | SERVER_CALLS | {"tool_use"} or (block.is_server_result and not ours)
            if (ours and entry.role != "user") or (theirs and entry.role != "assistant"):
                yield block.path, f"a {block.kind} block in a {entry.role} message"
            elif ours and not isinstance(block.data.get("tool_use_id"), str):
                yield block.path, "a result without tool_use_id"


def a30(request: Request) -> Iterator[Found]:
    if request.context.tools == ():
        block = next(request.blocks("tool_use", "tool_result"), None)
        if block is not None:
            yield block.path, "the history holds tool blocks, and the request declares no tools"


def a31(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        for block in entry.blocks:
            if entry.role == "assistant" and block.kind in NOT_IN_ASSISTANT:
                yield block.path, f"a {block.kind} block in an assistant message"


def a32(request: Request) -> Iterator[Found]:
    for block in request.blocks("tool_result"):
        content = block.data.get("content")
        parts = content if isinstance(content, list) and block.data.get("is_error") is True else ()
        if any(not isinstance(part, dict) or part.get("type") != "text" for part in parts):
            yield block.path, "the content of an error result is text only"


def a33(request: Request) -> Iterator[Found]:
    for block in request.blocks("tool_result"):
        content = block.data.get("content", "")
        if isinstance(content, str):
            continue
        if not isinstance(content, list):
            yield f"{block.path}.content", f"the content of a result is text or blocks, not {type(content).__name__}"
        elif any(not isinstance(part, dict) or not is_one_of(part.get("type"), RESULT_CONTENT) for part in content):
            yield f"{block.path}.content", f"a result holds only blocks of type {', '.join(sorted(RESULT_CONTENT))}"


def a35(request: Request) -> Iterator[Found]:
    for index, turn in enumerate(request.turns):
        if turn.role != "assistant" or (request.paused and turn is request.turns[-1]):
            continue
        waiting = _open_server_calls(turn)
        if waiting and _calls(turn):
            following = request.turns[index + 2 : index + 3]
            later = [
                block.data.get("tool_use_id") for each in following for block in each.blocks if block.is_server_result
            ]
            waiting = {name: block for name, block in waiting.items() if following and name not in later}
        for name, block in waiting.items():
            yield block.path, f"server call {name!r} has no result in its turn"


def a36(request: Request) -> Iterator[Found]:
    called: set[str] = set()
    for block in request.blocks():
        if block.kind in SERVER_CALLS:
            called.add(str(block.data.get("id")))
        elif block.kind == "tool_result" or not block.is_server_result:
            continue
        elif not is_one_of(block.data.get("tool_use_id"), called):
            yield block.path, "a server tool's result without its call before it"


def a37(request: Request) -> Iterator[Found]:
    for _, turn, reply in _replies(request):
        if reply is not None and _calls(turn) and _open_server_calls(turn):
            for block in reply.blocks:
                if block.kind != "tool_result":
                    yield block.path, "only results may follow while a server call is open"


def a38(request: Request) -> Iterator[Found]:
    for block in request.blocks("web_search_tool_result"):
        content = block.data.get("content")
        for index, item in enumerate(content if isinstance(content, list) else ()):
            if isinstance(item, dict) and not request.context.genuine(item.get("encrypted_content")):
                yield (
                    f"{block.path}.content[{index}]",
                    "a search result without its encrypted content goes not back verbatim",
                )


CHECKS = (
    Check("A20", a20),
    Check("A21", a21),
    Check("A22", a22),
    Check("A23", a23),
    Check("A24", a24),
    Check("A25", a25),
    Check("A26", a26),
    Check("A27", a27),
    Check("A28", a28),
    Check("A29", a29),
    Check("A30", a30, firm=False),
    Check("A31", a31),
    Check("A32", a32),
    Check("A33", a33),
    Check("A35", a35),
    Check("A36", a36),
    Check("A37", a37),
    Check("A38", a38, firm=False),
)
