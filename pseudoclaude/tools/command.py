"""Running a shell command in the project folder.

Promises: when ``run`` returns or raises, nothing of the command's process group is left running - not after a timeout, not after Ctrl-C,
and not what it started in the background.  Output of any length and any bytes: memory is bounded, the middle of too much is left out.
The command has no terminal and no standard input, so it cannot wait for an answer that nobody gives.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from pseudoclaude.errors import ToolFailed
from pseudoclaude.ports import ToolOutput
from pseudoclaude.tools.arguments import parsed, spec_of
from pseudoclaude.tools.project import Project

OUTPUT_BYTES_MAX = 20_000_000
"""What is kept of an output: its first and its last half."""
CHUNK_BYTES = 65_536
READER_SECONDS = 2.0
"""How long a process that left its group (and so survives) may hold the output open."""


class CommandArguments(msgspec.Struct, forbid_unknown_fields=True):
    command: Annotated[str, Meta(description="Command line for /bin/sh, run in the project folder.")]
    timeout_seconds: Annotated[Annotated[float, Meta(gt=0)] | None, Meta(description="Stop it after this time.")] = None


class RunCommand:
    """``timeout_seconds`` is the longest a command may take; a call may ask for less."""

    changes = True
    spec = spec_of(
        "run_command",
        "Run a shell command in the project folder; gives its output and exit status. What it leaves in the background is ended.",
        CommandArguments,
    )

    def __init__(self, project: Project, timeout_seconds: float) -> None:
        self._project = project
        self._timeout = timeout_seconds

    def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        wanted = parsed(arguments, CommandArguments)
        if "\x00" in wanted.command:
            raise ToolFailed("a command cannot hold a NUL character", still_true="It was not run")
        timeout = min(self._timeout, wanted.timeout_seconds or self._timeout)
        process = subprocess.Popen(
            ["/bin/sh", "-c", wanted.command],
            cwd=self._project.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with _Output(process) as output:
            try:
                in_time = _wait(process, timeout)
            finally:
                _end_group(process)
        return _result(process.returncode, in_time, timeout, output.kept())


def _wait(process: subprocess.Popen[bytes], timeout: float) -> bool:
    """Whether the command ended in time.  It is not reaped, so that its group's number still belongs to it."""
    waiter = threading.Thread(target=_await_end, args=(process.pid,), name="command-waiter", daemon=True)
    waiter.start()
    waiter.join(timeout)
    in_time = not waiter.is_alive()
    if not in_time:
        os.killpg(process.pid, signal.SIGKILL)
        waiter.join()
    return in_time


def _await_end(pid: int) -> None:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        return  # reaped meanwhile, after Ctrl-C: nobody waits for this thread any more


def _end_group(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _result(status: int, in_time: bool, timeout: float, output: bytes) -> ToolOutput:
    if not in_time:
        ending = f"[Stopped after {timeout:g} seconds; it had not ended.]"
    elif status < 0:
        ending = f"[Ended by signal {-status} ({signal.strsignal(-status)}).]"
    else:
        ending = f"[Exit status {status}.]"
    newline = b"" if not output or output.endswith(b"\n") else b"\n"
    return ToolOutput(output + newline + ending.encode(), is_error=not in_time or status != 0)


class _Output:
    """Reads a process's output on a thread of its own, keeping its first and its last half."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._pipe = process.stdout
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._head_bytes = self._tail_bytes = self._dropped_bytes = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="command-output", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait until the writers are gone, but not for a process that left the group."""
        self._thread.join(READER_SECONDS)

    def kept(self) -> bytes:
        with self._lock:
            missing = f"\n[… {self._dropped_bytes:,} bytes left out …]\n".encode() if self._dropped_bytes else b""
            return b"".join((*self._head, missing, *self._tail))

    def _read(self) -> None:
        with self._pipe:
            while chunk := os.read(self._pipe.fileno(), CHUNK_BYTES):
                with self._lock:
                    self._keep(chunk)

    def _keep(self, chunk: bytes) -> None:
        if self._head_bytes < OUTPUT_BYTES_MAX // 2:
            self._head.append(chunk)
            self._head_bytes += len(chunk)
            return
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        while self._tail_bytes - len(self._tail[0]) >= OUTPUT_BYTES_MAX // 2:
            gone = self._tail.popleft()
            self._tail_bytes -= len(gone)
            self._dropped_bytes += len(gone)
