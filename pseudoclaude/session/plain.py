"""Many plain records at once: the common case of loading, told apart in bulk.

A run of sealed message records whose numbers follow each other says nothing that needs a closer look.  ``plain_run`` takes such a run and gives what
``records.decode_line`` would give line by line, at about a third of the cost; whatever it does not recognise it leaves alone.  Nothing here
decides anything about damage.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from pseudoclaude.errors import InvalidMessage
from pseudoclaude.messages import Message
from pseudoclaude.session.records import CRC_BYTES, NUMBER_MAX, VERSION

BATCH_LINES = 256
_BEGINNING = b'{"type":"message","n":'


class PlainRun(msgspec.Struct):
    """What the first ``len(messages)`` lines hold.  ``tried``: how many lines were looked at."""

    tried: int
    messages: list[Message] = []
    checksums: list[int] = []
    lengths: list[int] = []
    """Bytes of each line, without its newline."""
    model: str = ""
    """The last model named in these lines."""


class _Facts(msgspec.Struct):
    """What a message record says beside its message; the same types as in ``records``, so that both take the same lines."""

    n: int
    type: Literal["message"]
    model: str = ""
    s: int | None = None
    reason: str = ""
    version: int = VERSION
    id: str = ""
    messages: UnsetType = UNSET


_decode_messages = msgspec.json.Decoder(Message).decode_lines
_decode_facts = msgspec.json.Decoder(_Facts).decode_lines


def plain_run(data: memoryview, lines: list[bytes], first: int, n: int) -> PlainRun:
    """The records ``n``, ``n + 1``, … that ``lines`` hold from index ``first`` on; at most ``BATCH_LINES`` are looked at.

    ``data`` holds the same lines as one piece, beginning with that of index ``first``.
    """
    batch = lines[first : first + BATCH_LINES]
    tried = next((i for i, raw in enumerate(batch) if not raw.startswith(_BEGINNING)), len(batch))
    if not tried or n + tried > NUMBER_MAX:
        return PlainRun(0)
    del batch[tried:]
    checksums = [zlib.crc32(b"}", zlib.crc32(raw[:-CRC_BYTES])) for raw in batch]
    sealed = _same([raw[-CRC_BYTES:] for raw in batch], [b',"crc":"%08x"}' % checksum for checksum in checksums], tried)
    lengths = list(map(len, batch[:sealed]))
    decoded = _decoded(data[: sum(lengths) + sealed], sealed, n)
    if decoded is None:
        return PlainRun(tried)
    messages, model = decoded
    taken = len(messages)
    return PlainRun(tried, messages, checksums[:taken], lengths[:taken], model)


def _same(found: Sequence[object], wanted: Sequence[object], count: int) -> int:
    """How many at the beginning are equal."""
    if found == wanted:
        return count
    return next(index for index in range(count) if found[index] != wanted[index])


def _decoded(data: memoryview, count: int, n: int) -> tuple[list[Message], str] | None:
    """The messages of ``data`` as far as their numbers follow each other, and the last model; None when a closer look is needed."""
    try:
        str(data, "utf-8")
        facts = _decode_facts(data)
        messages = _decode_messages(data)
    except (msgspec.DecodeError, InvalidMessage, RecursionError, UnicodeDecodeError):
        return None
    if len(messages) != count:
        return None
    wanted = range(n, n + count)
    numbers = [fact.n for fact in facts]
    taken = count if numbers == list(wanted) else _same(numbers, wanted, count)
    models = [fact.model for fact in facts[:taken] if fact.model]
    return messages[:taken], models[-1] if models else ""
