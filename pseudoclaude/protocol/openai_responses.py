"""OpenAI Responses, rules R01 to R23: items, calls and outputs, reasoning, ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pseudoclaude.protocol.context import Context
from pseudoclaude.protocol.names import is_one_of
from pseudoclaude.protocol.values import Check, Found

OUTPUT_OF = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
"""Which output answers which call."""

OUTPUTS = frozenset(OUTPUT_OF.values())
ROLES = ("user", "assistant", "system", "developer")
PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "web_search_call": "ws",
    "file_search_call": "fs",
}
ID_LENGTH_MAX = CALL_ID_LENGTH_MAX = 64
ID = re.compile(r"[A-Za-z0-9_-]+")
ASSISTANT_PARTS = frozenset({"output_text", "refusal"})
INPUT_PARTS = frozenset({"input_text", "input_image", "input_file", "input_audio"})

_FUNCTION = frozenset({"type", "id", "call_id", "name", "namespace", "caller", "status"})
ITEM_KEYS: dict[str, frozenset[str]] = {
    "message": frozenset({"type", "id", "role", "content", "phase", "status"}),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content"}),
    "function_call": _FUNCTION | {"arguments", "async"},
    "function_call_output": _FUNCTION | {"output"},
    "custom_tool_call": _FUNCTION - {"status"} | {"input", "async"},
    "custom_tool_call_output": frozenset({"type", "id", "call_id", "caller", "output"}),
    "compaction": frozenset({"type", "id", "encrypted_content"}),
}
"""Members that an item may have on the way in (item types of openai 3.57, without ``reasoning.status``, K9)."""


class Item(NamedTuple):
    path: str
    kind: str
    data: dict[str, Any]

    @property
    def call_id(self) -> Any:
        return self.data.get("call_id")

    @property
    def is_assistant(self) -> bool:
        return self.kind == "message" and self.data.get("role") == "assistant"


class Request:
    """One request, indexed; an item without a type is a message if it has a role, and else named in ``malformed``."""

    def __init__(self, messages: Sequence[Any], context: Context, conservative: bool) -> None:
        self.messages = messages
        self.context = context
        self.conservative = conservative
        self.malformed: list[Found] = []
        self.items: list[Item] = []
        for index, data in enumerate(messages):
            path = f"input[{index}]"
            kind = data.get("type", "message" if "role" in data else None) if isinstance(data, dict) else None
            if isinstance(kind, str):
                self.items.append(Item(path, kind, data))
            else:
                self.malformed.append((path, "an item is an object with a type or a role"))

    def of(self, *kinds: str) -> Iterator[Item]:
        return (item for item in self.items if item.kind in kinds)


def r01(request: Request) -> Iterator[Found]:
    outputs = {item.call_id for item in request.of(*OUTPUTS) if isinstance(item.call_id, str)}
    for item in request.of(*OUTPUT_OF):
        if not is_one_of(item.call_id, outputs):
            yield item.path, f"no output for call {item.call_id!r}"
    for call_id in _open_on_server(request) or ():
        if not is_one_of(call_id, outputs):
            yield "input", f"no output for call {call_id!r}, which waits in the previous response"


def _open_on_server(request: Request) -> list[Any] | None:
    """Call ids that wait in the state the request continues; None if there is no such state, or not known what it holds."""
    state = request.context.previous_response
    open_calls = state.get("open_calls") if state is not None else None
    return open_calls if isinstance(open_calls, list) else None


def r02(request: Request) -> Iterator[Found]:
    called: list[Any] = list(_open_on_server(request) or ())
    unknowable = request.context.previous_response is not None and _open_on_server(request) is None
    for item in request.items:
        if item.kind in OUTPUT_OF:
            called.append(item.call_id)
        elif item.kind in OUTPUTS and item.call_id is not None and item.call_id not in called and not unknowable:
            yield item.path, f"no call {item.call_id!r} before this output"
        elif item.kind in OUTPUTS and item.call_id is None and not isinstance(item.data.get("name"), str):
            yield item.path, "an output with neither call_id nor name"


def r03(request: Request) -> Iterator[Found]:
    if request.context.strict_upstream:
        for item in request.of(*OUTPUTS):
            if item.call_id is None:
                yield item.path, "this server wants a call_id on every output"


def r04(request: Request) -> Iterator[Found]:
    wanted = {item.call_id: OUTPUT_OF[item.kind] for item in request.of(*OUTPUT_OF) if isinstance(item.call_id, str)}
    for item in request.of(*OUTPUTS):
        if isinstance(item.call_id, str) and wanted.get(item.call_id, item.kind) != item.kind:
            yield item.path, f"{item.kind} answers a call that wants {wanted[item.call_id]}"


def r05(request: Request) -> Iterator[Found]:
    following: Item | None = None
    for item in reversed(request.items):
        if item.kind != "reasoning":
            following = item
        elif following is None or not _is_reply(following):
            yield item.path, "reasoning without the item it was produced for right behind it"
        elif _lost_its_partner(request, item, following):
            yield item.path, "reasoning goes with its id, and the item behind it is not the one the server knows"


def _is_reply(item: Item) -> bool:
    if item.kind == "message":
        return item.is_assistant and _has_text(item)
    return item.kind not in OUTPUTS


def _lost_its_partner(request: Request, reasoning: Item, following: Item) -> bool:
    """The server looks up what it stored; seen for a message without its id, assumed for other items."""
    known = reasoning.data.get("id") is not None and request.context.store is not False
    return known and following.data.get("id") is None and (following.kind == "message" or request.conservative)


def _has_text(item: Item) -> bool:
    content = item.data.get("content")
    if not isinstance(content, list):
        return bool(content)
    return any(isinstance(part, dict) and (part.get("text") or part.get("refusal")) for part in content)


def r06(request: Request) -> Iterator[Found]:
    seen: set[str] = set()
    for item in request.items:
        name = item.data.get("id")
        if item.kind == "reasoning":
            seen.add(str(name))
        wanted = request.context.pairs.get(name) if isinstance(name, str) else None
        if wanted is not None and wanted not in seen:
            yield item.path, f"item {name!r} goes with its id and without its reasoning {wanted!r}"


def r07(request: Request) -> Iterator[Found]:
    stateless = request.context.store is False
    known = request.context.known_ids
    for item in request.items:
        name = item.data.get("id")
        unknown = known is not None and isinstance(name, str) and name not in known
        bare = item.kind == "item_reference" or (item.kind == "reasoning" and not item.data.get("encrypted_content"))
        if bare and (unknown or (stateless and known is None)):
            yield item.path, f"{item.kind} {name!r} refers to what the server did not store"
        elif unknown and request.conservative:
            yield f"{item.path}.id", f"the server does not know the id {name!r}"


def r09(request: Request) -> Iterator[Found]:
    seen: set[str] = set()
    for item in request.items:
        name = item.data.get("id")
        if isinstance(name, str):
            if name in seen:
                yield f"{item.path}.id", f"two items have the id {name!r}"
            seen.add(name)


def r10(request: Request) -> Iterator[Found]:
    for item in request.items:
        name = item.data.get("id")
        if name is None:
            continue
        prefix = PREFIXES.get(item.kind, "")
        if not isinstance(name, str) or len(name) > ID_LENGTH_MAX or ID.fullmatch(name) is None:
            yield f"{item.path}.id", f"{name!r} is no item id: 1 to {ID_LENGTH_MAX} of A-Z, a-z, 0-9, _ and -"
        elif not name.startswith(prefix):
            yield f"{item.path}.id", f"{name!r} does not begin with {prefix!r}"


def r11(request: Request) -> Iterator[Found]:
    for item in request.of(*OUTPUT_OF, *OUTPUTS):
        call_id = item.call_id
        if call_id is None and item.kind in OUTPUTS:
            continue
        if not isinstance(call_id, str) or not 1 <= len(call_id) <= CALL_ID_LENGTH_MAX:
            yield f"{item.path}.call_id", f"a call_id has 1 to {CALL_ID_LENGTH_MAX} characters"


def r12(request: Request) -> Iterator[Found]:
    for item in request.of("reasoning"):
        if not isinstance(item.data.get("summary"), list):
            yield item.path, "a reasoning item has a 'summary' list"


def r13(request: Request) -> Iterator[Found]:
    for item in request.of("reasoning"):
        if item.data.get("content"):
            yield f"{item.path}.content", "the content of a reasoning item is not accepted back"


def r14(request: Request) -> Iterator[Found]:
    for item in request.items:
        known = ITEM_KEYS.get(item.kind)
        for key in item.data if known is not None else ():
            if known is not None and key not in known:
                yield f"{item.path}.{key}", "a member that is output only, or unknown"


def r15(request: Request) -> Iterator[Found]:
    for item in request.of("reasoning", "compaction"):
        value = item.data.get("encrypted_content")
        if value is not None and not request.context.genuine(value):
            yield f"{item.path}.encrypted_content", "encrypted content that is not the provider's"


def r16(request: Request) -> Iterator[Found]:
    for item in request.of("message"):
        content = item.data.get("content")
        accepted = ASSISTANT_PARTS if item.is_assistant else INPUT_PARTS
        for index, part in enumerate(content if isinstance(content, list) else ()):
            kind = part.get("type") if isinstance(part, dict) else None
            if not is_one_of(kind, accepted):
                yield f"{item.path}.content[{index}]", f"a part of type {kind!r} in a {item.data.get('role')} message"


def r17(request: Request) -> Iterator[Found]:
    yield from request.malformed
    for item in request.of("message"):
        if item.data.get("role") not in ROLES:
            yield f"{item.path}.role", f"there is no role {item.data.get('role')!r}; tool results are items"
        elif not isinstance(item.data.get("content"), (str, list)):
            yield f"{item.path}.content", "content is text or a list of parts"


def r18(request: Request) -> Iterator[Found]:
    for item in request.items:
        key = {"function_call": "arguments", "custom_tool_call": "input"}.get(item.kind)
        if key is not None and not isinstance(item.data.get(key), str):
            yield f"{item.path}.{key}", f"{key} is text"
        elif item.kind in ("function_call_output", "custom_tool_call_output"):
            output = item.data.get("output")
            parts = output if isinstance(output, list) else ()
            if not isinstance(output, (str, list)) or any(
                not isinstance(p, dict) or not is_one_of(p.get("type"), INPUT_PARTS) for p in parts
            ):
                yield f"{item.path}.output", "output is text or a list of input parts"


def r21(request: Request) -> Iterator[Found]:
    for item in request.of("compaction"):
        if not isinstance(item.data.get("encrypted_content"), str):
            yield item.path, "a compaction item without its encrypted content"
    for item in request.of("compaction_trigger"):
        if item is not request.items[-1]:
            yield item.path, "a compaction trigger that is not the last item"


def r22(request: Request) -> Iterator[Found]:
    asked = {item.data.get("id") for item in request.of("mcp_approval_request") if isinstance(item.data.get("id"), str)}
    for item in request.of("program"):
        if not isinstance(item.data.get("fingerprint"), str):
            yield item.path, "a program without its fingerprint"
    for item in request.of("mcp_approval_response"):
        known = is_one_of(item.data.get("approval_request_id"), asked)
        if not known and request.context.previous_response is None:
            yield item.path, "an approval without its request"


def r23(request: Request) -> Iterator[Found]:
    owners: dict[str, list[str]] = {}
    for name, reasoning in request.context.pairs.items():
        owners.setdefault(reasoning, []).append(name)
    for index, item in enumerate(request.items[:-1]):
        owned = owners.get(str(item.data.get("id")), []) if item.kind == "reasoning" else []
        present = any(other.data.get("id") in owned for other in request.items)
        following = request.items[index + 1]
        if present and following.kind != "reasoning" and following.data.get("id") not in owned:
            yield following.path, "an item stands between reasoning and the item it was produced for"


CHECKS = (
    Check("R01", r01),
    Check("R02", r02),
    Check("R03", r03, firm=False),
    Check("R04", r04),
    Check("R05", r05),
    Check("R06", r06, firm=False),
    Check("R07", r07),
    Check("R09", r09),
    Check("R10", r10),
    Check("R11", r11),
    Check("R12", r12),
    Check("R13", r13),
    Check("R14", r14, firm=False),
    Check("R15", r15),
    Check("R16", r16),
    Check("R17", r17),
    Check("R18", r18),
    Check("R21", r21),
    Check("R22", r22, firm=False),
    Check("R23", r23, firm=False),
)
