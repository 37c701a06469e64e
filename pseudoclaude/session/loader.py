"""Loading: any bytes in, a history the provider accepts and an exact account of the rest out.

``load`` never raises for what a file contains and never writes.  It raises ``SessionUnreadable`` when the file cannot be read, because
"cannot be read" must not look like "is not there".  Cost is linear in what is read and memory is bounded by the live history: a log
larger than ``WHOLE_BYTES`` is read from its last whole replace, plus its first line; ``scan_all`` (``pseudoclaude check``) always reads
everything.  Both give the same ``messages``, ``id`` and ``model``.

Oracles: O1 (never raises), O2 (protocol), O3-O5 (nothing acknowledged lost, nothing invented, no holes), O6 and O8 (replace), O7 (spills).
"""

from __future__ import annotations

import errno
import hashlib
import posixpath
from collections.abc import Iterator
from typing import Literal

import msgspec

from pseudoclaude.errors import SessionUnreadable
from pseudoclaude.messages import History, ToolCall
from pseudoclaude.ports import FileSystem, Stat
from pseudoclaude.protocol import Repair, repair
from pseudoclaude.session.records import BOM, VERSION, Line, decode_line, salvage, segments
from pseudoclaude.session.replay import Finding, Replay
from pseudoclaude.settings import Dangling

LOG_NAME = "conversation.jsonl"
SPILL_FOLDER = "tool-results"
UNSYNCED_NAME = "unsynced"
LOCK_NAME = "lock"
CHUNK_BYTES = 1 << 20
WHOLE_BYTES = 1 << 20
"""Logs up to this size are read whole."""

State = Literal["clean", "repaired", "damaged", "empty", "missing", "unsupported"]

_TORN_KINDS = frozenset({"torn", "incomplete_replace", "nul"})


class LoadResult(msgspec.Struct, frozen=True):
    """What a log holds.

    ``truncated``: calls without a result that were trimmed.  ``scanned_from``: offset from which the log was replayed (0: all of it).
    ``records``, ``bad_lines``: counts in what was scanned; ``size``: bytes of the log; ``next_n``: the number of the next record.
    ``repairs``: what made the replayed history acceptable, so that a caller can show or record it.
    """

    state: State
    id: str
    model: str = ""
    messages: History = ()
    truncated: tuple[ToolCall, ...] = ()
    findings: tuple[Finding, ...] = ()
    scanned_from: int = 0
    records: int = 0
    bad_lines: int = 0
    size: int = 0
    next_n: int = 1
    repairs: tuple[Repair, ...] = ()
    has_header: bool = False
    ends_open: bool = False
    """The last byte belongs to a line: a newline is due before the next record."""
    cut: bool = False
    """The history was cut at a hole that was never acknowledged."""

    @property
    def changed(self) -> bool:
        """Repair or a cut changed what the log replays to; the next append records it."""
        return bool(self.repairs) or self.cut

    @property
    def unsettled(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if not finding.settled)


def load_log(path: str, fs: FileSystem, *, dangling: Dangling = "trim", scan_all: bool = False) -> LoadResult:
    """Read a session folder or a log file.  See the module docstring for what it promises."""
    folder, log = _locate(path, fs)
    name = posixpath.basename(folder)
    stat = _stat(log, fs)
    if stat is None:
        state: State = "damaged" if _has_spills(folder, fs) else "missing"
        return LoadResult(state, name, findings=_lonely_spills(folder, fs))
    try:
        return _load(folder, log, name, fs, dangling, scan_all)
    except OSError as error:
        raise _unreadable(log, error) from error


def _load(folder: str, log: str, name: str, fs: FileSystem, dangling: Dangling, scan_all: bool) -> LoadResult:
    fd = fs.open(log, "read")
    try:
        size = fs.fstat(fd).size
        start = 0 if scan_all or size <= WHOLE_BYTES else _resume_offset(fd, size, fs)
        replay = Replay(from_start=start == 0)
        if start:
            _first_line(fd, fs, replay)
        ends_open = _feed(fd, fs, replay, start, size)
    finally:
        fs.close(fd)
    findings = replay.finish()
    if replay.header is not None and replay.header.version != VERSION:
        return LoadResult(
            "unsupported",
            replay.header.id or name,
            size=size,
            findings=_version_finding(replay.header),
            has_header=True,
        )
    messages = tuple(replay.messages)
    fixed, repairs = repair(messages, dangling=dangling)
    findings += (
        _header_finding(replay, size) + _repair_findings(repairs, replay) + _spill_findings(folder, fixed, replay, fs)
    )
    if not fixed and not replay.records:
        findings += _lonely_spills(folder, fs)
    return LoadResult(
        _state(findings, replay, ends_open, bool(repairs)),
        (replay.header.id if replay.header is not None else "") or name,
        model=replay.model,
        messages=fixed,
        truncated=_trimmed(tuple(repairs)),
        findings=findings,
        scanned_from=start,
        records=replay.records,
        bad_lines=replay.bad_lines,
        size=size,
        next_n=replay.highest + 1,
        repairs=tuple(repairs),
        has_header=replay.header is not None,
        ends_open=ends_open,
        cut=replay.was_cut,
    )


