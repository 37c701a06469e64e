"""Values that cannot be changed, that hold nothing JSON cannot say, and that come back from a log as they were."""

from __future__ import annotations

import copy
import enum
import math
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.errors import InvalidMessage
from pseudoclaude.messages import (
    INTEGER_MAX,
    INTEGER_MIN,
    NATIVE_DEPTH_MAX,
    ORIGINS,
    STOPS,
    FrozenDict,
    FrozenList,
    Message,
    Native,
    Spill,
    ToolCall,
    ToolResult,
    Usage,
    freeze,
)
from pseudoclaude.session.records import Line, decode_line
from tests.session.build import bytes_of, loaded, machine, opened, user

DERANDOMIZED = settings(derandomize=True, deadline=None, database=None, max_examples=60)


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


class Fraction(float):
    pass


class Who(enum.StrEnum):
    USER = "user"
    END = "end_turn"
    TOOL = "tool"


def native(payload: Any) -> Native:
    return Native("p", "a", "m", payload)


def nested(depth: int, inside: Any = 1) -> Any:
    for _ in range(depth):
        inside = [inside]
    return inside


# --- frozen ----------------------------------------------------------------------------------------------------

LIST_CHANGES = sorted(set(dir(list)) - set(dir(tuple)) - {"copy", "__reversed__"})
DICT_CHANGES = sorted({*(set(dir(dict)) - set(dir(MappingProxyType))), "__ior__"} - {"fromkeys"})


@pytest.mark.parametrize("name", LIST_CHANGES)
def test_no_method_changes_a_frozen_list(name: str) -> None:
    frozen = freeze([3, 1, [2]])
    for place in (frozen, frozen[2]):
        with pytest.raises(TypeError, match="cannot be changed; build a new one"):
            getattr(place, name)([])
    assert frozen == [3, 1, [2]]


@pytest.mark.parametrize("name", DICT_CHANGES)
def test_no_method_changes_a_frozen_dict(name: str) -> None:
    frozen = freeze({"a": {"b": 1}})
    for place in (frozen, frozen["a"]):
        with pytest.raises(TypeError, match="cannot be changed; build a new one"):
            getattr(place, name)({})
    assert frozen == {"a": {"b": 1}}


def test_the_methods_that_change_are_all_known() -> None:
    assert {"append", "sort", "__setitem__", "__delitem__", "__iadd__", "__imul__"} <= set(LIST_CHANGES)
    assert {"update", "setdefault", "popitem", "__setitem__", "__delitem__", "__ior__"} <= set(DICT_CHANGES)


