"""Running a shell command in the project folder.

Promises: when ``run`` returns or raises, nothing of the command's process group is left running - not after a timeout, not after Ctrl-C,
and not what it started in the background.  The process is started, watched and ended on a thread of its own, because Ctrl-C reaches
only the main one: it cannot fall between the start of a process and the moment somebody knows of it.  Output of any length and any
bytes: memory is bounded, the middle of too much is left out.  The command has no terminal and no standard input, so it cannot wait
for an answer that nobody gives.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
from msgspec import Meta

from pseudoclaude.errors import ToolFailed
from pseudoclaude.ports import ToolOutput
from pseudoclaude.tools.arguments import parsed, spec_of
from pseudoclaude.tools.project import Project

OUTPUT_BYTES_MAX = 20_000_000
"""What is kept of an output: its first and its last half."""
CHUNK_BYTES = 65_536
END_SECONDS = 2.0
"""How long to wait for the end: of a process that was killed, and of an output that a process which left its group holds open."""

LOOK_SECONDS = 0.1
"""A signal that comes just before a wait begins does not end it: it is seen when the wait is over.  So no wait is long."""


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
        job = _Job(wanted.command, self._project.folder, timeout)
        try:
            job.start()
            while not job.finished.wait(LOOK_SECONDS):
                pass
        finally:
            job.stop()
        return job.result()


class _Job(threading.Thread):
    """One command from its start to its end.  ``stop`` ends it from outside."""

    def __init__(self, command: str, folder: Path, timeout: float) -> None:
        super().__init__(name="command", daemon=True)
        self._command = command
        self._folder = folder
        self._timeout = timeout
        self._wake = threading.Event()
        """The command ended, or shall end."""
        self._output = _Output()
        self._status = 0
        self._in_time = True
        self._failure: OSError | None = None
        self.finished = threading.Event()

    def stop(self) -> None:
        """End the command if it still runs, and return when it is gone."""
        self._wake.set()
        self.finished.wait(END_SECONDS)

    def result(self) -> ToolOutput:
        if self._failure is not None:
            raise self._failure
        return _result(self._status, self._in_time, self._timeout, self._output.kept())

    def run(self) -> None:
        try:
            if not self._wake.is_set():
                self._work()
        except OSError as error:  # no process could be started
            self._failure = error
        finally:
            self.finished.set()

    def _work(self) -> None:
        process = subprocess.Popen(
            ["/bin/sh", "-c", self._command],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        reader = threading.Thread(target=self._output.read, args=(process.stdout,), name="command-output", daemon=True)
        waiter = threading.Thread(target=self._await_end, args=(process.pid,), name="command-waiter", daemon=True)
        reader.start()
        waiter.start()
        self._in_time = self._wake.wait(self._timeout)
        os.killpg(process.pid, signal.SIGKILL)  # not reaped so far, so the number is still that of its group
        waiter.join()
        self._status = process.wait()
        reader.join(END_SECONDS)

    def _await_end(self, pid: int) -> None:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        self._wake.set()


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
    """What a process writes: the first half of it and the last."""

    def __init__(self) -> None:
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._head_bytes = self._tail_bytes = self._dropped_bytes = 0
        self._lock = threading.Lock()

    def read(self, pipe: IO[bytes]) -> None:
        """Read until all writers are gone."""
        with pipe:
            while chunk := os.read(pipe.fileno(), CHUNK_BYTES):
                with self._lock:
                    self._keep(chunk)

    def kept(self) -> bytes:
        with self._lock:
            missing = f"\n[… {self._dropped_bytes:,} bytes left out …]\n".encode() if self._dropped_bytes else b""
            return b"".join((*self._head, missing, *self._tail))

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
