"""The line format: what is written, and what each kind of bad line is called."""

import inspect
import sys
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pseudoclaude.messages import Message, Native, Spill, ToolCall, ToolResult
from pseudoclaude.session.findings import BadLine
from pseudoclaude.session.records import (
    CRC_BYTES,
    NUMBER_MAX,
    REMEMBERED_BYTES,
    REMEMBERED_LINES,
    Line,
    _remembered,
    decode_header_facts,
    decode_line,
    encode_header,
    encode_message,
    encode_replace,
    segments,
)
from pseudoclaude.session.salvage import salvage
from tests.session.build import TS, calls, line, replaced, user


def sealed(body: bytes) -> bytes:
    return b'%b,"crc":"%08x"}' % (body[:-1], zlib.crc32(body))


def whole(raw: bytes) -> Line:
    decoded = decode_line(raw)
    assert isinstance(decoded, Line)
    return decoded


def test_the_bytes_of_the_format():
    message = Message("assistant", "é", (ToolCall("c", "t", '{"a": 1}'),), stop="tool_use")
    body = (
        '{"type":"message","n":2,"ts":1764547200,"role":"assistant","content":"é",'
        '"tool_calls":[{"id":"c","name":"t","arguments":"{\\"a\\": 1}"}],"stop":"tool_use"}'
    )
    assert encode_message(message, 2, TS) == sealed(body.encode()) + b"\n"
    assert encode_replace("compact", [user("s")], 4, TS) == (
        sealed(
            b'{"type":"replace","n":4,"ts":1764547200,"reason":"compact","messages":[{"role":"user","content":"s"}]}'
        )
        + b"\n"
    )
    assert encode_header("i", TS, "/p", "o") == (
        sealed(b'{"type":"session","version":1,"id":"i","created":1764547200,"cwd":"/p","forked_from":"o"}') + b"\n"
    )


MESSAGES = [
    user("plain"),
    Message("user", ""),
    Message("assistant", "x", (ToolCall("c", "t", ""),), native=Native("p", "a", "m", [{"k": None, "n": 1.5}])),
    Message("tool", tool_result=ToolResult("c", "y", True, "interrupted", Spill("tool-results/x", 3, "ab"))),
]


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("ending", [b"", b" ", b"\t\r"])
def test_what_was_written_is_read_back(message: Message, ending: bytes):
    decoded = whole(encode_message(message, 7, TS, model="m", synced=3)[:-1] + ending)
    assert (decoded.message, decoded.n, decoded.model, decoded.s) == (message, 7, "m", 3)


def test_an_empty_snapshot_is_kept_null_is_bad_and_absent_is_the_older_marker():
    assert whole(encode_replace("snapshot", [], 1, TS)[:-1]).messages == ()
    assert decode_line(b'{"type":"replace","messages":null}') == BadLine("schema", "a replace whose messages are null")
    assert not isinstance(whole(b'{"type":"replace","reason":"x"}').messages, tuple)


BAD = [
    (b"", "json"),
    (b" \t\r", "json"),
    (b"null", "schema"),
    (b"[]", "schema"),
    (b'"x"', "schema"),
    (b"42", "schema"),
    (b"{}", "schema"),
    (b'{"type":"message","role":"robot"}', "schema"),
    (b'{"type":"message","role":"user","content":5}', "schema"),
    (b'{"type":"mess', "torn"),
    (b'{"type":"message","role":"user","content":tr', "torn"),
    (b'{"type":"message","role":"user"', "torn"),
    ('{"role":"user","content":"é'.encode()[:-1], "torn"),
    (b'{"type":"replace","messages":[{"role":', "incomplete_replace"),
    (b'"role":"user"}', "json"),
    (b"<<<<<<< HEAD", "json"),
    (b'{"role":"user"}{"role":"user"}', "json"),
    (b'{"role":"user","content":"\xff"}', "utf8"),
    (b'{"role":"user","content":"a\tb"}', "json"),
    (b"[" * 100_000, "schema"),
    (b'{"role":"user","content":"a","native":' + b"[" * 5_000 + b"]" * 5_000 + b"}", "schema"),
    (b'{"role":"user","n":' + b"9" * 5_000 + b"}", "schema"),
    (sealed(b'{"role":"user","content":"a"}').replace(b'"a"', b'"b"'), "crc"),
    (encode_replace("compact", [user("s")], 1, TS)[:-1].replace(b'"s"', b'"t"'), "incomplete_replace"),
]


