"""Log format v1: the only place that knows what a line looks like.

A log is UTF-8 JSON lines, separated by 0A and by runs of 00 (a disk that allocated and did not write).  Each line is written by one
``write``::

    {"type":"session","version":1,"id":"…","created":1764547200,"cwd":"…","crc":"1a2b3c4d"}
    {"type":"message","n":1,"ts":…,"role":"user","content":"…","model":"…","crc":"…"}
    {"type":"replace","n":4,"ts":…,"reason":"compact","messages":[{"role":…},…],"crc":"…"}

Members with default values are left out.  ``crc`` stands last: 8 lowercase hex digits, ``zlib.crc32`` of the bytes before its comma plus
``}``.  A line without one is accepted (older or hand-written); a wrong one makes a bad line.  CRC-32 tells a torn line from a whole
one; it does not tell a whole line of this session from a whole line of another that lies in a stale block.

``decode_line`` never raises: what is not a record becomes ``BadLine`` with a kind that follows from the bytes alone.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from pseudoclaude.errors import InvalidMessage
from pseudoclaude.messages import Message, Native, Role, Stop, ToolCall, ToolResult
from pseudoclaude.session.findings import FindingKind
from pseudoclaude.text import clean

VERSION = 1
BOM = b"\xef\xbb\xbf"

NUMBER_MAX = 2**52
"""A record number beyond this says nothing: the record counts, its number does not (so that the next number can always be written)."""

REMEMBERED_BYTES = 4096
REMEMBERED_LINES = 512
"""How long a line may be to be remembered, and how many are: two megabytes of log at most."""

CRC_BYTES = 18
_CRC = re.compile(rb',"crc":"([0-9a-f]{8})"\}\Z')
_NULS = re.compile(rb"\x00+")


# --- writing ---------------------------------------------------------------------------------------------------


class _Header(msgspec.Struct, tag_field="type", tag="session", omit_defaults=True):
    version: int
    id: str
    created: int
    cwd: str = ""
    forked_from: str = ""


class _MessageRecord(msgspec.Struct, tag_field="type", tag="message", omit_defaults=True):
    n: int
    ts: int
    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_result: ToolResult | None = None
    native: Native | None = None
    stop: Stop | None = None
    model: str = ""
    s: int | None = None


class _ReplaceRecord(msgspec.Struct, tag_field="type", tag="replace", omit_defaults=True):
    n: int
    ts: int
    reason: str
    messages: Sequence[Message]
    model: str = ""
    dangling: str = ""
    s: int | None = None


_encode = msgspec.json.Encoder().encode


def encode_header(session_id: str, created: int, cwd: str = "", forked_from: str = "") -> bytes:
    """The first line of a log, newline included."""
    return _sealed(_encode(_Header(VERSION, clean(session_id), created, clean(cwd), clean(forked_from))))


def encode_message(message: Message, n: int, ts: int, *, model: str = "", synced: int | None = None) -> bytes:
    """One message as a line.  ``synced``: highest ``n`` known durable, in ``batch`` mode only."""
    return _sealed(
        _encode(
            _MessageRecord(
                n,
                ts,
                message.role,
                message.content,
                message.tool_calls,
                message.tool_result,
                message.native,
                message.stop,
                clean(model),
                synced,
            )
        )
    )


def encode_replace(
    reason: str,
    messages: Sequence[Message],
    n: int,
    ts: int,
    *,
    model: str = "",
    dangling: str = "",
    synced: int | None = None,
) -> bytes:
    """A whole snapshot as one line: present or absent, never in part (oracle O6)."""
    return _sealed(_encode(_ReplaceRecord(n, ts, reason, messages, clean(model), dangling, synced)))


def _sealed(body: bytes) -> bytes:
    return b'%b,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body))


# --- reading ---------------------------------------------------------------------------------------------------


class _Written(msgspec.Struct):
    """What a line may say, whatever its type."""

    type: str = "message"
    n: int | None = None
    role: Role | None = None
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_result: ToolResult | None = None
    native: Native | None = None
    stop: Stop | None = None
    model: str = ""
    reason: str = ""
    messages: tuple[Message, ...] | UnsetType | None = UNSET
    s: int | None = None
    version: int = VERSION
    id: str = ""


class Line(msgspec.Struct, frozen=True):
    """A whole record, and what was found out about its bytes.

    ``message``: that of a ``message`` record; None where its parts make none, and ``problem`` says why.  ``messages`` of a replace: a snapshot, or
    ``UNSET`` for the bare marker of older logs.  ``checksum``: CRC-32 of the line, without its own ``crc`` if it has one.  ``healed``: it had a lone
    surrogate, now U+FFFD.
    """

    type: str
    n: int | None = None
    message: Message | None = None
    problem: str = ""
    model: str = ""
    reason: str = ""
    messages: tuple[Message, ...] | UnsetType = UNSET
    s: int | None = None
    version: int = VERSION
    id: str = ""
    checksum: int = 0
    healed: bool = False


class BadLine(msgspec.Struct, frozen=True):
    """Bytes that are no record, and why."""

    kind: FindingKind
    why: str


class HeaderFacts(msgspec.Struct, frozen=True):
    """What a header says beside id and version."""

    created: int = 0
    cwd: str = ""
    forked_from: str = ""


class _Envelope(msgspec.Struct):
    type: str = "message"
    n: int | None = None
    version: Any = VERSION


KNOWN_TYPES = frozenset({"session", "message", "replace", ""})
_decode_written = msgspec.json.Decoder(_Written).decode
_decode_facts = msgspec.json.Decoder(HeaderFacts).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_TRUNCATED = "Input data was truncated"
"""msgspec's words for text that ends early (and for half of an escaped surrogate pair, which needs the second look)."""
_TOO_DEEP = "nested deeper than a reader can follow"


