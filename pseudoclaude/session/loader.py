"""Loading: any bytes in, a history the provider accepts and an exact account of the rest out.

``load_log`` never raises for what a file contains and never writes.  It raises ``SessionUnreadable`` when the file cannot be read, because
"cannot be read" must not look like "is not there".  Cost is linear in what is read and memory is bounded by the live history: a log
larger than ``WHOLE_BYTES`` is read from its last whole replace, plus its first line; ``scan_all`` (``pseudoclaude check``) always reads
everything.  Both give the same ``messages``, ``id`` and ``model``.

Oracles: O1 (never raises), O2 (protocol), O3-O5 (nothing acknowledged lost, nothing invented, no holes), O6 and O8 (replace), O7 (spills).
"""

from __future__ import annotations

import errno
import posixpath
from typing import Literal

import msgspec

from pseudoclaude.errors import SessionUnreadable
from pseudoclaude.messages import History, Message, ToolCall
from pseudoclaude.ports import FileSystem, Stat
from pseudoclaude.protocol import Repair, repair
from pseudoclaude.session.findings import Finding
from pseudoclaude.session.reading import CHUNK_BYTES, LogReader
from pseudoclaude.session.records import VERSION, Line
from pseudoclaude.session.replay import Replay
from pseudoclaude.session.spills import SPILL_FOLDER, has_spills, spill_problem
from pseudoclaude.settings import Dangling

LOG_NAME = "conversation.jsonl"
UNSYNCED_NAME = "unsynced"
LOCK_NAME = "lock"
WHOLE_BYTES = 1 << 20
"""Logs up to this size are read whole."""
QUOTE_CHARS = 500
"""So much of a message or call that repair left out is quoted in its finding."""

State = Literal["clean", "repaired", "damaged", "empty", "missing", "unsupported"]


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


def load_log(
    path: str,
    fs: FileSystem,
    *,
    dangling: Dangling = "trim",
    scan_all: bool = False,
    check_spills: bool = True,
    whole_bytes: int = WHOLE_BYTES,
    chunk_bytes: int = CHUNK_BYTES,
) -> LoadResult:
    """Read a session folder or a log file.  See the module docstring for what it promises.

    ``check_spills``: read every spilled result that the history names and compare its digest (a list of sessions does not need it).
    ``whole_bytes`` and ``chunk_bytes`` change what is read at a time, never what comes out.
    """
    log = path
    try:
        folder, log, stat = _locate(path, fs)
        name = posixpath.basename(folder)
        if stat is None:
            lonely = _lonely_spills(folder, fs)
            return LoadResult("damaged" if lonely else "missing", name, findings=lonely)
        if stat.kind == "other":
            raise OSError(errno.EINVAL, "it is not a regular file", log)
        fd = fs.open(log, "read")
        try:
            size = fs.fstat(fd).size
            replay, findings, start, ends_open = _replayed(
                LogReader(fd, fs, size, chunk_bytes), scan_all or size <= whole_bytes
            )
        finally:
            fs.close(fd)
        if replay.header is not None and replay.header.version != VERSION:
            return _unsupported(replay.header, name, size)
        result = _result(folder, replay, findings, dangling, (start, size, ends_open))
        return _with_files(folder, fs, result, replay, check_spills)
    except OSError as error:
        raise _unreadable(log, error) from error


def _replayed(reader: LogReader, whole: bool) -> tuple[Replay, tuple[Finding, ...], int, bool]:
    start = 0 if whole else reader.resume_offset()
    replay = Replay(from_start=start == 0)
    if start:
        replay.header = reader.header()
    ends_open = reader.feed(replay, start)
    return replay, replay.finish(ends_open=ends_open), start, ends_open


def _result(
    folder: str,
    replay: Replay,
    findings: tuple[Finding, ...],
    dangling: Dangling,
    extent: tuple[int, int, bool],
) -> LoadResult:
    start, size, ends_open = extent
    fixed, repairs = repair(tuple(replay.messages), dangling=dangling)
    header = _header_finding(replay, size)
    if repairs:
        findings += _repair_findings(repairs, replay)
    findings += header
    return LoadResult(
        _state(replay.account.damaged or bool(header), findings, replay, bool(repairs)),
        (replay.header.id if replay.header is not None else "") or posixpath.basename(folder),
        model=replay.model,
        messages=fixed,
        truncated=_trimmed(repairs),
        findings=findings,
        scanned_from=start,
        records=replay.records,
        bad_lines=replay.account.bad_lines,
        size=size,
        next_n=replay.highest + 1,
        repairs=tuple(repairs),
        has_header=replay.header is not None,
        ends_open=ends_open,
        cut=replay.was_cut,
    )


