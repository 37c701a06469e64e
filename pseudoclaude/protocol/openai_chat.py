"""OpenAI Chat Completions, rules C01 to C20."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pseudoclaude.protocol.arguments import parse_object
from pseudoclaude.protocol.context import Context
from pseudoclaude.protocol.names import is_one_of
from pseudoclaude.protocol.values import Check, Found

ROLES = ("developer", "system", "user", "assistant", "tool", "function")
NAME = re.compile(r"[a-zA-Z0-9_-]+")
NAME_LENGTH_MAX = 64
CALL_ID_LENGTH_MAX = 40
PARTS = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "tool": frozenset({"text"}),
}


class Call(NamedTuple):
    """One entry of ``tool_calls``; ``inner`` is its ``function`` or ``custom`` object, empty if there is none."""

    path: str
    data: dict[str, Any]
    inner: dict[str, Any]

    @property
    def id(self) -> Any:
        return self.data.get("id")


class Entry(NamedTuple):
    path: str
    role: Any
    data: dict[str, Any]
    calls: list[Call]


class Request:
    """One request, indexed; any JSON value can be, what is no message is named in ``malformed``."""

    def __init__(self, messages: Sequence[Any], context: Context, conservative: bool) -> None:
        self.messages = messages
        self.context = context
        self.conservative = conservative
        self.malformed: list[Found] = []
        self.entries: list[Entry] = []
        for index, message in enumerate(messages):
            path = f"messages[{index}]"
            if isinstance(message, dict):
                self.entries.append(Entry(path, message.get("role"), message, _calls(path, message)))
            else:
                self.malformed.append((path, f"a message is an object, not {type(message).__name__}"))

    def calls(self) -> Iterator[Call]:
        for entry in self.entries:
            yield from entry.calls

    def rounds(self) -> Iterator[tuple[Entry | None, list[Entry]]]:
        """Each run of tool messages with the message right before it, and each message with calls but no such run."""
        before: Entry | None = None
        run: list[Entry] = []
        for entry in self.entries:
            if entry.role == "tool":
                run.append(entry)
                continue
            if run or (before is not None and before.calls):
                yield before, run
            before, run = entry, []
        if run or (before is not None and before.calls):
            yield before, run


def _calls(path: str, message: dict[str, Any]) -> list[Call]:
    listed = message.get("tool_calls")
    calls = []
    if isinstance(listed, list) and message.get("role") == "assistant":
        for index, data in enumerate(listed):
            data = data if isinstance(data, dict) else {}
            inner = data.get("custom") if data.get("type") == "custom" else data.get("function")
            calls.append(Call(f"{path}.tool_calls[{index}]", data, inner if isinstance(inner, dict) else {}))
    return calls


def _parts(entry: Entry) -> Iterator[tuple[str, Any]]:
    content = entry.data.get("content")
    if isinstance(content, list):
        for index, part in enumerate(content):
            yield f"{entry.path}.content[{index}]", part


def c01(request: Request) -> Iterator[Found]:
    if not request.messages:
        yield "messages", "the list is empty"


def c02(request: Request) -> Iterator[Found]:
    yield from request.malformed
    roles = request.context.roles or ROLES
    for entry in request.entries:
        if entry.role not in roles:
            yield f"{entry.path}.role", f"role {entry.role!r} is not accepted; {', '.join(roles)} are"


def c03(request: Request) -> Iterator[Found]:
    for caller, run in request.rounds():
        answered = [entry.data.get("tool_call_id") for entry in run]
        for call in caller.calls if caller is not None else ():
            if call.id not in answered:
                yield call.path, f"call {call.id!r} has no tool message right after its message"


def c04(request: Request) -> Iterator[Found]:
    for caller, run in request.rounds():
        called = [call.id for call in caller.calls] if caller is not None else []
        for entry in run:
            name = entry.data.get("tool_call_id")
            if isinstance(name, str) and name not in called:
                yield entry.path, f"no call {name!r} in the assistant message before this run of tool messages"


def c05(request: Request) -> Iterator[Found]:
    for _, run in request.rounds():
        seen: set[str] = set()
        for entry in run:
            name = entry.data.get("tool_call_id")
            if isinstance(name, str):
                if name in seen:
                    yield entry.path, f"a second tool message for call {name!r}"
                seen.add(name)


def c06(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        if entry.role == "tool" and not isinstance(entry.data.get("tool_call_id"), str):
            yield entry.path, "a tool message without tool_call_id"


def c07(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        if entry.data.get("tool_calls") == []:
            yield f"{entry.path}.tool_calls", "an empty list of calls; leave the key out"


def c08(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        if entry.role == "assistant" and not entry.calls and entry.data.get("function_call") is None:
            content = entry.data.get("content")
            if not isinstance(content, (str, list)) or content == []:
                yield f"{entry.path}.content", "an assistant message without content and without calls"


def c09(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        if entry.role in ("system", "developer", "user", "tool") and not isinstance(
            entry.data.get("content"), (str, list)
        ):
            yield f"{entry.path}.content", "content is text or a list of parts"


def c10(request: Request) -> Iterator[Found]:
    for call in request.calls():
        if isinstance(call.id, str) and len(call.id) > CALL_ID_LENGTH_MAX:
            yield (
                f"{call.path}.id",
                f"a call id of {len(call.id)} characters; {CALL_ID_LENGTH_MAX} are accepted everywhere",
            )


def c11(request: Request) -> Iterator[Found]:
    for call in request.calls():
        name = call.inner.get("name")
        if isinstance(name, str) and (len(name) > NAME_LENGTH_MAX or NAME.fullmatch(name) is None):
            yield f"{call.path}.name", f"{name!r} does not match ^[a-zA-Z0-9_-]{{1,{NAME_LENGTH_MAX}}}$"


def c12(request: Request) -> Iterator[Found]:
    for call in request.calls():
        if "arguments" in call.inner and not isinstance(call.inner["arguments"], str):
            yield f"{call.path}.function.arguments", "arguments are text, not an object"


def c13(request: Request) -> Iterator[Found]:
    for call in request.calls():
        arguments = call.inner.get("arguments")
        if isinstance(arguments, str) and parse_object(arguments) is None:
            yield f"{call.path}.function.arguments", "arguments do not parse as a JSON object"


def c14(request: Request) -> Iterator[Found]:
    seen: set[str] = set()
    for call in request.calls():
        if isinstance(call.id, str):
            if call.id in seen:
                yield f"{call.path}.id", f"call id {call.id!r} is used twice"
            seen.add(call.id)


def c17(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        for path, part in _parts(entry):
            if entry.role != "user" and isinstance(part, dict) and part.get("type") == "image_url":
                yield path, "an image outside of a user message"


def c18(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        accepted = PARTS.get(entry.role) if isinstance(entry.role, str) else None
        for path, part in _parts(entry):
            kind = part.get("type") if isinstance(part, dict) else None
            if accepted is not None and not is_one_of(kind, accepted):
                yield path, f"a part of type {kind!r} in a {entry.role} message"


def c19(request: Request) -> Iterator[Found]:
    for call in request.calls():
        wanted = ("name", "input") if call.data.get("type") == "custom" else ("name", "arguments")
        if call.data.get("type") not in ("function", "custom") or not isinstance(call.id, str):
            yield call.path, "a call has an id and a type, 'function' or 'custom'"
        elif not all(key in call.inner for key in wanted) or not isinstance(call.inner["name"], str):
            yield call.path, f"a {call.data['type']} call has {wanted[0]} and {wanted[1]}"


def c20(request: Request) -> Iterator[Found]:
    for entry in request.entries:
        name = entry.data.get("name")
        if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
            yield f"{entry.path}.name", f"{name!r} does not match ^[a-zA-Z0-9_-]+$"


CHECKS = (
    Check("C01", c01),
    Check("C02", c02),
    Check("C03", c03),
    Check("C04", c04),
    Check("C05", c05),
    Check("C06", c06),
    Check("C07", c07),
    Check("C08", c08),
    Check("C09", c09),
    Check("C10", c10, firm=False),
    Check("C11", c11),
    Check("C12", c12),
    Check("C13", c13, firm=False),
    Check("C14", c14, firm=False),
    Check("C17", c17),
    Check("C18", c18),
    Check("C19", c19),
    Check("C20", c20),
)