VALUES = [
    Message("user", "x"),
    ToolCall("c", "t", "{}"),
    ToolResult("c", "x"),
    Spill("p", 1, "ab"),
    native([]),
    Usage(1, 2),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_no_field_can_be_set(value: Any) -> None:
    for field in value.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(value, field, getattr(value, field))


def test_what_a_message_was_built_from_may_change_afterwards() -> None:
    calls, payload = [ToolCall("c", "t", "{}")], {"blocks": [{"text": "x"}]}
    message = Message("assistant", tool_calls=calls, native=native(payload))  # type: ignore[arg-type]
    calls.clear()
    payload["blocks"][0]["text"] = "y"
    payload["blocks"].append({})
    assert message.tool_calls == (ToolCall("c", "t", "{}"),)
    assert message.native == native({"blocks": [{"text": "x"}]})


def test_an_empty_list_of_calls_is_no_list_in_the_message() -> None:
    message = Message("user", "x", [])  # type: ignore[arg-type]
    assert message == Message("user", "x")
    assert message.tool_calls == ()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_is_equal_and_as_frozen(copied: Callable[[Any], Any]) -> None:
    message = Message("assistant", native=native({"a": [{"b": 1}]}))
    assert copied(message) == message
    payload = copied(freeze({"a": [{"b": 1}]}))
    assert payload == {"a": [{"b": 1}]}
    assert [type(payload), type(payload["a"]), type(payload["a"][0])] == [FrozenDict, FrozenList, FrozenDict]
    assert type(copied(payload["a"])) is FrozenList


# --- JSON values -----------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters() | st.sampled_from('\ud800\udfff\x00\u2028"\\🙂'), max_size=6)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(INTEGER_MIN, INTEGER_MAX),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
CLEAN_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(INTEGER_MIN, INTEGER_MAX)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@DERANDOMIZED
@given(CLEAN_JSON)
def test_a_payload_equals_what_was_received(value: Any) -> None:
    assert native(value).payload == value


def test_tuples_and_mappings_become_list_and_object() -> None:
    assert freeze((1, MappingProxyType({"a": (2,)}))) == [1, {"a": [2]}]


CYCLE: list[Any] = []
CYCLE.append(CYCLE)

NO_JSON: list[tuple[str, Any, str, str]] = [
    ("nan", {"x": math.nan}, "nan is not a JSON number", "payload.x"),
    ("infinity", {"x": [0.0, -math.inf]}, "-inf is not a JSON number", "payload.x[1]"),
    ("bytes", {"b": b"\x00"}, "bytes is not a JSON value", "payload.b"),
    ("int key", {"d": {1: "int key"}}, "key 1 is not text", "payload.d"),
    ("bytes key", {b"k": 1}, "key a value of type bytes is not text", "payload"),
    ("huge key", {10**5000: 1}, "key a value of type int is not text", "payload"),
    ("set", [{1}], "set is not a JSON value", "payload[0]"),
    ("path", {"p": [{"q": Path("x")}]}, "PosixPath is not a JSON value", "payload.p[0].q"),
    ("huge", {"n": 10**5000}, "an integer beyond 64 bits does not survive JSON readers", "payload.n"),
    ("too large", [INTEGER_MAX + 1], "an integer beyond 64 bits does not survive JSON readers", "payload[0]"),
    ("too small", [INTEGER_MIN - 1], "an integer beyond 64 bits does not survive JSON readers", "payload[0]"),
    ("object", {"o": object()}, "object is not a JSON value", "payload.o"),
    ("nested", nested(2_000), "nested deeper than 200 levels", "payload" + "[0]" * 200),
    ("cycle", {"c": CYCLE}, "nested deeper than 200 levels", "payload.c" + "[0]" * 199),
    ("under a surrogate", {"k\ud800": [math.nan]}, "nan is not a JSON number", "payload.k\ufffd[0]"),
    ("in a frozen one", [FrozenList([math.nan])], "nan is not a JSON number", "payload[0][0]"),
    (
        "deep with a frozen one",
        nested(150, freeze(nested(150))),
        "nested deeper than 200 levels",
        "payload" + "[0]" * 200,
    ),
]


@pytest.mark.parametrize(("value", "what", "where"), [case[1:] for case in NO_JSON], ids=[case[0] for case in NO_JSON])
def test_what_json_cannot_say_is_refused_with_its_place(value: Any, what: str, where: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        native(value)
    assert caught.value.what == what
    assert caught.value.where == where
    str(caught.value).encode("utf-8")


def test_the_deepest_payload_is_loaded_back() -> None:
    message = Message("assistant", native=native(nested(NATIVE_DEPTH_MAX)))
    assert written_and_read(message) == [message]


def test_subclasses_of_text_and_numbers_become_what_json_has() -> None:
    value = freeze([Text("a"), Whole(3), Fraction(1.5), Who.USER, {Text("k"): True}])
    assert value == ["a", 3, 1.5, "user", {"k": True}]
    assert [type(item) for item in value] == [str, int, float, str, FrozenDict]
    assert [type(key) for key in value[4]] == [str]
    assert value[4]["k"] is True
    message = Message(Who.USER, Text("x"), stop=Who.END)  # type: ignore[arg-type]
    assert [type(part) for part in (message.role, message.content, message.stop)] == [str, str, str]
    assert type(ToolResult("c", "x", origin=Who.TOOL).origin) is str  # type: ignore[arg-type]


# --- lone surrogates -------------------------------------------------------------------------------------------

FIELDS: dict[str, Callable[[str], str]] = {
    "Message.content": lambda text: Message("user", text).content,
    "ToolCall.id": lambda text: ToolCall(text, "t", "{}").id,
    "ToolCall.name": lambda text: ToolCall("c", text, "{}").name,
    "ToolCall.arguments": lambda text: ToolCall("c", "t", text).arguments,
    "ToolResult.call_id": lambda text: ToolResult(text, "x").call_id,
    "ToolResult.content": lambda text: ToolResult("c", text).content,
    "Spill.path": lambda text: Spill(text, 1, "ab").path,
    "Spill.sha256": lambda text: Spill("p", 1, text).sha256,
    "Native.provider": lambda text: Native(text, "a", "m", None).provider,
    "Native.api": lambda text: Native("p", text, "m", None).api,
    "Native.model": lambda text: Native("p", "a", text, None).model,
    "Native.payload": lambda text: str(native(text).payload),
    "a text in it": lambda text: str(native([{"k": [text]}]).payload[0]["k"][0]),
    "a key in it": lambda text: str(next(iter(native([{text: 1}]).payload[0]))),
}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("\udce9x", "\ufffdx"),
        (os.fsdecode(b"a\xff"), "a\ufffd"),
        ("é\ud800世\udfff", "é\ufffd世\ufffd"),
        ("世🙂", "世🙂"),
    ],
)
def test_a_lone_surrogate_becomes_u_fffd_in_every_text(field: str, given_text: str, kept: str) -> None:
    assert FIELDS[field](given_text) == kept


