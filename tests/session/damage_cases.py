"""What must hold for every damage and every way a process can end, one row each; see ``cases.py``."""

from __future__ import annotations

import msgspec

from pseudoclaude.errors import NotDurable
from pseudoclaude.messages import Message
from pseudoclaude.session.loader import load_log
from simulator.disk.faults import DiskFault
from tests.session.build import (
    FOLDER,
    HEADER,
    LOG,
    assistant,
    bytes_of,
    calls,
    lines,
    log_of,
    machine,
    opened,
    result,
    resumed,
    user,
)
from tests.session.cases import TURN, Case, damaged, short, twice

FULL = (user("u"), calls("c"), result("c", "r"), assistant("é"))
_H = len(HEADER)
_FULL = HEADER + b"".join(lines(FULL))
_F = lines(FULL)
_ENDS = [_H + sum(len(part) for part in _F[: count + 1]) for count in range(4)]
_N = len(_FULL)
_WHOLE = "U:u C:c R:c=r A:é"


def _must(given: str, expected: str, data: bytes | None) -> Case:
    return damaged("must", given, expected, data)


def _untouched() -> str:
    fs = machine(_FULL)
    seen = []
    for _ in range(5):
        seen.append(msgspec.json.encode(resumed(fs).messages))
    return f"{len({*seen})} history, {'unchanged' if bytes_of(fs) == _FULL else 'CHANGED'} file"


def _lonely_spills() -> str:
    return " | ".join(twice(data, spills={"c-1.txt": b"full text"}) for data in (None, b"", HEADER))


def _interrupted_text() -> str:
    return twice(log_of(user("u"), Message("assistant", "half a te", stop="interrupted")))


def _full_then_freed() -> str:
    """The disk fills in the second turn and is freed before the resumes."""
    fs = machine(_FULL, DiskFault("write", nth=2, error="ENOSPC", partial=30, sticky=True, path_suffix="jsonl"))
    writer = opened(fs)
    writer.append_message(user("u2"))
    try:
        writer.append_message(assistant("a2"))
    except NotDurable as error:
        told = error.what
    fs.kill()
    fs.faults = None
    first = resumed(fs, *TURN)
    return f"{told}; {short(first.messages)} -> {short(resumed(fs).messages)}"


def _looking() -> str:
    """Loading, listing and checking, of whole and of damaged logs."""
    changed = 0
    for data in (_FULL, _FULL[:-20], b"garbage", b"", bytes(600)):
        fs = machine(data)
        for scan_all in (False, True):
            load_log(FOLDER, fs, scan_all=scan_all)
            load_log(LOG, fs, scan_all=scan_all)
        resumed(fs)
        changed += bytes_of(fs) != data
    return f"{changed} files changed"


MUST = [
    _must("the last newline is lost", f"clean: {_WHOLE}, kept twice", _FULL[:-1]),
    _must("the last line is torn by 2 bytes", "repaired: U:u C:c R:c=r [torn@449+90], kept twice", _FULL[:-2]),
    _must(
        "the last line is torn in its middle",
        "repaired: U:u C:c R:c=r [torn@449+46], kept twice",
        _FULL[: (_ENDS[2] + _N) // 2],
    ),
    _must("1 byte of the last line is left", "repaired: U:u C:c R:c=r [torn@449+1], kept twice", _FULL[: _ENDS[2] + 1]),
    _must(
        "the last line is torn inside a character",
        "repaired: U:u C:c R:c=r [torn@449+71], kept twice",
        _FULL[: _FULL.rindex("é".encode()) + 1],
    ),
    _must(
        "the last 512 bytes are NUL",
        "repaired: U:u C:c R:c=r [torn@449+32 nul@481+60], kept twice",
        _FULL[:-60] + bytes(60),
    ),
    _must("512 NUL are appended", "repaired: U:u C:c R:c=r A:é [nul@541+512], kept twice", _FULL + bytes(512)),
    _must(
        "the result line is torn",
        "repaired: U:u C:c R*:c [torn@333+107 repair@181+151], kept twice",
        _FULL[: _ENDS[2] - 9],
    ),
    _must(
        "the result line is torn, the text is there",
        "damaged: U:u C:c R*:c A:é [torn@333+107 gap@441+0 repair@181+151], kept twice",
        _FULL[: _ENDS[2] - 9] + b"\n" + _F[3],
    ),
    _must(
        "the call line is torn",
        "damaged: U:u A:é [torn@181+143 gap@325+0 repair@325+115], kept twice",
        _FULL[: _ENDS[1] - 9] + b"\n" + _F[2] + _F[3],
    ),
    _must(
        "the call line is deleted",
        "damaged: U:u A:é [gap@181+0 repair@181+115], kept twice",
        HEADER + _F[0] + _F[2] + _F[3],
    ),
    _must(
        "the result line is deleted",
        "damaged: U:u C:c R*:c A:é [gap@333+0 repair@181+151], kept twice",
        HEADER + _F[0] + _F[1] + _F[3],
    ),
    _must(
        "a garbage line in the middle",
        "clean: U:u C:c R:c=r A:é [json@181+7], kept twice",
        HEADER + _F[0] + b"garbage\n" + b"".join(_F[1:]),
    ),
    _must(
        "a line that is not UTF-8 in the middle",
        "clean: U:u C:c R:c=r A:é [utf8@181+3], kept twice",
        HEADER + _F[0] + b"\xff\xfe\x80\n" + b"".join(_F[1:]),
    ),
    _must(
        "a NUL line in the middle",
        "clean: U:u C:c R:c=r A:é [nul@181+40], kept twice",
        HEADER + _F[0] + bytes(40) + b"\n" + b"".join(_F[1:]),
    ),
    _must(
        "the first line is torn",
        "damaged: U:u C:c R:c=r A:é [torn@0+30 header@0+0], kept twice",
        HEADER[:30] + b"\n" + b"".join(_F),
    ),
    _must(
        "the first line is garbage",
        "damaged: U:u C:c R:c=r A:é [json@0+7 header@0+0], kept twice",
        b"garbage\n" + b"".join(_F),
    ),
    _must("the first line is missing", "damaged: U:u C:c R:c=r A:é [header@0+0], kept twice", b"".join(_F)),
    _must("an empty file", "empty: (empty), kept twice", b""),
    _must("no file", "missing: (empty), kept twice", None),
    Case(
        "must",
        "no file, an empty one, only a header, beside a spilled result",
        "damaged: (empty) [gap@0+0], kept twice | damaged: (empty) [gap@0+0], kept twice | damaged: (empty) [gap@0+0], kept twice",
        _lonely_spills,
    ),
    _must(
        "killed while a tool runs", "repaired: U:u C:c R*:c [repair@181+151], kept twice", log_of(user("u"), calls("c"))
    ),
    _must(
        "killed with two calls, one done",
        "repaired: U:u C:c1 C:c2 R*:c1 R:c2=ok [repair@181+195], kept twice",
        log_of(user("u"), calls("c1", "c2"), result("c2", "ok")),
    ),
    Case("must", "killed in half a text that was appended", "clean: U:u A:half a te, kept twice", _interrupted_text),
    _must("killed before any answer", "clean: U:u, kept twice", log_of(user("u"))),
    Case(
        "must",
        "the disk is full, then freed",
        "the log could not be written: ENOSPC; U:u C:c R:c=r A:é U:u2 -> U:u C:c R:c=r A:é U:u2 U:n A:m",
        _full_then_freed,
    ),
    Case("must", "any start, list or check", "0 files changed", _looking),
    Case("must", "an undamaged log, resumed five times", "1 history, unchanged file", _untouched),
]
