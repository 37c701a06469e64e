"""Damage and faults that people really met, as rows: what is given, what must come out, and how to get it.

Each damaged log is resumed twice with a whole turn in between, because the second resume is where others lose the history.  ``got`` is text made
of what the product gave; a row holds when it equals ``expected`` to the letter.
"""

from __future__ import annotations

import os
import posixpath
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from pseudoclaude.compact.spill import SpillFolder
from pseudoclaude.errors import NotDurable, SessionLocked
from pseudoclaude.messages import History
from pseudoclaude.realworld import RealFileSystem
from pseudoclaude.session import LoadResult, SessionWriter
from pseudoclaude.session.catalog import project_folder, session_folder
from pseudoclaude.session.fork import fork_session
from pseudoclaude.session.loader import load_log
from simulator.build import build_disk
from simulator.crash import crash_states
from simulator.disk import OpLog, SimFileSystem
from simulator.disk.faults import DiskFault
from simulator.values import Recording
from simulator.world import SimClock, SimIds
from tests.memory.build import answer, manager, operation
from tests.session.build import (
    FOLDER,
    HEADER,
    LOG,
    assistant,
    bytes_of,
    calls,
    disk_of,
    line,
    lines,
    loaded,
    log_of,
    machine,
    opened,
    refused,
    replaced,
    result,
    resumed,
    user,
)

TURN = (user("n"), assistant("m"))


class Case(msgspec.Struct, frozen=True):
    """``source`` is the number of a reported fault, or a row of what must hold for damaged sessions."""

    source: str
    given: str
    expected: str
    run: Callable[[], str]


def short(messages: History) -> str:
    """``U:a C:c1 R:c1=text R*:c2 A:b``; R* is a result that says the outcome is unknown."""
    parts = []
    for message in messages:
        found = message.tool_result
        if found is not None:
            parts.append(
                f"R*:{found.call_id}" if found.origin == "interrupted" else f"R:{found.call_id}={found.content[:12]}"
            )
        elif message.role == "user":
            parts.append(f"U:{message.content[:12]}")
        else:
            parts += [f"A:{message.content[:12]}"] if message.content else []
            parts += [f"C:{call.id}" for call in message.tool_calls]
    return " ".join(parts) or "(empty)"


def found_in(result_of_load: LoadResult) -> list[str]:
    return [f"{finding.kind}@{finding.offset}+{finding.length}" for finding in result_of_load.findings]


def twice(data: bytes | None, *, spills: dict[str, bytes] | None = None) -> str:
    """Load, resume and say a turn, resume and say a turn, load: the first history with its findings, and the last."""
    fs = SimFileSystem(disk_of(data, spills))
    first = load_log(FOLDER, fs, dangling="answer", scan_all=True)
    if fs.peek(LOG) != data:
        return "looking changed the file"
    resumed(fs, *TURN, dangling="answer")
    second = resumed(fs, *TURN, dangling="answer")
    last = load_log(FOLDER, fs, dangling="answer", scan_all=True)
    if not bytes_of(fs).startswith(data or b""):
        return "bytes that were there are gone"
    if (second.messages, last.messages) != ((*first.messages, *TURN), (*first.messages, *TURN, *TURN)):
        return f"{short(first.messages)} -> {short(second.messages)} -> {short(last.messages)}"
    if refused(first.messages) or refused(last.messages):
        return f"a provider refuses it: {(refused(first.messages) + refused(last.messages))[0]}"
    new = [
        name
        for name, f in zip(found_in(last), last.findings, strict=True)
        if not f.settled and name not in found_in(first)
    ]
    told = f" [{' '.join(found_in(first))}]" if first.findings else ""
    return f"{first.state}: {short(first.messages)}{told}, kept twice" + (f", new findings {new}" if new else "")


def damaged(source: str, given: str, expected: str, data: bytes | None) -> Case:
    return Case(source, given, expected, lambda: twice(data))


# --- reported faults -------------------------------------------------------------------------------------------

_TORN = b'{"type":"message","mess'


def _short_write() -> str:
    """A write takes 20 bytes, the next fails, the one after works."""
    fs = machine(
        HEADER,
        DiskFault("write", nth=1, partial=20, path_suffix="jsonl"),
        DiskFault("write", nth=2, error="EIO", path_suffix="jsonl"),
    )
    resumed(fs, user("a"), user("b"))
    again = loaded(bytes_of(fs))
    return f"{short(again.messages)} [{' '.join(found.kind for found in again.findings)}], {len(again.unsettled)} unsettled"


