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

import re
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from pseudoclaude.errors import InvalidMessage
from pseudoclaude.messages import Message, Native, Role, Stop, ToolCall, ToolResult
from pseudoclaude.session.findings import BadLine
from pseudoclaude.session.mending import bad_utf8, mended, replace_or
from pseudoclaude.text import clean

VERSION = 1
BOM = b"\xef\xbb\xbf"

NUMBER_MAX = 2**52
"""A record number beyond this says nothing: the record counts, its number does not (so that the next number can always be written)."""

REMEMBERED_BYTES = 4096
REMEMBERED_LINES = 256
"""How long a line may be to be remembered, and how many are: a megabyte of log, and a few when decoded, for the life of the process."""

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
    ``UNSET`` for the bare marker of older logs.  ``checksum``: CRC-32 of the line; of a sealed one, of what its ``crc`` covers, so without white
    space behind it.  ``healed``: it had a lone surrogate, now U+FFFD.
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
    So equal lines may give the same ``Line``, which nobody can change.
    """
    if len(raw) > REMEMBERED_BYTES:
        return _decoded_anywhere(raw)
    line = _remembered.get(raw)
    if line is None:
        line = _decoded_anywhere(raw)
        if _NATIVE not in raw:  # decoded, a payload may be fifty times as large
            if len(_remembered) >= REMEMBERED_LINES:
                _remembered.clear()
            _remembered[raw] = line
    return line


_remembered: dict[bytes, Line | BadLine] = {}
_NATIVE = b'"native"'


def _decoded_anywhere(raw: bytes) -> Line | BadLine:
    """However deep the caller stands: what a line is follows from its bytes alone."""
    try:
        return _decoded(raw)
    except RecursionError:
        found: list[Line | BadLine] = []
        thread = threading.Thread(target=lambda: found.append(_decoded_from_the_top(raw)))
        thread.start()
        thread.join()
        return found[0]


def _decoded_from_the_top(raw: bytes) -> Line | BadLine:
    too_deep = BadLine("schema", _TOO_DEEP)
    try:
        return _decoded(raw)
    except RecursionError:
        pass
    try:
        return _unknown(raw, zlib.crc32(raw)) or too_deep
    except RecursionError:
        return too_deep


def _decoded(raw: bytes) -> Line | BadLine:
    whole = raw
    if raw[-1:] in b" \t\r":
        raw = raw.rstrip(b" \t\r")
        if not raw:
            return BadLine("json", "an empty line")
    checksum = zlib.crc32(b"}", zlib.crc32(raw[:-CRC_BYTES]))
    if raw[-CRC_BYTES:] != b',"crc":"%08x"}' % checksum:
        if _CRC.match(raw, len(raw) - CRC_BYTES) is not None:
            return _bad_crc(raw)
        checksum = zlib.crc32(whole)
        # a sealed line is what its writer wrote, and the decoder checks the texts in it that count; this one is anybody's
        bad = None if raw.isascii() else bad_utf8(raw)
        if bad is not None:
            return bad
    try:
        return _line_of(_decode_written(raw), checksum)
    except (msgspec.DecodeError, InvalidMessage) as error:
        return bad_utf8(raw) or _second_look(raw, checksum, error)


def decode_header_facts(raw: bytes) -> HeaderFacts:
    """The facts of a header line; those that are missing or not what they should be stay at their defaults."""
    try:
        return _decode_facts(raw)
    except (msgspec.DecodeError, RecursionError):
        return HeaderFacts()


def _line_of(said: _Written, checksum: int, *, healed: bool = False) -> Line | BadLine:
    kind = said.type or "message"
    message, problem = None, ""
    if kind == "message":
        if said.role is None:
            return BadLine("schema", "no role")
        try:
            message = Message(said.role, said.content, said.tool_calls, said.tool_result, said.native, said.stop)
        except InvalidMessage as error:
            problem = error.what
    number = _number(said.n)
    snapshot = UNSET if said.messages is None else said.messages
    if kind == "replace" and said.messages is None:
        return BadLine("schema", "a replace whose messages are null")
    return Line(
        kind,
        number,
        message,
        problem,
        said.model,
        said.reason,
        snapshot,
        said.s,
        said.version,
        said.id,
        checksum,
        healed,
    )


def _number(n: int | None) -> int | None:
    return n if n is not None and 0 < n <= NUMBER_MAX else None


def _bad_crc(raw: bytes) -> BadLine:
    bad = bad_utf8(raw)
    if bad is not None and bad.kind == "utf8":
        return bad
    return BadLine(replace_or("crc", raw), "its checksum does not match its bytes")


def _second_look(raw: bytes, checksum: int, error: Exception) -> Line | BadLine:
    """What the strict decoder refuses: lone surrogates and arguments as objects are mended, unknown types let through."""
    found = mended(raw, error)
    if isinstance(found, BadLine):
        return found
    value, healed = found
    try:
        written = msgspec.convert(value, _Written)
    except (msgspec.ValidationError, InvalidMessage, ValueError) as problem:
        return _unknown(raw, checksum) or BadLine("schema", str(problem) or str(error))
    return _line_of(written, checksum, healed=healed)


def _unknown(raw: bytes, checksum: int) -> Line | None:
    try:
        envelope = _decode_envelope(raw)
    except msgspec.DecodeError:
        return None
    if envelope.type == "session" and envelope.version != VERSION:
        return Line(type="session", version=envelope.version if type(envelope.version) is int else 0)
    return None if envelope.type in KNOWN_TYPES else Line(envelope.type, _number(envelope.n), checksum=checksum)
