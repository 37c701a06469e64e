"""The outside world, as Protocols: disk, clock, ids, model, tools, background work.  No behaviour.

``realworld.py`` implements them on the real machine, ``simulator/`` implements the same ones with faults.  A test that would need
to patch something is a sign that a port is missing here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from pseudoclaude.messages import History, Message, Usage

# --- disk ------------------------------------------------------------------------------------------------------

OpenMode = Literal["create", "append", "read", "lock"]
"""``create``: new file, fails if the name exists, for writing.  ``append``: existing file, every write goes to its end.
``read``: existing file.  ``lock``: for reading and writing, made if absent (the only mode with which a file is written in place)."""


class Stat(msgspec.Struct, frozen=True, gc=False):
    """What a name stands for.  ``kind`` of a symbolic link is ``link``: it is not followed."""

    kind: Literal["file", "dir", "link", "other"]
    size: int
    inode: int
    modified: float = 0.0


class FileSystem(Protocol):
    """The calls through which all state reaches a disk; each is one crash point in the simulator.

    Paths are absolute POSIX text.  Errors are ``OSError`` with an errno.  Files are made 0600 and folders 0700.  The last
    component of a path is never followed when it is a symbolic link (``ELOOP``).  ``write`` may accept fewer bytes than given.
    ``close`` makes nothing durable.
    """

    def mkdir(self, path: str) -> None: ...
    def open(self, path: str, mode: OpenMode) -> int: ...
    def write(self, fd: int, data: bytes) -> int: ...
    def pread(self, fd: int, count: int, offset: int) -> bytes: ...
    def truncate(self, fd: int, size: int) -> None: ...
    def fstat(self, fd: int) -> Stat: ...
    def fsync(self, fd: int) -> None: ...
    def fdatasync(self, fd: int) -> None: ...
    def close(self, fd: int) -> None: ...
    def lock(self, fd: int) -> bool:
        """Take the exclusive lock of an open file without waiting; False if another holds it.  Freed by close or death."""
        ...

    def stat(self, path: str) -> Stat: ...
    def listdir(self, path: str) -> list[str]:
        """Names in no promised order; callers sort."""
        ...

    def rename(self, source: str, target: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def rmdir(self, path: str) -> None: ...
    def fsync_dir(self, path: str) -> None: ...


# --- time, ids, threads ----------------------------------------------------------------------------------------


class Clock(Protocol):
    def now(self) -> float:
        """Unix seconds."""
        ...

    def monotonic(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    def session_id(self, now: float) -> str:
        """A new id; ids sort by the time they were made."""
        ...

    def fraction(self) -> float:
        """A number in [0, 1): the jitter of retries."""
        ...

    def owner(self) -> str:
        """Who runs here, for people who meet a lock: ``pid 123 on host``."""
        ...


class Background(Protocol):
    """One worker that runs jobs in the order they were submitted."""

    def submit(self, job: Callable[[], None]) -> None: ...
    def drain(self, timeout: float) -> bool:
        """Wait until all submitted jobs are done; False when ``timeout`` seconds ran out first."""
        ...


# --- model -----------------------------------------------------------------------------------------------------


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as the model is told of it; ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class Request(msgspec.Struct, frozen=True):
    """One model request in canonical form.  ``purpose`` tells turns, summaries and memory extraction apart."""

    messages: History
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 8_192
    purpose: Literal["turn", "summary", "memory"] = "turn"


class Reply(msgspec.Struct, frozen=True):
    """What came back: an assistant message, the provider's own count, and the model that answered."""

    message: Message
    usage: Usage | None = None
    model: str = ""


class Provider(Protocol):
    """A model behind one of the APIs.

    ``complete`` sends ``to_wire(dialect, request.messages)`` once, without retrying, and calls ``on_text`` with each piece of text as
    it streams in.  Raises the classes under ``errors.ProviderError``; ``StreamInterrupted`` when something had arrived.
    """

    @property
    def dialect(self) -> str: ...
    @property
    def model(self) -> str: ...
    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply: ...


# --- tools -----------------------------------------------------------------------------------------------------


class ToolOutput(msgspec.Struct, frozen=True):
    """What a tool gave back.  Bytes are decoded as UTF-8 with replacement by the Runner."""

    content: str | bytes
    is_error: bool = False


class Tool(Protocol):
    """One real tool.  ``changes`` is True when running it changes something outside (asked about, or refused without ``--allow``)."""

    @property
    def spec(self) -> ToolSpec: ...
    @property
    def changes(self) -> bool: ...
    def run(self, arguments: Mapping[str, Any]) -> ToolOutput: ...