def _full_disk() -> str:
    """Every write of the third and fourth append fails after 10 bytes; then there is space."""
    fs = machine(
        HEADER, *(DiskFault("write", nth=n, error="ENOSPC", partial=10, path_suffix="jsonl") for n in range(3, 7))
    )
    seen = []
    with opened(fs) as writer:
        for text in "abcde":
            try:
                writer.append_message(user(text))
                seen.append(f"{text} saved")
            except NotDurable as error:
                seen.append(f"{text} refused with {error.unsaved} unsaved")
    return f"{', '.join(seen)}; then {short(loaded(bytes_of(fs)).messages)}, {len(loaded(bytes_of(fs)).unsettled)} unsettled"


def _two_writers() -> str:
    fs = machine(None)
    with opened(fs) as first:
        first.append_message(user("a"))
        try:
            opened(fs)
        except SessionLocked as error:
            told = error.what
        first.append_message(assistant("c"))
    return f"{told}; {short(loaded(bytes_of(fs)).messages)}"


def _stale_locks() -> str:
    opened_with = []
    for text in (b"pid 999999 on here\n", b"", b'{"pid": 12', b"\xff\x00"):
        fs = machine(log_of(user("a")))
        fd = fs.open(posixpath.join(FOLDER, "lock"), "lock")
        fs.write(fd, text)
        fs.close(fd)
        with opened(fs) as writer:
            opened_with.append(short(writer.loaded.messages))
    return ", ".join(opened_with)


def _failing_rename() -> str:
    """The log itself is never renamed; a fork is.  Its folder is gone when the rename fails, and the source is whole."""
    fs = machine(log_of(user("a")), DiskFault("rename", nth=1, error="EACCES"))
    try:
        fork_session(FOLDER, fs, SimClock(), SimIds(0))
    except Exception as error:  # noqa: BLE001 (the class is what is shown)
        told = type(error).__name__
    return f"{told}; left: {' '.join(sorted(fs.listdir('/')))}; {short(loaded(bytes_of(fs)).messages)}"


def _killed() -> str:
    log = OpLog()
    fs = SimFileSystem(disk_of(None), log=log)
    writer = opened(fs)
    writer.append_message(user("a"))
    recording = Recording("case", "", 0, "", disk_of(None), tuple(log.ops), (), "anthropic", "always")
    after = [s for s in crash_states(recording, "posix-min") if s.point == len(log.ops)]
    kept = {short(load_log(FOLDER, SimFileSystem(build_disk(recording, state))).messages) for state in after}
    fs.kill()
    return f"after a kill {short(resumed(fs).messages)}, after a power loss {' or '.join(sorted(kept))}"


def _side_files() -> str:
    opened_with = []
    for name, data in (("state.json", b'{"a":'), ("state.json", b""), ("unsynced.json", b"\x00")):
        fs = machine(log_of(user("a")))
        fs.close(fs.open(posixpath.join(FOLDER, name), "create"))
        fd = fs.open(posixpath.join(FOLDER, name), "append")
        fs.write(fd, data)
        fs.close(fd)
        opened_with.append(short(resumed(fs).messages))
    fs = machine(log_of(user("a")))
    fs.mkdir(posixpath.join(FOLDER, "state.json"))
    return ", ".join([*opened_with, short(resumed(fs).messages)])


def _permissions() -> str:
    """On the real disk: the log, its lock, a spill and what memory keeps."""
    before = os.umask(0o022)
    try:
        with tempfile.TemporaryDirectory() as root:
            project = Path(root, "project")
            project.mkdir()
            folder = session_folder(root, str(project), "s")
            with SessionWriter.open(folder) as writer:
                writer.append_message(user("a"))
                SpillFolder(RealFileSystem(), folder).store("c1", "x" * 9)
                writer.append_replace("snapshot", [user("b")])
            remembering = manager(
                root, answer(operation("create", "project", "tabs", "likes tabs")), fs=RealFileSystem()
            )
            remembering.update_async((user("remember tabs"), assistant("ok")), session_id="s", range=(1, 2))
            paths = sorted(path for path in Path(root).rglob("*") if path != project)
            modes = {("files" if path.is_file() else "folders", stat.S_IMODE(path.stat().st_mode)) for path in paths}
            kept = {path.name for path in paths}
    finally:
        os.umask(before)
    assert {"conversation.jsonl", "lock", "tool-results", "MEMORY.md"} <= kept, kept
    return ", ".join(f"{kind} {mode:04o}" for kind, mode in sorted(modes))


