"""``python -m tests.session.damaged_logs [FOLDER]``: twenty damaged logs of one session, and what ``pseudoclaude check`` says of each.

Each is one damage that has been seen in the field, made from the same whole log by a function of its bytes alone.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import msgspec

from pseudoclaude.commands.check import check
from pseudoclaude.messages import Message, Spill, ToolCall, ToolResult
from pseudoclaude.realworld import RealFileSystem
from pseudoclaude.session.records import encode_header, encode_message, encode_replace

TS = 1_764_547_200
SPILLED = b"the whole output of the tests\n" * 3_000
_SPILL = Spill("tool-results/c2.txt", len(SPILLED), hashlib.sha256(SPILLED).hexdigest())

MESSAGES = (
    Message("user", "Why does the größen test fail?"),
    Message("assistant", "I look.", (ToolCall("c1", "read_file", '{"path":"tests/test_sizes.py"}'),), stop="tool_use"),
    Message("tool", tool_result=ToolResult("c1", "def test_größe():\n    assert size('世界') == 6\n")),
    Message("assistant", "", (ToolCall("c2", "run", '{"command":"pytest"}'),), stop="tool_use"),
    Message("tool", tool_result=ToolResult("c2", "the whole output of the tests (preview)", spill=_SPILL)),
    Message("assistant", "It counts characters instead of bytes.", stop="end_turn"),
    Message("user", "Mend it."),
    Message("assistant", "Done: size() now counts UTF-8 bytes.", stop="end_turn"),
)
HEADER = encode_header("20251201-000000-0123456789", TS, "/home/user/project")
LINES = [encode_message(message, n, TS + n, model="model-1" if n == 1 else "") for n, message in enumerate(MESSAGES, 1)]
WHOLE = HEADER + b"".join(LINES)


class DamagedLog(msgspec.Struct, frozen=True):
    """``tells``: words that a reader must find in the report.  ``spilled``: the bytes of the spilled result; None: it is missing."""

    name: str
    data: bytes
    tells: tuple[str, ...]
    status: int = 1
    spilled: bytes | None = SPILLED


def _without(number: int) -> bytes:
    return HEADER + b"".join(LINES[: number - 1] + LINES[number:])


def _instead(number: int, data: bytes) -> bytes:
    return HEADER + b"".join([*LINES[: number - 1], data, *LINES[number:]])


def _flipped(number: int) -> bytes:
    raw = bytearray(LINES[number - 1])
    raw[len(raw) // 2] ^= 4
    return _instead(number, bytes(raw))


_SNAPSHOT = encode_replace(
    "compact", (Message("user", "Summary: the größen test was mended."),), 9, TS + 9, model="model-1"
)
_BATCH = [encode_message(Message("user", f"message {n}"), n, TS, synced=1) for n in range(1, 5)]

DAMAGED = (
    DamagedLog("last newline lost", WHOLE[:-1], ("clean",), status=0),
    DamagedLog("last line torn", WHOLE[:-30], ("torn", "stops in the middle of the record", "Done: size()")),
    DamagedLog("torn inside a character", WHOLE[: WHOLE.index("世".encode()) + 1], ("inside a character",)),
    DamagedLog("torn line ended, then a new one", WHOLE[:-30] + b"\n" + LINES[7], ("Settled",), status=0),
    DamagedLog(
        "torn line with the next glued to it", WHOLE[:-30] + LINES[7], ("a whole record was glued to it",), status=0
    ),
    DamagedLog("NUL in the middle", _instead(6, bytes(len(LINES[5]))), ("NUL bytes", "record 6 is missing")),
    DamagedLog("NUL at the end", WHOLE + bytes(512), ("512 NUL bytes",)),
    DamagedLog("one bit flipped", _flipped(8), ("checksum does not match", "UTF-8 bytes")),
    DamagedLog("a line deleted", _without(6), ("record 6 is missing",)),
    DamagedLog("the line of a call deleted", _without(2), ("record 2 is missing", "no call 'c1'", "def test_größe")),
    DamagedLog(
        "the line of a result deleted", _without(3), ("record 3 is missing", "call 'c1' of 'read_file' has no result")
    ),
    DamagedLog("a line doubled", _instead(6, LINES[5] * 2), ("a second time", "dropped"), status=0),
    DamagedLog(
        "two writers", WHOLE + encode_message(Message("user", "from elsewhere"), 7, TS), ("with other bytes: kept",)
    ),
    DamagedLog("not UTF-8", _instead(6, b"\xff\xfe" + LINES[5][2:]), ("not UTF-8", "record 6 is missing")),
    DamagedLog("garbage between lines", _instead(6, b"<<<<<<< HEAD\n" + LINES[5]), ("<<<<<<< HEAD",), status=0),
    DamagedLog("no header", b"".join(LINES), ("no whole header",)),
    DamagedLog("snapshot torn", WHOLE + _SNAPSHOT[:-20], ("incomplete_replace", "Summary: the größen")),
    DamagedLog(
        "spilled result missing", WHOLE, ("tool-results/c2.txt is missing", "its preview is kept"), spilled=None
    ),
    DamagedLog("spilled result shortened", WHOLE, ("has 100 bytes instead of 90000",), spilled=SPILLED[:100]),
    DamagedLog(
        "hole in an unsynced batch", HEADER + _BATCH[0] + _BATCH[1] + _BATCH[3], ("never acknowledged", "history ends")
    ),
)


def write_logs(folder: Path) -> list[tuple[DamagedLog, Path]]:
    """One session folder a damaged log."""
    made = []
    for number, damaged in enumerate(DAMAGED, 1):
        session = folder / f"{number:02} {damaged.name}"
        (session / "tool-results").mkdir(parents=True)
        (session / "conversation.jsonl").write_bytes(damaged.data)
        if damaged.spilled is not None:
            (session / _SPILL.path).write_bytes(damaged.spilled)
        made.append((damaged, session))
    return made


def report(session: Path, *, as_json: bool = False) -> tuple[int, str]:
    """Exit status and text of ``pseudoclaude check``."""
    out = StringIO()
    status = check(
        str(session), RealFileSystem(), dangling="trim", dialect="anthropic", as_json=as_json, out=out, err=out
    )
    return status, out.getvalue()


def main(write: Callable[[str], object] = sys.stdout.write) -> int:
    """Write the logs into a folder (a temporary one by default) and print the report of each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", default="")
    chosen = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as root:
        for damaged, session in write_logs(Path(chosen or root)):
            status, text = report(session)
            write(f"--- {damaged.name} (exit {status})\n{text.replace(f'{chosen or root}/', '')}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