def _with_files(folder: str, fs: FileSystem, result: LoadResult, replay: Replay, check_spills: bool) -> LoadResult:
    """``result`` with what the files beside the log say against it."""
    found = _spill_findings(folder, result.repairs, replay, fs) if check_spills else ()
    if not result.messages and not replay.records:
        found += _lonely_spills(folder, fs)
    if not found:
        return result
    return msgspec.structs.replace(result, state="damaged", findings=result.findings + found)


def truncate_dangling_tool_calls(messages: History) -> tuple[History, tuple[ToolCall, ...]]:
    """``messages`` without calls that have no result, and those calls, in order."""
    fixed, repairs = repair(messages, dangling="trim")
    return fixed, _trimmed(repairs)


def _trimmed(repairs: tuple[Repair, ...]) -> tuple[ToolCall, ...]:
    return tuple(item for done in repairs for item in done.removed if isinstance(item, ToolCall))


def _state(damaged: bool, findings: tuple[Finding, ...], replay: Replay, repaired: bool) -> State:
    if damaged:
        return "damaged"
    if repaired or replay.was_cut or any(not finding.settled for finding in findings):
        return "repaired"
    return "clean" if replay.records else "empty"


# --- the file --------------------------------------------------------------------------------------------------


def _locate(path: str, fs: FileSystem) -> tuple[str, str, Stat | None]:
    """Folder and log file that ``path`` (either of them) stands for, and what lies under the name of the log."""
    folder = path.rstrip("/") or "/"
    inside = f"{folder}/{LOG_NAME}"
    stat = _stat(inside, fs)
    if stat is not None:
        return folder, inside, stat
    itself = _stat(path, fs)
    if (itself is not None and itself.kind != "dir") or (itself is None and path.endswith(".jsonl")):
        return posixpath.dirname(path), path, itself
    return folder, inside, None


def _stat(path: str, fs: FileSystem) -> Stat | None:
    try:
        return fs.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            return None
        raise


def _unreadable(path: str, error: OSError) -> SessionUnreadable:
    return SessionUnreadable(
        f"the session log cannot be read: {error.strerror or error}",
        where=path,
        still_true="It is not missing, and nothing was changed",
        do_next=(
            "It is a symbolic link, which is not followed: name the file or folder it leads to"
            if error.errno == errno.ELOOP
            else "Check its permissions and the disk, then try again"
        ),
    )


# --- findings of the whole -------------------------------------------------------------------------------------


def _unsupported(header: Line, name: str, size: int) -> LoadResult:
    version = f"format version {header.version}" if header.version else "an unknown format version"
    text = f"{version}; this program reads version {VERSION}. Nothing was read or changed"
    finding = Finding("header", 0, 0, False, text)
    return LoadResult("unsupported", header.id or name, size=size, findings=(finding,), has_header=True)


def _header_finding(replay: Replay, size: int) -> tuple[Finding, ...]:
    if replay.header is not None or not replay.sealed or not size:
        return ()
    text = "no whole header: the folder's name stands in for the session's id, and the next append writes a header"
    return (Finding("header", 0, 0, False, text),)


def _repair_findings(repairs: tuple[Repair, ...], replay: Replay) -> tuple[Finding, ...]:
    found = []
    for done in repairs:
        offset, length = replay.origin(done.position)
        found.append(Finding("repair", offset, length, False, done.detail + _quoted(done)))
    return tuple(found)


def _quoted(done: Repair) -> str:
    """What went with a repair, in its own words: it is lost to the model, and must not be to the reader."""
    said = []
    for item in done.removed:
        if isinstance(item, Message):
            said.append(item.tool_result.content if item.tool_result is not None else item.content)
        elif isinstance(item, ToolCall):
            said.append(item.arguments)
    return "".join(
        f"; it held {text[:QUOTE_CHARS]!r}" + (f" … of {len(text):,} characters" if len(text) > QUOTE_CHARS else "")
        for text in said
        if text
    )


def _spill_findings(folder: str, repairs: tuple[Repair, ...], replay: Replay, fs: FileSystem) -> tuple[Finding, ...]:
    """What is wrong with the spilled files that the history names; results that repair dropped are not in it."""
    named = [
        (position, message.tool_result.spill)
        for position, message in enumerate(replay.messages)
        if message.tool_result is not None and message.tool_result.spill is not None
    ]
    dropped = {done.position for done in repairs if done.action == "drop_result"} if named else ()
    found = []
    for position, spill in named:
        problem = spill_problem(folder, spill, fs) if position not in dropped else ""
        if problem:
            text = f"the full result {spill.path} {problem}; its preview is kept"
            found.append(Finding("missing_spill", *replay.origin(position), False, text))
    return tuple(found)


def _lonely_spills(folder: str, fs: FileSystem) -> tuple[Finding, ...]:
    if not has_spills(folder, fs):
        return ()
    text = (
        f"the log holds no record, but {SPILL_FOLDER}/ holds results: its history was lost, this is not a new session"
    )
    return (Finding("gap", 0, 0, False, text),)
