"""What must hold for any bytes as a log, and for any damage to a valid session."""

import zlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.messages import Message, ToolCall, ToolResult
from pseudoclaude.session.loader import LoadResult, load_log
from pseudoclaude.session.records import encode_message, encode_replace
from simulator.disk import SimFileSystem
from tests.session.build import FOLDER, HEADER, TS, bytes_of, disk_of, line, loaded, machine, refused, resumed, user

pytestmark = pytest.mark.slow

DERANDOMIZED = settings(derandomize=True, deadline=None, database=None, max_examples=150)
MANY = settings(derandomize=True, deadline=None, database=None, max_examples=300)

TEXTS = st.sampled_from(["a", "wörld 世界 🙂", "two\nlines", 'quo"te', "x" * 40, "\u2028", "tab\t"])
FRAGMENTS = st.sampled_from(
    [
        HEADER,
        line(user("whole"), 1),
        line(user("whole"), 2)[:-1],
        b'{"type":"message","n":3,"ts":1,"role":"tool","tool_result":{"call_id":"c","content":"x"}}\n',
        b'{"type":"message","n":4,"ts":1,"role":"assistant","tool_calls":[{"id":"c","name":"t","arguments":{"a":1}}]}\n',
        b'{"type":"replace","reason":"compact"}\n',
        b'{"type":"replace","messages":[{"role":"user","content":"s"}]}\n',
        b'{"type":"replace","messages":null}\n',
        b'{"type":"future","n":9}\n',
        b'{"role":"user","content":"\\ud83d"}\n',
        b'{"role":"user","content":"x","n":99999999999999999999999}\n',
        b'{"type":"session","version":2}\n',
        b'{"role":"user","tool_calls":[{"id":"c","name":"t","arguments":"{}"}]}\n',
        b"[" * 3000 + b"\n",
        b"\x00" * 7,
        b"\xef\xbb\xbf",
        b"\n",
        b"null\n",
        b'{"a":NaN}\n',
        b"\xff\xfe\n",
        b" \t\r\n",
    ]
)
ANY_BYTES = st.one_of(
    st.binary(max_size=200), st.lists(st.one_of(FRAGMENTS, st.binary(max_size=12)), max_size=8).map(b"".join)
)


@st.composite
def sessions(draw: st.DrawFn) -> list[Message]:
    """A valid history, every message with a text of its own."""
    history: list[Message] = []
    for turn in range(draw(st.integers(1, 4))):
        history.append(Message("user", f"u{turn} {draw(TEXTS)}"))
        for round_number in range(draw(st.integers(0, 2))):
            ids = [f"c{turn}{round_number}{i}" for i in range(draw(st.integers(1, 2)))]
            history.append(Message("assistant", "", tuple(ToolCall(i, "t", "{}") for i in ids), stop="tool_use"))
            history += [Message("tool", tool_result=ToolResult(i, f"{i} {draw(TEXTS)}")) for i in ids]
        history.append(Message("assistant", f"a{turn} {draw(TEXTS)}"))
    return history


@MANY
@given(ANY_BYTES)
def test_any_bytes_load_as_a_history_every_provider_accepts_the_same_twice(data):
    first, second = loaded(data), loaded(data)
    assert first == second
    assert refused(first.messages) == []
    assert len(first.findings) < 1000


@DERANDOMIZED
@given(ANY_BYTES)
def test_what_was_loaded_plus_what_was_appended_loads_again(data):
    fs = machine(data)
    before = loaded(data)
    if before.state == "unsupported":
        return
    assert resumed(fs, user("one"), Message("assistant", "two")).messages == before.messages
    assert bytes_of(fs).startswith(data)
    again = resumed(fs)
    assert again.messages == (*before.messages, user("one"), Message("assistant", "two"))
    assert again.truncated == ()


def _damage(draw: st.DrawFn, records: list[bytes]) -> tuple[bytes, set[int]]:
    """The records with one damage, and the indexes of those it touched."""
    kind = draw(st.sampled_from(["cut", "flip", "nul", "double", "delete", "garbage"]))
    data = b"".join(records)
    ends = [sum(map(len, records[: i + 1])) for i in range(len(records))]
    at = draw(st.integers(len(records[0]), len(data) - 1))
    hit = next(i for i, end in enumerate(ends) if at < end)
    if kind == "cut":
        return data[:at], {*range(hit, len(records))} if at < ends[hit] - 1 else {*range(hit + 1, len(records))}
    if kind == "flip":
        flipped = bytearray(data)
        flipped[at] ^= 1 << draw(st.integers(0, 7))
        touched = {hit} if at < ends[hit] - 1 else {hit, hit + 1}
        return bytes(flipped), touched
    if kind == "nul":
        count = draw(st.integers(1, 60))
        last = next((i for i, end in enumerate(ends) if at + count <= end), len(records) - 1)
        return data[:at] + bytes(count) + data[at + count :], set(range(hit, last + 1))
    if kind == "garbage":
        return b"".join([*records[: hit + 1], b"\x80garbage\n", *records[hit + 1 :]]), set()
    if kind == "double":
        return b"".join([*records[: hit + 1], records[hit], *records[hit + 1 :]]), set()
    return b"".join(records[:hit] + records[hit + 1 :]), {hit}