def _folder_names() -> str:
    paths = ["/x/a-b", "/x/a/b", "/x/日本", "/x/中国", "/x/" + "l" * 300]
    names = [posixpath.basename(project_folder("/h", path)) for path in paths]
    stable = names == [posixpath.basename(project_folder("/h", path)) for path in paths]
    return (
        f"{len({*names})} different names, longest {max(len(name.encode()) for name in names)} bytes, stable: {stable}"
    )


def _cut_replace() -> str:
    """A replace of ten messages by three, cut at every byte."""
    old = [user("q") if n % 2 == 0 else assistant(f"a{n}") for n in range(10)]
    new = [user("summary"), assistant("é 世界"), user("go")]
    before, step = HEADER + b"".join(lines(old)), replaced(new, 11)
    sizes = {len(loaded(before + step[:cut]).messages): None for cut in range(len(step) + 1)}
    mixed = [
        cut for cut in range(len(step) + 1) if loaded(before + step[:cut]).messages not in (tuple(old), tuple(new))
    ]
    return f"{len(step) + 1} cuts give {' or '.join(map(str, sizes))} messages, {len(mixed)} mixed"


def _long_line() -> str:
    data = log_of(user("u"), calls("c"), result("c", "x" * 12_000_000), assistant("a"))
    kept = loaded(data).messages[2].tool_result
    assert kept is not None
    return f"{loaded(data).state}, {len(kept.content):,} characters"


_A, _B, _C = line(user("a"), 1), line(assistant("b"), 2), line(user("c"), 3)
_H = len(HEADER)

REPORTED = [
    damaged(
        "A1", 'U("a") and a torn record', f"repaired: U:a [torn@{_H + len(_A)}+23], kept twice", HEADER + _A + _TORN
    ),
    damaged(
        "A2",
        "512 NUL in front of a whole line",
        f"clean: U:a A:b U:c [nul@{_H + len(_A)}+512], kept twice",
        HEADER + _A + bytes(512) + _B + _C,
    ),
    damaged(
        "A2",
        "512 NUL as a line",
        f"clean: U:a A:b U:c [nul@{_H + len(_A)}+512], kept twice",
        HEADER + _A + bytes(512) + b"\n" + _B + _C,
    ),
    Case("A4", "20 of 90 bytes written, an error, then it works", "U:a U:b [torn], 0 unsettled", _short_write),
    *(
        damaged(
            "A5",
            f"a, b and the last line {name}",
            f"{state}: U:a A:b [{kind}@{_H + len(_A + _B)}+{length}], kept twice",
            HEADER + _A + _B + last,
        )
        for name, last, state, kind, length in (
            ("torn", b'{"type":"message"', "repaired", "torn", 17),
            ("empty", b"\n", "clean", "json", 1),
            ("null", b"null\n", "damaged", "schema", 4),
            ("[]", b"[]\n", "damaged", "schema", 2),
            ('"x"', b'"x"\n', "damaged", "schema", 3),
            ("42", b"42\n", "damaged", "schema", 2),
            ("{}", b"{}\n", "damaged", "schema", 2),
        )
    ),
    Case(
        "A7",
        "the disk is full from the third append to the fourth",
        "a saved, b saved, c refused with 1 unsaved, d refused with 2 unsaved, e saved; then U:a U:b U:c U:d U:e, 0 unsettled",
        _full_disk,
    ),
    Case("A8", "two writers", "the session is in use by pid 1 on simulator; U:a A:c", _two_writers),
    Case("A10", "a lock file with a dead pid, empty, torn, garbage", "U:a, U:a, U:a, U:a", _stale_locks),
    Case("A11", "a rename fails", "SessionError; left: .lock s; U:a", _failing_rename),
    Case("A13", "appended, then killed without close", "after a kill U:a, after a power loss U:a", _killed),
    Case("A14", "side files that are torn, empty, garbage, a folder", "U:a, U:a, U:a, U:a", _side_files),
    Case(
        "A16",
        "five project paths that look alike or are long",
        "5 different names, longest 57 bytes, stable: True",
        _folder_names,
    ),
    Case("A17", "umask 022; a session, a spilled result, a memory note", "files 0600, folders 0700", _permissions),
    Case("A19", "a replace cut at every byte", "202 cuts give 10 or 3 messages, 0 mixed", _cut_replace),
    Case("A20", "a foreign line of 12 MB", "clean, 12,000,000 characters", _long_line),
]