def truncate_dangling_tool_calls(messages: History) -> tuple[History, tuple[ToolCall, ...]]:
    """``messages`` without calls that have no result, and those calls, in order."""
    fixed, repairs = repair(messages, dangling="trim")
    return fixed, _trimmed(tuple(repairs))


def _trimmed(repairs: tuple[Repair, ...]) -> tuple[ToolCall, ...]:
    return tuple(item for done in repairs for item in done.removed if isinstance(item, ToolCall))


# --- reading ---------------------------------------------------------------------------------------------------


def _locate(path: str, fs: FileSystem) -> tuple[str, str]:
    """Folder and log file that ``path`` (either of them) stands for."""
    stat = _stat(path, fs)
    if (stat is not None and stat.kind != "dir") or (stat is None and path.endswith(".jsonl")):
        return posixpath.dirname(path), path
    folder = path.rstrip("/") or "/"
    return folder, posixpath.join(folder, LOG_NAME)


def _stat(path: str, fs: FileSystem) -> Stat | None:
    try:
        return fs.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            return None
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: OSError) -> SessionUnreadable:
    return SessionUnreadable(
        f"the session log cannot be read: {error.strerror or error}",
        where=path,
        still_true="It is not missing, and nothing was changed",
        do_next="Check its permissions and the disk, then try again",
    )


def _chunks(fd: int, fs: FileSystem, start: int, size: int) -> Iterator[bytes]:
    offset = start
    while offset < size:
        data = fs.pread(fd, min(CHUNK_BYTES, size - offset), offset)
        if not data:
            return
        yield data
        offset += len(data)


def _feed(fd: int, fs: FileSystem, replay: Replay, start: int, size: int) -> bool:
    """Give the log from ``start`` on to ``replay``, whole lines at a time; True when the last line has no end yet."""
    held: list[bytes] = []
    offset = start
    for data in _chunks(fd, fs, start, size):
        cut = data.rfind(b"\n") + 1
        if not cut:
            held.append(data)
            continue
        block = b"".join([*held, data[:cut]]) if held else data[:cut]
        _feed_block(block, offset, replay, ended=True)
        offset += len(block)
        held = [data[cut:]] if cut < len(data) else []
    rest = b"".join(held)
    _feed_block(rest, offset, replay, ended=False)
    return bool(rest) and not rest.endswith(b"\x00")


def _feed_block(block: bytes, offset: int, replay: Replay, *, ended: bool) -> None:
    for position, raw, is_nul in segments(block, offset):
        if is_nul:
            replay.nul_run(position, len(raw))
        else:
            replay.segment(position, raw, ended=ended)


def _first_line(fd: int, fs: FileSystem, replay: Replay) -> None:
    line = decode_line(_head_of(fd, fs).removeprefix(BOM))
    if isinstance(line, Line) and line.type == "session":
        replay.header = line


def _head_of(fd: int, fs: FileSystem) -> bytes:
    head = fs.pread(fd, 1 << 16, 0)
    return head[: head.find(b"\n")] if b"\n" in head else b""


def _resume_offset(fd: int, size: int, fs: FileSystem) -> int:
    """Offset of the last whole replace from which replaying gives what replaying everything would; 0 when only all of it does.

    Needed for that: the first line is the header (it fixes id and version), and the numbered record directly before the replace is
    lower (otherwise the replace may be a duplicate, which only what lies further back can tell).
    """
    first = decode_line(_head_of(fd, fs).removeprefix(BOM))
    if not (isinstance(first, Line) and first.type == "session"):
        return 0
    candidate: tuple[int, Line] | None = None
    for offset, raw in _segments_backwards(fd, size, fs):
        if candidate is not None:
            before = _last_numbered(raw)
            if before is None:
                continue
            if candidate[1].n is not None and before < candidate[1].n:
                return candidate[0]
            candidate = None
        if b'"replace"' in raw:
            candidate = _last_replace(offset, raw)
            if candidate is not None and candidate[1].n is None:
                return candidate[0]
    return candidate[0] if candidate is not None else 0


def _last_replace(offset: int, raw: bytes) -> tuple[int, Line] | None:
    line = decode_line(raw)
    if isinstance(line, Line):
        return (offset, line) if line.type == "replace" else None
    whole = salvage(raw)
    if len(whole) != 1 or whole[0][2].type != "replace":
        return None
    return offset + whole[0][0], whole[0][2]