# --- wrong types and shapes ------------------------------------------------------------------------------------

CALL, RESULT, SPILL = ToolCall("c", "t", "{}"), ToolResult("c", "x"), Spill("p", 1, "ab")
BUILDERS: dict[str, Callable[..., Any]] = {
    "Message": Message,
    "ToolCall": ToolCall,
    "ToolResult": ToolResult,
    "Spill": Spill,
    "Native": Native,
}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("Message", {"role": "system"}, "a 'system' message cannot have this shape"),
    ("Message", {"role": None}, "Message.role must be text, not NoneType"),
    ("Message", {"role": 10**5000}, "Message.role must be text, not int"),
    ("Message", {"role": "user", "content": None}, "Message.content must be text, not NoneType"),
    ("Message", {"role": "user", "content": b"x"}, "Message.content must be text, not bytes"),
    ("Message", {"role": "assistant", "stop": "length"}, "Message.stop is 'length'; it is one of end_turn, tool_use, "),
    ("Message", {"role": "assistant", "stop": ""}, "Message.stop is ''"),
    ("Message", {"role": "assistant", "stop": 10**5000}, "Message.stop must be text, not int"),
    ("Message", {"role": "assistant", "tool_calls": ["x"]}, "Message.tool_calls holds a str; it holds ToolCall values"),
    ("Message", {"role": "assistant", "tool_calls": [CALL, {}]}, "Message.tool_calls holds a dict"),
    (
        "Message",
        {"role": "assistant", "tool_calls": "x"},
        "Message.tool_calls is 'x'; it is a tuple of ToolCall values",
    ),
    ("Message", {"role": "assistant", "tool_calls": CALL}, "Message.tool_calls is a value of type ToolCall"),
    ("Message", {"role": "assistant", "tool_calls": None}, "Message.tool_calls is None"),
    ("Message", {"role": "assistant", "tool_calls": {}}, "Message.tool_calls is a value of type dict"),
    ("Message", {"role": "assistant", "native": {"provider": "p"}}, "Message.native is a dict; it is a Native"),
    ("Message", {"role": "tool", "tool_result": {"call_id": "c"}}, "Message.tool_result is a dict; it is a ToolResult"),
    ("Message", {"role": "tool"}, "a 'tool' message cannot have this shape"),
    ("Message", {"role": "tool", "content": "x", "tool_result": RESULT}, "a 'tool' message cannot have this shape"),
    ("Message", {"role": "tool", "tool_calls": [CALL], "tool_result": RESULT}, "a 'tool' message cannot"),
    ("Message", {"role": "user", "tool_calls": [CALL]}, "a 'user' message cannot have this shape"),
    ("Message", {"role": "user", "tool_result": RESULT}, "a 'user' message cannot have this shape"),
    ("Message", {"role": "assistant", "tool_result": RESULT}, "a 'assistant' message cannot"),
    ("ToolCall", {"id": 1, "name": "t", "arguments": "{}"}, "ToolCall.id must be text, not int"),
    ("ToolCall", {"id": "c", "name": None, "arguments": "{}"}, "ToolCall.name must be text, not NoneType"),
    ("ToolCall", {"id": "c", "name": "t", "arguments": {}}, "ToolCall.arguments must be text, not dict"),
    ("ToolResult", {"call_id": None, "content": ""}, "ToolResult.call_id must be text, not NoneType"),
    ("ToolResult", {"call_id": "c", "content": b""}, "ToolResult.content must be text, not bytes"),
    ("ToolResult", {"call_id": "c", "content": "", "is_error": 1}, "ToolResult.is_error is 1; it is True or False"),
    ("ToolResult", {"call_id": "c", "content": "", "is_error": None}, "ToolResult.is_error is None"),
    (
        "ToolResult",
        {"call_id": "c", "content": "", "origin": "synthetic"},
        "ToolResult.origin is 'synthetic'; it is tool or",
    ),
    ("ToolResult", {"call_id": "c", "content": "", "origin": None}, "ToolResult.origin must be text, not NoneType"),
    ("ToolResult", {"call_id": "c", "content": "", "spill": "p"}, "ToolResult.spill is a str; it is a Spill or None"),
    ("ToolResult", {"call_id": "c", "content": "", "spill": {"path": "p"}}, "ToolResult.spill is a dict"),
    ("Spill", {"path": Path("p"), "bytes": 1, "sha256": "ab"}, "Spill.path must be text, not PosixPath"),
    ("Spill", {"path": "p", "bytes": 1, "sha256": b"ab"}, "Spill.sha256 must be text, not bytes"),
    ("Spill", {"path": "p", "bytes": -1, "sha256": "ab"}, "Spill.bytes is -1; it is a size in bytes"),
    ("Spill", {"path": "p", "bytes": True, "sha256": "ab"}, "Spill.bytes is True"),
    ("Spill", {"path": "p", "bytes": 1.0, "sha256": "ab"}, "Spill.bytes is a value of type float"),
    ("Spill", {"path": "p", "bytes": 10**5000, "sha256": "ab"}, "Spill.bytes is a value of type int"),
    (
        "Native",
        {"provider": None, "api": "a", "model": "m", "payload": 1},
        "Native.provider must be text, not NoneType",
    ),
    ("Native", {"provider": "p", "api": 1, "model": "m", "payload": 1}, "Native.api must be text, not int"),
    ("Native", {"provider": "p", "api": "a", "model": b"", "payload": 1}, "Native.model must be text, not bytes"),
]