@MANY
@given(sessions(), st.data())
def test_every_message_outside_the_damage_is_in_the_history_or_quoted(history, data):
    records = [HEADER, *(encode_message(message, n, TS) for n, message in enumerate(history, 1))]
    damaged, touched = _damage(data.draw, records)
    got = loaded(damaged, dangling="answer")
    assert refused(got.messages) == []
    told = " ".join(finding.text for finding in got.findings)
    for index, message in enumerate(history, 1):
        if index in touched:
            continue
        if message.tool_result is not None:
            kept = any(m.tool_result is not None and m.tool_result == message.tool_result for m in got.messages)
            assert kept or message.tool_result.call_id in told
        else:
            assert message in got.messages
    cut_between_lines = damaged.rstrip(b"\n") in [b"".join(records[:n]).rstrip(b"\n") for n in range(len(records) + 1)]
    assert got.findings or cut_between_lines or got.messages == tuple(history)


# --- resume ----------------------------------------------------------------------------------------------------


def _sealed(body: bytes) -> bytes:
    return b'%b,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body))


NUMBERS = st.integers(1, 6)
RECORDS = st.one_of(
    st.builds(lambda n, t: encode_message(Message("user", t), n, TS), NUMBERS, st.sampled_from(["a", "b"])),
    st.builds(lambda n, t: encode_message(Message("user", t), n, TS, model="m2"), NUMBERS, st.sampled_from(["a"])),
    st.builds(lambda n, s: encode_message(Message("assistant", "s"), n, TS, synced=s), NUMBERS, st.integers(0, 5)),
    st.builds(
        lambda n, t, r: encode_replace(r, [Message("user", t)], n, TS, model="m"),
        NUMBERS,
        st.sampled_from(["r", "q"]),
        st.sampled_from(["compact", "recover"]),
    ),
    st.builds(
        lambda n, more: _sealed(b'{"type":"message","n":%d,"ts":1,"role":"user","content":"w",%b}' % (n, more)),
        NUMBERS,
        st.sampled_from(
            [b'"id":5', b'"messages":[]', b'"s":"x"', b'"type":"future"', b'"model":"m3"', b'"n":9', b'"ts":1']
        ),
    ),
    FRAGMENTS,
)
LOGS = st.lists(RECORDS, min_size=1, max_size=12)


def _load(data: bytes, *, whole_bytes: int, chunk_bytes: int, scan_all: bool = False) -> LoadResult:
    fs = SimFileSystem(disk_of(data))
    return load_log(FOLDER, fs, whole_bytes=whole_bytes, chunk_bytes=chunk_bytes, scan_all=scan_all)


@settings(MANY, max_examples=1200)
@given(LOGS, st.lists(NUMBERS, max_size=2), st.integers(1, 90), st.booleans(), st.booleans())
def test_a_resume_from_the_end_gives_what_the_full_scan_gives(records, doubled, chunk_bytes, glued, plain):
    for index in doubled:
        records = [*records, records[index % len(records)]]
    data = HEADER + b"".join(records)
    if plain:
        data = (
            HEADER + b"".join(encode_message(Message("user", f"p{n}"), n, TS) for n in range(1, 7)) + b"".join(records)
        )
    if glued:
        data = data.replace(b"}\n{", b"}{", 1)
    full = _load(data, whole_bytes=0, chunk_bytes=1 << 20, scan_all=True)
    fast = _load(data, whole_bytes=0, chunk_bytes=chunk_bytes)
    assert (fast.messages, fast.id, fast.model) == (full.messages, full.id, full.model)
    assert fast.cut == full.cut


PLAIN = b"".join(encode_message(Message("user", f"p{n}"), n, TS, model="m0" if n == 2 else "") for n in range(1, 7))


@MANY
@given(
    st.one_of(ANY_BYTES, LOGS.map(b"".join), LOGS.map(lambda records: PLAIN + b"".join(records))), st.integers(1, 50)
)
def test_the_size_of_a_read_changes_nothing_and_a_run_taken_at_once_is_its_records_one_by_one(data, chunk_bytes):
    assert _load(HEADER + data, whole_bytes=1 << 20, chunk_bytes=chunk_bytes) == loaded(HEADER + data)


@DERANDOMIZED
@given(sessions())
def test_an_undamaged_log_is_not_touched_and_loads_byte_for_byte(history):
    data = HEADER + b"".join(encode_message(message, n, TS) for n, message in enumerate(history, 1))
    fs = machine(data)
    for _ in range(2):
        got = resumed(fs)
        assert got.state == "clean"
        assert msgspec.json.encode(got.messages) == msgspec.json.encode(history)
    assert bytes_of(fs) == data
