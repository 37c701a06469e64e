"""Generated canonical histories: any roles in any order, ids that collide, texts that providers refuse, natives of all kinds."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from pseudoclaude.messages import History, Message, Native, ToolCall, ToolResult
from tests.protocol.json_values import JSON_VALUES

DERANDOMIZED = settings(derandomize=True, deadline=None, database=None, max_examples=150)

TEXTS = st.sampled_from(
    [
        "",
        " ",
        "\n\t",
        "hello",
        "wörld 👩‍👩‍👧",
        "tail \ud83d",
        "\udce9x",
        "a\x00b",
        "\x1f",
        "\u2003",
        "\u2028",
        "Sure: ",
        "x" * 300,
    ]
)
IDS = st.sampled_from(
    ["", "call_0", "call_1", "a.b", "a:b", "a_b", "functions.Bash:0", "é", "\ud800", "i" * 41, "i" * 65, "toolu_01A"]
)
NAMES = st.sampled_from(["read_file", "fs.read", "", "n" * 65, "n" * 201, "日本"])
ARGUMENTS = st.sampled_from(
    [
        "{}",
        '{"path":"a.py"}',
        "",
        '{"cmd": "',
        "null",
        "[1]",
        '"text"',
        '{"x":NaN}',
        '{"x":1e999}',
        '{"t":"\\ud83d"}',
        '{"a":1,"a":2}',
        '{"deep":' + "[" * 400 + "]" * 400 + "}",
        '{"n":' + "9" * 5000 + "}",
        '{"s":"\ud83d"}',
        '{"o":{"l":[1,null,{"x":"y"}]}}',
    ]
)
SIGNATURES = st.sampled_from(["sig:ok:1", "sig:ok:2", "", "placeholder", "Ab3" * 30])
STOPS = st.sampled_from([None, "end_turn", "tool_use", "max_tokens", "pause_turn", "interrupted", "refusal"])

CALLS = st.lists(st.builds(ToolCall, IDS, NAMES, ARGUMENTS), max_size=3).map(tuple)
RESULTS = st.builds(
    ToolResult, IDS, TEXTS, is_error=st.booleans(), origin=st.sampled_from(["tool", "tool", "interrupted"])
)


@st.composite
def _assistants(draw: st.DrawFn) -> Message:
    message = Message("assistant", draw(TEXTS), draw(CALLS), stop=draw(STOPS))
    build = draw(st.sampled_from([None, None, _anthropic, _responses, _chat, _stranger]))
    if build is None:
        return message
    return Message("assistant", message.content, message.tool_calls, native=draw(build(message)), stop=message.stop)


@st.composite
def _anthropic(draw: st.DrawFn, message: Message) -> Native:
    """Blocks that say what the message says, with thinking, server tools and damage around them."""
    blocks: list[dict[str, Any]] = draw(st.sampled_from(ANTHROPIC_BEGINNINGS)).copy()
    thinking = {"type": "thinking", "thinking": "step", "signature": draw(SIGNATURES)}
    if draw(st.booleans()):
        blocks.append(draw(st.sampled_from([thinking, {"type": "redacted_thinking", "data": draw(SIGNATURES)}])))
    if draw(st.booleans()):
        blocks.append(
            {
                "type": "server_tool_use",
                "id": draw(st.sampled_from(["srv_1", "srv_1", "srv_2", "", "s.1"])),
                "name": "web_search",
                "input": {},
            }
        )
    if draw(st.booleans()):
        found = {"type": "web_search_result", "title": "t", "url": "u"}
        found["encrypted_content"] = draw(st.sampled_from(["enc:ok:1", "enc:ok:1", ""]))
        blocks.append({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [found]})
    if message.content or draw(st.booleans()):
        blocks.append({"type": "text", "text": message.content, "citations": None, "parsed_output": 1})
    for call in message.tool_calls:
        arguments = {} if draw(st.booleans()) else {"path": "a.py"}
        blocks.append(
            {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments, "caller": {"type": "direct"}}
        )
    extra = [
        [],
        [],
        [thinking],
        [{"type": "text", "text": ""}],
        [{"type": "container_upload", "file_id": "f"}],
        [{"type": 1}],
        [{"type": ["odd"]}],
        [{"type": "new_kind", "cache_control": {"type": "ephemeral"}}] * 5,
        ["x"],
    ]
    return Native("anthropic", "messages", "claude", blocks + draw(st.sampled_from(extra)))


ANTHROPIC_BEGINNINGS: list[list[dict[str, Any]]] = [
    [],
    [],
    [],
    [{"type": "compaction", "content": "sum", "signature": "cmp:ok:1"}],
    [{"type": "compaction", "content": "sum", "signature": ""}],
    [{"type": "compaction", "content": "", "signature": "cmp:ok:1"}],
    [{"type": "compaction", "content": ["odd"], "encrypted_content": 5}],
]


@st.composite
def server_items(draw: st.DrawFn) -> dict[str, Any]:
    """Calls that the server ran, which cannot go without their id: as they should be, or with an odd member."""
    item: dict[str, Any] = dict(draw(st.sampled_from(SERVER_ITEMS)))
    if draw(st.booleans()):
        return item
    item["id"] = draw(
        st.sampled_from(["ws_1", "fs_1", "ci_1", "rs_1", "", "ws 1", "ws_" + "1" * 62, 5, ["ws_1"], None])
    )
    odd_key = draw(st.sampled_from([key for key in item if key not in ("type", "id")]))
    item[odd_key] = draw(st.sampled_from([item[odd_key], 5, "x", ["odd"], {"type": ["odd"]}, None]))
    return item


SERVER_ITEMS: list[dict[str, Any]] = [
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": None},
    {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "code": None,
        "container_id": "c",
        "outputs": [],
    },
]


@st.composite
def _responses(draw: st.DrawFn, message: Message) -> Native:
    items: list[dict[str, Any]] = []
    reasoning = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "status": None,
        "content": [{"type": "reasoning_text", "text": "x"}],
    }
    if draw(st.booleans()):
        items.append(reasoning | {"encrypted_content": draw(st.sampled_from(["enc:ok:1", "enc:bad:1", None]))})
    if draw(st.booleans()):
        items.append(draw(server_items()))
    if message.content or draw(st.booleans()):
        part = {"type": "output_text", "text": message.content, "annotations": [], "logprobs": [], "parsed": None}
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for call in message.tool_calls:
        items.append(
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
                "status": "x",
            }
        )
    extra = [
        [],
        [],
        [reasoning | {"encrypted_content": "enc:ok:2"}],
        [{"type": "item_reference", "id": "msg_9"}],
        [{"no": "type"}],
        [{"type": {"odd": 1}}],
        [
            reasoning | {"encrypted_content": "enc:ok:3", "summary": 5},
            {"type": "message", "role": "assistant", "content": []},
        ],
    ]
    return Native("openai", "responses", "gpt", items + draw(st.sampled_from(extra)))


@st.composite
def _chat(draw: st.DrawFn, message: Message) -> Native:
    payload: dict[str, Any] = {
        "role": "assistant",
        "content": message.content or None,
        "annotations": [],
        "audio": None,
    }
    if draw(st.booleans()):
        payload |= {"content": None, "refusal": message.content}
    if draw(st.booleans()):
        payload |= {
            "name": draw(st.sampled_from(["ok", "Jo Do"])),
            "reasoning_content": draw(st.sampled_from(["why", 5, ["odd"]])),
        }
    if message.tool_calls:
        payload["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "index": 0,
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    return Native("openai", "chat", "gpt", payload)


def _stranger(message: Message) -> st.SearchStrategy[Native]:
    payloads: list[Any] = [None, [], "text", {"role": "user"}, [{"type": "text", "text": "something else"}], [[]], 7]
    apis = st.sampled_from([("anthropic", "messages"), ("openai", "chat"), ("openai", "responses"), ("other", "other")])
    odd = st.one_of(st.sampled_from(payloads), JSON_VALUES, st.lists(JSON_VALUES, max_size=3))
    return st.builds(lambda api, payload: Native(*api, "m", payload), apis, odd)


MESSAGES = st.one_of(
    st.builds(lambda text: Message("user", text), TEXTS),
    _assistants(),
    st.builds(lambda result: Message("tool", tool_result=result), RESULTS),
)
HISTORIES: st.SearchStrategy[History] = st.lists(MESSAGES, max_size=12).map(tuple)
"""Anything at all."""


@st.composite
def sound_histories(draw: st.DrawFn) -> History:
    """A history as a run of the product leaves it: each call answered directly behind its message."""
    history: list[Message] = [Message("user", draw(TEXTS))]
    for _ in range(draw(st.integers(0, 4))):
        message = draw(_assistants())
        history.append(message)
        history += [Message("tool", tool_result=ToolResult(call.id, draw(TEXTS))) for call in message.tool_calls]
        if draw(st.booleans()):
            history.append(Message("user", draw(TEXTS)))
    return tuple(history)


@st.composite
def damaged_histories(draw: st.DrawFn) -> History:
    """A sound history with some messages dropped, doubled or moved."""
    history = list(draw(sound_histories()))
    for _ in range(draw(st.integers(0, 3))):
        if not history:
            break
        at = draw(st.integers(0, len(history) - 1))
        how = draw(st.sampled_from(["drop", "double", "move", "cut"]))
        if how == "drop":
            del history[at]
        elif how == "double":
            history.insert(draw(st.integers(0, len(history))), history[at])
        elif how == "move":
            message = history.pop(at)
            history.insert(draw(st.integers(0, len(history))), message)
        else:
            history = history[:at] if draw(st.booleans()) else history[at:]
    return tuple(history)


ANY_HISTORY = st.one_of(HISTORIES, damaged_histories(), sound_histories())
