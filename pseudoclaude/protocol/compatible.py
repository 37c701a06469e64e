"""Other servers, rules X01 to X12: a dialect each, most of them Chat Completions with a difference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pseudoclaude.protocol.arguments import parse_object
from pseudoclaude.protocol.context import Context
from pseudoclaude.protocol.openai_chat import Request as ChatRequest
from pseudoclaude.protocol.values import Check, Found

MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")
SIGNING_MODEL = "gemini-3"

# --- Chat Completions with a difference ------------------------------------------------------------------------


def x01(request: ChatRequest) -> Iterator[Found]:
    """Also X02: the two servers ask for the same."""
    if request.context.thinking == "disabled":
        return
    for entry in request.entries:
        if entry.calls and not entry.data.get("reasoning_content"):
            yield entry.path, "in thinking mode an assistant message with calls goes back with its reasoning_content"


def x03(request: ChatRequest) -> Iterator[Found]:
    for before, entry in pairwise(request.entries):
        if before.role == "tool" and entry.role == "user":
            yield entry.path, "a user message right after a tool message; the assistant answers first"


def x04(request: ChatRequest) -> Iterator[Found]:
    for call in request.calls():
        if not isinstance(call.id, str) or MISTRAL_ID.fullmatch(call.id) is None:
            yield f"{call.path}.id", f"{call.id!r} is not 9 letters or digits"


def x05(request: ChatRequest) -> Iterator[Found]:
    for caller, run in request.rounds():
        if len(run) != len(caller.calls if caller is not None else ()):
            yield (caller or run[0]).path, "not as many tool messages as calls"
    if request.entries and request.entries[-1].role not in ("user", "tool"):
        yield request.entries[-1].path, "the last message is from the user or a tool"


def x08(request: ChatRequest) -> Iterator[Found]:
    for call in request.calls():
        arguments = call.inner.get("arguments")
        if not isinstance(arguments, str) or parse_object(arguments) is None:
            yield (
                f"{call.path}.function.arguments",
                "the server parses arguments in the history, and these do not parse",
            )


def x09(request: ChatRequest) -> Iterator[Found]:
    for before, entry in pairwise(request.entries):
        if before.role == entry.role and entry.role in ("user", "assistant"):
            yield entry.path, f"two {entry.role} messages in a row; chat templates want them to alternate"


def x10(request: ChatRequest) -> Iterator[Found]:
    for entry in request.entries:
        if entry.role == "assistant" and entry.data.get("content") is None:
            yield f"{entry.path}.content", "null content is refused, also beside calls"


# --- Gemini, Bedrock Converse ----------------------------------------------------------------------------------


class Content(NamedTuple):
    """A message of either API; ``parts`` are its objects, others are left out and named in ``Request.malformed``."""

    path: str
    role: Any
    parts: list[dict[str, Any]]

    def holding(self, key: str) -> list[dict[str, Any]]:
        return [part for part in self.parts if key in part]


class Request:
    def __init__(self, messages: Sequence[Any], context: Context, conservative: bool) -> None:
        self.messages = messages
        self.context = context
        self.conservative = conservative
        self.malformed: list[Found] = []
        self.contents: list[Content] = []
        for index, message in enumerate(messages):
            path = f"messages[{index}]"
            listed = message.get("parts", message.get("content")) if isinstance(message, dict) else None
            if not isinstance(listed, list) or not all(isinstance(part, dict) for part in listed) or not listed:
                self.malformed.append(
                    (path, "a message is an object with a role and a list of parts that is not empty")
                )
            else:
                self.contents.append(Content(path, message.get("role"), listed))


def x06(request: Request) -> Iterator[Found]:
    yield from request.malformed
    contents = request.contents
    for index, content in enumerate(contents):
        before = contents[index - 1] if index else None
        after = contents[index + 1] if index + 1 < len(contents) else None
        calls = len(content.holding("functionCall"))
        answers = len(after.holding("functionResponse")) if after is not None else 0
        if calls and answers != calls:
            yield content.path, f"{calls} function calls and {answers} function responses"
        if calls and (before is None or before.role == "model"):
            yield content.path, "a turn of function calls follows a user turn or function responses"
        if content.holding("functionResponse") and (before is None or not before.holding("functionCall")):
            yield content.path, "function responses without function calls before them"


def x07(request: Request) -> Iterator[Found]:
    for content in request.contents:
        for index, part in enumerate(content.holding("functionCall")):
            seal = part.get("thoughtSignature")
            missing = seal is None and index == 0 and request.context.model.startswith(SIGNING_MODEL)
            if missing or (seal is not None and not request.context.genuine(seal)):
                yield content.path, "a replayed function call without its thoughtSignature"


def x12(request: Request) -> Iterator[Found]:
    yield from request.malformed
    for before, content in pairwise(request.contents):
        if before.role == content.role:
            yield content.path, f"two {content.role} messages in a row"
    for content in request.contents[:1]:
        if content.role != "user":
            yield content.path, "the first message is not from the user"
    if request.context.tools == () and any(c.holding("toolUse") or c.holding("toolResult") for c in request.contents):
        yield "messages", "the history holds tool blocks, and the request has no toolConfig"
    yield from _converse_pairs(request.contents)


def _converse_pairs(contents: list[Content]) -> Iterator[Found]:
    called: list[Any] = []
    for content in contents:
        answered = [_member(part, "toolResult") for part in content.holding("toolResult")]
        if sorted(map(str, called)) != sorted(map(str, answered)):
            yield content.path, "tool results that are not exactly those of the calls right before"
        called = [_member(part, "toolUse") for part in content.holding("toolUse")]
    if called:
        yield contents[-1].path, "calls without results"


def _member(part: dict[str, Any], key: str) -> Any:
    inner = part[key]
    return inner.get("toolUseId") if isinstance(inner, dict) else None


DEEPSEEK = (Check("X01", x01),)
KIMI = (Check("X02", x01),)
MISTRAL = (Check("X03", x03), Check("X04", x04), Check("X05", x05))
VLLM = (Check("X08", x08), Check("X09", x09, firm=False))
OLLAMA = (Check("X10", x10),)
GEMINI = (Check("X06", x06), Check("X07", x07))
BEDROCK = (Check("X12", x12),)