def segments(data: bytes, base: int = 0) -> Iterator[tuple[int, bytes, bool]]:
    """``(offset, bytes, is_nul_run)`` of everything between newlines; empty lines included, a final newline adds none."""
    position = 0
    end = len(data)
    has_nul = b"\x00" in data
    while position < end:
        newline = data.find(b"\n", position)
        stop = end if newline < 0 else newline
        raw = data[position:stop]
        if has_nul and b"\x00" in raw:
            yield from around_nuls(raw, base + position)
        else:
            yield base + position, raw, False
        position = stop + 1


def around_nuls(raw: bytes, offset: int) -> Iterator[tuple[int, bytes, bool]]:
    """The pieces of a line between its NUL runs, and the runs: ``(offset, bytes, is_nul_run)``."""
    last = 0
    start = raw.find(b"\x00")
    while start >= 0:
        if start > last:
            yield offset + last, raw[last:start], False
        run = _NULS.match(raw, start)
        assert run is not None
        yield offset + start, run.group(), True
        last = run.end()
        start = raw.find(b"\x00", last)
    if last < len(raw):
        yield offset + last, raw[last:], False


def decode_line(raw: bytes) -> Line | BadLine:
    """One segment as a record, or why it is none.  Never raises.

    Short lines that were decoded lately are remembered: a session is looked at, opened and confirmed, which is three readings of the same bytes.
    So equal lines give the same ``Line``, which nobody changes.
    """
    return decode_short_line(raw) if len(raw) <= REMEMBERED_BYTES else _decoded(raw)


def _decoded(raw: bytes) -> Line | BadLine:
    if raw[-1:] in b" \t\r":
        raw = raw.rstrip(b" \t\r")
        if not raw:
            return BadLine("json", "an empty line")
    checksum = zlib.crc32(b"}", zlib.crc32(raw[:-CRC_BYTES]))
    if raw[-CRC_BYTES:] != b',"crc":"%08x"}' % checksum:
        if _CRC.match(raw, len(raw) - CRC_BYTES) is not None:
            return _bad_crc(raw)
        checksum = zlib.crc32(raw)
        # a sealed line is what its writer wrote, and the decoder checks the texts in it that count; this one is anybody's
        bad = None if raw.isascii() else _bad_utf8(raw)
        if bad is not None:
            return bad
    try:
        return _line_of(_decode_written(raw), checksum)
    except (msgspec.DecodeError, InvalidMessage, RecursionError) as error:
        return _bad_utf8(raw) or _second_look(raw, checksum, error)


decode_short_line = lru_cache(REMEMBERED_LINES)(_decoded)
"""``decode_line`` of at most ``REMEMBERED_BYTES``."""


def decode_header_facts(raw: bytes) -> HeaderFacts:
    """The facts of a header line; those that are missing or not what they should be stay at their defaults."""
    try:
        return _decode_facts(raw)
    except (msgspec.DecodeError, RecursionError):
        return HeaderFacts()