@pytest.mark.parametrize(("kind", "fields", "words"), WRONG)
def test_a_wrong_type_or_shape_is_refused_in_words(kind: str, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        BUILDERS[kind](**fields)
    assert str(caught.value).startswith(words)


def test_everything_that_occupied_the_window_counts() -> None:
    assert Usage(1, 20, 300, 4_000).context_tokens == 4_321
    assert Usage(1, 20).context_tokens == 21


# --- through the log -------------------------------------------------------------------------------------------


def written_and_read(*messages: Message) -> list[Message]:
    """The messages of the log's lines, before any repair of the history they make."""
    fs = machine(None)
    with opened(fs, durability="off") as writer:
        for message in messages:
            writer.append_message(message)
    lines = [decode_line(line) for line in bytes_of(fs).splitlines()[1:]]
    return [line.message for line in lines if isinstance(line, Line)]


NATIVES = st.builds(Native, TEXTS, TEXTS, TEXTS, JSON)
CALLS = st.lists(st.builds(ToolCall, TEXTS, TEXTS, TEXTS), max_size=3)
STOP = st.sampled_from([None, *STOPS])
SPILLS = st.builds(Spill, TEXTS, st.integers(0, INTEGER_MAX), TEXTS)
RESULTS = st.builds(ToolResult, TEXTS, TEXTS, st.booleans(), st.sampled_from(ORIGINS), st.none() | SPILLS)
MESSAGES = st.one_of(
    st.builds(Message, st.just("user"), TEXTS, native=st.none() | NATIVES, stop=STOP),
    st.builds(Message, st.just("assistant"), TEXTS, CALLS | CALLS.map(tuple), native=st.none() | NATIVES, stop=STOP),
    st.builds(Message, st.just("tool"), tool_result=RESULTS, native=st.none() | NATIVES, stop=STOP),
)


@pytest.mark.slow
@settings(DERANDOMIZED, max_examples=200)
@given(st.lists(MESSAGES, min_size=1, max_size=4))
def test_any_message_that_can_be_built_is_read_back_equal(messages: list[Message]) -> None:
    assert written_and_read(*messages) == messages


@pytest.mark.slow
@DERANDOMIZED
@given(TEXTS, NATIVES, st.lists(RESULTS, max_size=3, unique_by=lambda result: result.call_id))
def test_a_history_of_any_texts_is_loaded_back_equal(text: str, blocks: Native, results: list[ToolResult]) -> None:
    results = [ToolResult(result.call_id, result.content, result.is_error) for result in results if result.call_id]
    calls = tuple(ToolCall(result.call_id, "t", "{}") for result in results)
    history = [
        user(f"u{text}"),
        Message("assistant", f"a{text}", calls, native=blocks),
        *(Message("tool", tool_result=result) for result in results),
        user("next"),
    ]
    fs = machine(None)
    with opened(fs) as writer:
        for message in history:
            writer.append_message(message)
    assert list(loaded(bytes_of(fs)).messages) == history