def _last_numbered(raw: bytes) -> int | None:
    line = decode_line(raw)
    if isinstance(line, Line):
        return line.n
    return next((record.n for _, _, record in reversed(salvage(raw)) if record.n is not None), None)


def _segments_backwards(fd: int, size: int, fs: FileSystem) -> Iterator[tuple[int, bytes]]:
    """All segments except NUL runs, last first."""
    held: list[bytes] = []
    end = size
    while end > 0:
        start = max(0, end - CHUNK_BYTES)
        data = _pread_all(fd, fs, start, end - start)
        cut = 0 if start == 0 else data.find(b"\n") + 1
        if start and not cut:
            held.append(data)
        else:
            block = b"".join([data[cut:], *reversed(held)])
            for offset, raw, is_nul in reversed(list(segments(block, start + cut))):
                if raw and not is_nul:
                    yield offset, raw
            held = [data[:cut]] if cut else []
        end = start


def _pread_all(fd: int, fs: FileSystem, offset: int, count: int) -> bytes:
    parts: list[bytes] = []
    while count > 0:
        data = fs.pread(fd, count, offset)
        if not data:
            break
        parts.append(data)
        offset += len(data)
        count -= len(data)
    return b"".join(parts)


# --- findings --------------------------------------------------------------------------------------------------


def _version_finding(header: Line) -> tuple[Finding, ...]:
    text = f"format version {header.version}; this program reads version {VERSION}. Nothing was read or changed"
    return (Finding("header", 0, 0, False, text),)


def _header_finding(replay: Replay, size: int) -> tuple[Finding, ...]:
    if replay.header is not None or not replay.sealed or not size:
        return ()
    text = "no whole header: the folder's name stands in for the session's id, and the next append writes a header"
    return (Finding("header", 0, 0, False, text),)


def _repair_findings(repairs: tuple[Repair, ...], replay: Replay) -> tuple[Finding, ...]:
    found = []
    for done in repairs:
        offset, length = replay.origins[done.position] if done.position < len(replay.origins) else (0, 0)
        found.append(Finding("repair", offset, length, False, done.detail))
    return tuple(found)


def _spill_findings(folder: str, messages: History, replay: Replay, fs: FileSystem) -> tuple[Finding, ...]:
    found = []
    for message in messages:
        spill = message.tool_result.spill if message.tool_result is not None else None
        if spill is None:
            continue
        problem = spill_problem(folder, spill.path, spill.bytes, spill.sha256, fs)
        if problem:
            text = f"the full result {spill.path} {problem}; its preview is kept"
            found.append(Finding("missing_spill", max(replay.replace_offset, 0), 0, False, text))
    return tuple(found)


def spill_problem(folder: str, path: str, size: int, sha256: str, fs: FileSystem) -> str:
    """What is wrong with a spilled file, in words; empty when its size and digest are right."""
    if path.startswith("/") or ".." in path.split("/"):
        return "is named outside the session's folder and was not looked at"
    full = posixpath.join(folder, path)
    try:
        stat = fs.stat(full)
        if stat.kind != "file":
            return "is not a file"
        if stat.size != size:
            return f"has {stat.size} bytes instead of {size}"
        return "" if _digest(full, size, fs) == sha256 else "has other bytes than were written"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"


def _digest(path: str, size: int, fs: FileSystem) -> str:
    fd = fs.open(path, "read")
    try:
        digest = hashlib.sha256()
        for data in _chunks(fd, fs, 0, size):
            digest.update(data)
    finally:
        fs.close(fd)
    return digest.hexdigest()


def _has_spills(folder: str, fs: FileSystem) -> bool:
    try:
        return bool(fs.listdir(posixpath.join(folder, SPILL_FOLDER)))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        raise _unreadable(folder, error) from error


def _lonely_spills(folder: str, fs: FileSystem) -> tuple[Finding, ...]:
    if not _has_spills(folder, fs):
        return ()
    text = (
        f"the log holds no record, but {SPILL_FOLDER}/ holds results: its history was lost, this is not a new session"
    )
    return (Finding("gap", 0, 0, False, text),)


def _state(findings: tuple[Finding, ...], replay: Replay, ends_open: bool, repaired: bool) -> State:
    unsettled = [finding for finding in findings if not finding.settled and finding.kind != "repair"]
    if not unsettled and not replay.records:
        return "empty"
    if any(not _is_torn_tail(finding, replay, ends_open) for finding in unsettled):
        return "damaged"
    return "repaired" if unsettled or repaired or replay.was_cut else "clean"


def _is_torn_tail(finding: Finding, replay: Replay, ends_open: bool) -> bool:
    """Bytes behind the last record that a write which was never acknowledged leaves."""
    return finding.offset >= replay.last_record_end and (ends_open or finding.kind in _TORN_KINDS)
