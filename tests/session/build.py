"""Small logs, and sessions on a simulated disk: U user, A assistant, C calls, R result, as the lines and messages of the format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pseudoclaude.messages import History, Message, ToolCall, ToolResult
from pseudoclaude.protocol import check
from pseudoclaude.providers import to_wire
from pseudoclaude.providers.wire import PROJECTIONS
from pseudoclaude.session import LoadResult, SessionWriter, load
from pseudoclaude.session.records import encode_header, encode_message, encode_replace
from pseudoclaude.settings import Dangling, Durability, Settings
from simulator.disk import FaultPlan, OpLog, SimFileSystem
from simulator.disk.faults import DiskFault
from simulator.values import ROOT, Disk
from simulator.world import SimClock, SimIds

FOLDER = "/s"
LOG = "/s/conversation.jsonl"
TS = 1_764_547_200
HEADER = encode_header("s", TS, "/project")
NEXT = Message("user", "go on")


def user(text: str) -> Message:
    return Message("user", text)


def assistant(text: str) -> Message:
    return Message("assistant", text)


def calls(*ids: str, text: str = "") -> Message:
    return Message("assistant", text, tuple(ToolCall(call, "read", "{}") for call in ids), stop="tool_use")


def result(call: str, text: str) -> Message:
    return Message("tool", tool_result=ToolResult(call, text))


def line(message: Message, n: int, **more: object) -> bytes:
    return encode_message(message, n, TS, **more)  # type: ignore[arg-type]


def lines(messages: Iterable[Message], first: int = 1) -> list[bytes]:
    return [line(message, n) for n, message in enumerate(messages, first)]


def log_of(*messages: Message) -> bytes:
    """A whole log: header and one record a message."""
    return HEADER + b"".join(lines(messages))


def replaced(messages: Sequence[Message], n: int, reason: str = "compact", **more: object) -> bytes:
    return encode_replace(reason, messages, n, TS, **more)  # type: ignore[arg-type]


def disk_of(data: bytes | None, spills: dict[str, bytes] | None = None) -> Disk:
    """A durable disk with one session folder."""
    folders: dict[int, dict[str, int]] = {ROOT: {"s": 2}, 2: {}}
    files: dict[int, bytes] = {}
    if data is not None:
        files[3] = data
        folders[2]["conversation.jsonl"] = 3
    if spills is not None:
        folders[2]["tool-results"] = 4
        folders[4] = {}
        for inode, (name, content) in enumerate(sorted(spills.items()), 5):
            files[inode] = content
            folders[4][name] = inode
    return Disk(files, folders)


def machine(data: bytes | None, *faults: DiskFault, log: OpLog | None = None) -> SimFileSystem:
    return SimFileSystem(disk_of(data), log=log, faults=FaultPlan(faults))


def bytes_of(fs: SimFileSystem) -> bytes:
    return fs.peek(LOG) or b""


def loaded(data: bytes | None, *, dangling: Dangling = "trim", scan_all: bool = True) -> LoadResult:
    return load(FOLDER, fs=SimFileSystem(disk_of(data)), dangling=dangling, scan_all=scan_all)


def opened(
    fs: SimFileSystem, *, durability: Durability = "always", dangling: Dangling = "trim", pid: int = 0
) -> SessionWriter:
    return SessionWriter.open(
        FOLDER,
        settings=Settings(durability=durability),
        fs=fs,
        clock=SimClock(),
        ids=SimIds(pid),
        dangling=dangling,
        cwd="/project",
    )


def resumed(fs: SimFileSystem, *messages: Message, dangling: Dangling = "trim") -> LoadResult:
    """One process: open, append, close.  What it loaded."""
    with opened(fs, dangling=dangling) as writer:
        for message in messages:
            writer.append_message(message)
    return writer.loaded


def refused(messages: History) -> list[str]:
    """What any provider would refuse when the user goes on from ``messages``."""
    found = []
    for dialect in PROJECTIONS:
        found += [f"{dialect}: {bad}" for bad in check(dialect, to_wire(dialect, (*messages, NEXT)))]
    return found


def kinds(loaded_log: LoadResult) -> list[str]:
    return [finding.kind for finding in loaded_log.findings]