@pytest.mark.parametrize(("raw", "kind"), BAD, ids=[f"{kind} {raw[:24]!r}" for raw, kind in BAD])
def test_a_bad_line_is_named_by_its_bytes_alone(raw: bytes, kind: str):
    decoded = decode_line(raw)
    assert isinstance(decoded, BadLine)
    assert decoded.kind == kind


@pytest.mark.parametrize("cut", range(1, 80))
def test_a_record_cut_anywhere_is_a_tear(cut: int):
    raw = line(Message("user", 'é 世界 🙂 \\ " {}[],:'), 1)[:-1]
    decoded = decode_line(raw[:-cut])
    assert isinstance(decoded, BadLine)
    assert decoded.kind in ("torn", "crc")


def test_one_flipped_bit_is_seen_or_changes_nothing():
    raw = line(user("é 世界"), 1)[:-1]
    for position in range(len(raw)):
        for bit in range(8):
            flipped = bytearray(raw)
            flipped[position] ^= 1 << bit
            decoded = decode_line(bytes(flipped))
            assert isinstance(decoded, BadLine) or decoded.message == user("é 世界")


def test_a_lone_surrogate_is_healed_and_said():
    decoded = whole(b'{"role":"user","content":"a\\ud83d"}')
    assert decoded.message == user("a\ufffd")
    assert decoded.healed
    assert not whole(b'{"role":"user","content":"a"}').healed


def test_arguments_of_older_logs_that_are_a_json_value_become_text():
    raw = b'{"type":"replace","messages":[{"role":"assistant","tool_calls":[{"id":"c","name":"t","arguments":{"a":"\xc3\xa9"}}]}]}'
    messages = whole(raw).messages
    assert isinstance(messages, tuple)
    assert messages[0].tool_calls[0].arguments == '{"a":"é"}'


@pytest.mark.parametrize("n", [0, -1, NUMBER_MAX + 1, 10**30])
def test_a_number_that_cannot_be_one_says_nothing_and_the_record_counts(n: int):
    decoded = whole(b'{"type":"message","n":%d,"role":"user","content":"a"}' % n)
    assert (decoded.n, decoded.message) == (None, user("a"))


@pytest.mark.parametrize("version", [b"2", b'"2.0"', b"null", b"[1]"])
def test_a_header_of_another_version_is_one_whatever_the_rest_of_it_is(version: bytes):
    decoded = whole(b'{"type":"session","version":%b,"id":{"new":"form"}}' % version)
    assert decoded.type == "session"
    assert decoded.version != 1


def test_an_unknown_type_is_let_through_with_its_number():
    raw = b'{"type":"future","n":4,"role":7,"messages":"x"}'
    assert whole(raw) == Line(type="future", n=4, checksum=zlib.crc32(raw))


@pytest.mark.parametrize("n", [0, NUMBER_MAX + 1])
def test_a_number_of_an_unknown_type_that_cannot_be_one_says_nothing(n: int):
    assert whole(b'{"type":"future","n":%d,"role":7}' % n).n is None


NESTED: Any = []
for _ in range(150):
    NESTED = [NESTED]
DEEP = Message("assistant", "keep me", native=Native("anthropic", "messages", "m", NESTED))


def called_deep(frames: int, function: Callable[[], Any]) -> Any:
    return called_deep(frames - 1, function) if frames else function()


