"""Salvage: whole records inside bytes that are none.

A record of ours that was glued to a torn one, or to another, is found by its beginning and its checksum.  What lies *inside* another record is
never taken for one, wherever the outer one was torn: nothing is invented to save something.
"""

from __future__ import annotations

import bisect
import re
import zlib

from pseudoclaude.session.records import Line, decode_line

SALVAGE_EFFORT = 16
"""Salvage hashes at most this many times the length of a bad line, so that loading stays linear."""

_TRAILER_START = b',"crc":"'
_TRAILER = re.compile(rb',"crc":"[0-9a-f]{8}"\}')
_RECORD_START = re.compile(rb'\{"type":"[a-z_]{1,40}",(?="n":|"version":)')
_INSIDE = (b",", b"]", b"}")
_VALUE_FOLLOWS = (b":", b"[", b",")


def salvage(raw: bytes) -> list[tuple[int, int, Line]]:
    """Whole records with a right crc inside a bad segment: ``(start, end, line)``, in order.

    A record of ours that was glued to a torn one, or to another, is found by its beginning and its checksum.  What lies *inside* another
    record - a model may send a native payload that looks like a record of ours - is none: it begins in a payload where a JSON value may begin,
    or ends where one may end.  Either is enough to refuse it, since a tear may have taken the other.
    """
    found: list[tuple[int, int, Line]] = []
    if _TRAILER_START not in raw:
        return found
    budget = len(raw) * SALVAGE_EFFORT
    starts = [match.start() for match in _RECORD_START.finditer(raw) if not _may_be_nested(raw, match.start())]
    first = 0
    for trailer in _TRAILER.finditer(raw):
        end = trailer.end()
        if raw[end : end + 1] in _INSIDE:
            continue
        wanted = int(raw[end - 10 : end - 2], 16)
        for index in range(first, len(starts)):
            start = starts[index]
            if start >= trailer.start():
                break
            budget -= end - start
            if budget < 0:
                return found
            if zlib.crc32(b"}", zlib.crc32(memoryview(raw)[start : trailer.start()])) == wanted:
                line = decode_line(raw[start:end])
                if isinstance(line, Line):
                    found.append((start, end, line))
                    first = bisect.bisect_left(starts, end)
                break
    return found


def _may_be_nested(raw: bytes, start: int) -> bool:
    """Could what begins at ``start`` be a value inside a native payload, the one place where foreign objects stand in our records?"""
    before = start
    while before and raw[before - 1] in b" \t\r":
        before -= 1
    return raw[before - 1 : before] in _VALUE_FOLLOWS and raw.find(b'"payload":', 0, before) >= 0