def _line_of(said: _Written, checksum: int, *, healed: bool = False) -> Line | BadLine:
    kind = said.type or "message"
    n = said.n if said.n is not None and 0 < said.n <= NUMBER_MAX else None
    message, problem = None, ""
    if kind == "message":
        if said.role is None:
            return BadLine("schema", "no role")
        try:
            message = Message(said.role, said.content, said.tool_calls, said.tool_result, said.native, said.stop)
        except InvalidMessage as error:
            problem = error.what
    snapshot = UNSET if said.messages is None else said.messages
    if kind == "replace" and said.messages is None:
        return BadLine("schema", "a replace whose messages are null")
    return Line(
        kind, n, message, problem, said.model, said.reason, snapshot, said.s, said.version, said.id, checksum, healed
    )


def _bad_crc(raw: bytes) -> BadLine:
    bad = _bad_utf8(raw)
    if bad is not None and bad.kind == "utf8":
        return bad
    return BadLine(_replace_or("crc", raw), "its checksum does not match its bytes")


def _bad_utf8(raw: bytes) -> BadLine | None:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and raw.startswith(b"{"):
            return BadLine(_replace_or("torn", raw), "it ends inside a character")
        return BadLine("utf8", f"byte {error.start} of the line is not UTF-8 ({error.reason})")
    return None


def _replace_or(kind: FindingKind, raw: bytes) -> FindingKind:
    return "incomplete_replace" if raw.startswith(b'{"type":"replace"') else kind


def _second_look(raw: bytes, checksum: int, error: Exception) -> Line | BadLine:
    """What the strict decoder refuses: lone surrogates and arguments as objects are mended, unknown types let through."""
    if str(error) == _TRUNCATED and raw.startswith(b"{") and b"\\u" not in raw:
        return _torn(raw)
    try:
        value = json.loads(raw)
    except RecursionError:
        return BadLine("schema", _TOO_DEEP)
    except json.JSONDecodeError as problem:
        if _ends_early(raw, problem):
            return _torn(raw)
        return BadLine("json", f"not JSON: {problem.msg} at byte {problem.pos}")
    except ValueError as problem:
        return BadLine("schema", str(problem).split(";", maxsplit=1)[0])
    if not isinstance(value, dict):
        return BadLine("schema", f"a JSON {type(value).__name__}, not an object")
    try:
        mended, healed = _mend(value)
        written = msgspec.convert(mended, _Written)
    except (msgspec.ValidationError, InvalidMessage, RecursionError, ValueError) as problem:
        return _unknown(raw, checksum) or BadLine("schema", str(problem) or str(error))
    return _line_of(written, checksum, healed=healed)


def _torn(raw: bytes) -> BadLine:
    return BadLine(_replace_or("torn", raw), "it stops in the middle of the record")


def _ends_early(raw: bytes, problem: json.JSONDecodeError) -> bool:
    if not raw.startswith(b"{"):
        return False
    text = raw.decode("utf-8")
    return (
        problem.msg.startswith("Unterminated string")
        or problem.pos >= len(text.rstrip())
        or _cut_word(text, problem.pos)
    )


def _cut_word(text: str, position: int) -> bool:
    tail = text[position:]
    return any(word.startswith(tail) for word in ("true", "false", "null")) or tail in ("-", "\\", "\\u")


def _unknown(raw: bytes, checksum: int) -> Line | None:
    try:
        envelope = _decode_envelope(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    if envelope.type == "session" and envelope.version != VERSION:
        return Line(type="session", version=envelope.version if type(envelope.version) is int else 0)
    return None if envelope.type in KNOWN_TYPES else Line(type=envelope.type, n=envelope.n, checksum=checksum)


def _mend(value: Any) -> tuple[Any, bool]:
    """``value`` with lone surrogates replaced and the arguments of older logs (a JSON value) as text; was a surrogate there?"""
    healed = False

    def walk(item: Any) -> Any:
        nonlocal healed
        if isinstance(item, str):
            fixed = clean(item)
            healed = healed or fixed is not item
            return fixed
        if isinstance(item, list):
            return [walk(part) for part in item]
        if isinstance(item, dict):
            return {walk(key): walk(part) for key, part in item.items()}
        return item

    mended = walk(value)
    for entry in [mended, *_entries(mended)]:
        calls = entry.get("tool_calls") if isinstance(entry, dict) else None
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and not isinstance(call.get("arguments", ""), str):
                call["arguments"] = json.dumps(call["arguments"], ensure_ascii=False, separators=(",", ":"))
    return mended, healed


def _entries(value: dict[str, Any]) -> list[Any]:
    entries = value.get("messages")
    return entries if isinstance(entries, list) else []