@pytest.mark.parametrize("size", [1, REMEMBERED_BYTES])
def test_what_a_line_is_does_not_depend_on_how_deep_its_reader_stands(size: int):
    raw = encode_message(replace(DEEP, content="x" * size), 1, TS)[:-1]
    room = sys.getrecursionlimit() - len(inspect.stack(0))
    for frames in (room - 100, room - 200, room - 400):
        assert called_deep(frames, lambda: decode_line(raw)).message == replace(DEEP, content="x" * size)
    assert whole(raw).message == replace(DEEP, content="x" * size)


def test_a_line_deeper_than_any_reader_can_follow_is_bad_and_not_remembered_as_less():
    raw = b'{"role":"assistant","native":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    assert isinstance(decode_line(raw), BadLine)
    assert whole(b'{"type":"future","role":7,"more":' + b"[" * 400 + b"]" * 400 + b"}").type == "future"


def test_remembered_lines_are_few_and_hold_no_payloads():
    for number in range(3 * REMEMBERED_LINES):
        whole(b'{"role":"user","content":"%d"}' % number)
        whole(b'{"role":"assistant","native":{"provider":"p","api":"a","model":"m","payload":[%d]}}' % number)
    assert 0 < len(_remembered) <= REMEMBERED_LINES
    assert not any(b"native" in raw for raw in _remembered)


def test_a_byte_zero_is_in_no_record_wherever_it_stands_and_whatever_the_seal_says():
    whole_line = encode_message(user("a long word"), 1, 5)[:-1]
    for at in range(len(whole_line)):
        for raw in (whole_line[:at] + b"\0" + whole_line[at:], whole_line[:at] + b"\0" + whole_line[at + 1 :]):
            body = raw[:-CRC_BYTES] + b"}"
            for candidate in (raw, body, sealed(body)):
                assert b"\0" not in candidate or isinstance(decode_line(candidate), BadLine)


def test_a_line_cannot_say_what_a_reader_finds_out_about_it():
    raw = b'{"role":"user","content":"a","message":{"role":"user","content":"b"},"problem":"p","healed":true,"checksum":7}'
    assert whole(raw) == Line("message", message=user("a"), checksum=zlib.crc32(raw))


def test_header_facts_of_a_strange_header_stay_at_their_defaults():
    assert decode_header_facts(b'{"type":"session","created":"x"}').created == 0
    assert decode_header_facts(encode_header("i", TS, "/p")).cwd == "/p"


def test_segments_are_what_stands_between_newlines_and_nul_runs():
    data = b"a\n\n\x00\x00b\x00\nc"
    assert list(segments(data, 10)) == [
        (10, b"a", False),
        (12, b"", False),
        (13, b"\x00\x00", True),
        (15, b"b", False),
        (16, b"\x00", True),
        (18, b"c", False),
    ]


# --- salvage ---------------------------------------------------------------------------------------------------


def found(raw: bytes) -> list[tuple[int, int]]:
    return [(start, end) for start, end, _ in salvage(raw)]


def test_whole_records_glued_to_a_torn_one_and_to_each_other_are_found():
    torn, one, two = line(user("torn"), 1)[:30], line(user("one"), 2)[:-1], replaced([user("s")], 3)[:-1]
    raw = torn + one + two + torn
    assert found(raw) == [(30, 30 + len(one)), (30 + len(one), 30 + len(one) + len(two))]
    assert [record.n for _, _, record in salvage(raw)] == [2, 3]


def test_a_record_that_lies_inside_another_is_none_of_ours():
    inner = line(user("from the model"), 9)[:-1].decode()
    outer = line(Message("assistant", "", native=Native("p", "a", "m", [{"inner": "PLACE"}, 1])), 1).replace(
        b'"PLACE"', inner.encode()
    )
    assert inner.encode() in outer
    assert found(outer[:-20]) == []


def test_salvage_is_linear_in_what_it_looks_at():
    starts = b'{"type":"message","n":' * 2_000
    trailers = b',"crc":"00000000"}' * 2_000
    assert found(starts + trailers) == []
    glued = b"".join(line(user("x"), n)[:-1] for n in range(1, 3_000))
    assert len(found(glued)) == 2_999


def test_a_call_message_says_so():
    assert whole(line(calls("c"), 1)).message == calls("c")
