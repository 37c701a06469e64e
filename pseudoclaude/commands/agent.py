"""Agent: everything of one session put together - writer, conversation, compaction, memory, tools, Runner - and taken apart again.

The one place that knows which part is given which.  It opens in an order that leaves nothing half open: the lock and the log first, what
may fail with a message next, the model last.

Promises: a resumed session answers interrupted calls as unknown, goes on with the prompt it began with, and hands Memory only turns
that ended normally.  ``close`` saves or says what could not be saved.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from pseudoclaude.commands.interrupts import Shield, SteadyConversation
from pseudoclaude.compact import Runtime
from pseudoclaude.compact.spill import FOLDER as SPILL_FOLDER
from pseudoclaude.errors import NotDurable, ProviderError, SessionError, SessionUnreadable
from pseudoclaude.memory import MemoryManager
from pseudoclaude.messages import Message
from pseudoclaude.ports import Background, Clock, FileSystem, Ids, Provider, Tool
from pseudoclaude.prompt import session_prompt, system_prompt
from pseudoclaude.providers.retry import Retrying
from pseudoclaude.runner import Event, Runner
from pseudoclaude.session import LoadResult, SessionWriter, load
from pseudoclaude.session.catalog import find_session, session_folder
from pseudoclaude.session.loader import LOG_NAME
from pseudoclaude.session.records import Line, decode_line, segments
from pseudoclaude.settings import Settings
from pseudoclaude.tools import project_tools

DRAIN_SECONDS = 20.0
"""How long leaving waits for memory; what is not done by then is finished at the next start."""
UNFELT_SECONDS = 0.3
"""A wait up to this is not announced."""
_READ_BYTES = 1 << 20


class Machine(NamedTuple):
    """The ports."""

    fs: FileSystem
    clock: Clock
    ids: Ids
    background: Background


class Place(NamedTuple):
    """Absolute paths: where PseudoClaude keeps its state, and the project that is worked on."""

    home: str
    project: str


class Callbacks(NamedTuple):
    """How a front end takes part.  Each may be left out; without ``allow`` every change is refused."""

    allow: Callable[[Tool, Mapping[str, Any]], bool] | None = None
    on_text: Callable[[str], None] | None = None
    on_progress: Callable[[str], None] | None = None
    on_retry: Callable[[ProviderError, float], None] | None = None
    held: Shield = nullcontext


class Agent:
    """One open session.  ``open_agent`` makes it."""

    def __init__(
        self,
        machine: Machine,
        place: Place,
        writer: SessionWriter,
        runner: Runner,
        memory: MemoryManager,
        session_id: str,
    ) -> None:
        self.runner = runner
        self.memory = memory
        self.session_id = session_id
        self.place = place
        self._machine = machine
        self._writer = writer

    @property
    def loaded(self) -> LoadResult:
        """What the session held when it was opened."""
        return self._writer.loaded

    @property
    def log(self) -> str:
        """The path of the session's log."""
        return posixpath.join(self._writer.folder, LOG_NAME)

    def turn(self, text: str) -> Generator[Event, None, None]:
        """See ``Runner.turn``."""
        return self.runner.turn(text)

    def compact(self, instructions: str = "") -> Generator[Event, None, None]:
        """See ``Runner.compact``."""
        return self.runner.compact(instructions)

    def memory_text(self) -> str:
        """Both indexes as they are now; the prompt of this session stays as it is."""
        self.memory.refresh_index()
        return self.memory.index

    def close(self, on_wait: Callable[[], None] | None = None, *, in_a_hurry: bool = False) -> None:
        """Save, give the session back, and let memory finish.  ``on_wait`` is called before a wait that can be felt.

        ``in_a_hurry``: do not wait for memory; what it had begun is finished at the next start.

        Raises ``NotDurable`` or ``SessionError`` when something could not be saved; the session is given back all the same.
        """
        try:
            self._writer.close()
        except (NotDurable, SessionError):
            self._writer.abandon()
            raise
        finally:
            if not in_a_hurry and not self._machine.background.drain(UNFELT_SECONDS):
                if on_wait is not None:
                    on_wait()
                self.memory.drain(DRAIN_SECONDS)


def open_agent(
    machine: Machine,
    place: Place,
    provider: Provider,
    *,
    settings: Settings | None = None,
    resume: str = "",
    callbacks: Callbacks = Callbacks(),  # noqa: B008 (immutable)
) -> Agent:
    """Begin a session in ``place``, or go on with the one called ``resume``: an id, an unambiguous beginning of one, or ``latest``.

    Raises ``SessionMissing`` when there is none, ``SessionLocked``, ``SessionUnreadable``, ``UnsupportedVersion``, ``NotDurable``.
    """
    settings = settings or Settings(dialect=provider.dialect)  # type: ignore[arg-type]  # a dialect without settings is refused there
    if resume:
        folder = find_session(place.home, resume, machine.fs, project=place.project)
    else:
        folder = session_folder(place.home, place.project, machine.ids.session_id(machine.clock.now()))
    writer = SessionWriter.open(
        folder,
        settings=settings,
        fs=machine.fs,
        clock=machine.clock,
        ids=machine.ids,
        dangling="answer",
        cwd=place.project,
    )
    try:
        return _assembled(machine, place, writer, provider, settings, callbacks)
    except BaseException:
        writer.abandon()
        raise


def _assembled(
    machine: Machine,
    place: Place,
    writer: SessionWriter,
    provider: Provider,
    settings: Settings,
    callbacks: Callbacks,
) -> Agent:
    silent = Retrying(provider, settings, machine.clock, machine.ids)  # its waits are in the background
    memory = open_memory(machine, place, provider=silent, settings=settings)
    memory.finish_pending(lambda session, first, last: turn_messages(machine.fs, place, session, first, last))
    folder = writer.folder
    session_id = posixpath.basename(folder)

    def fresh_prompt() -> str:
        memory.refresh_index()
        return system_prompt(memory.prompt_section, folder=place.project)

    writer.model = provider.model
    runtime = Runtime(fs=machine.fs, session_folder=folder, settings=settings)
    runner = Runner(
        provider=Retrying(provider, settings, machine.clock, machine.ids, on_retry=callbacks.on_retry),
        conversation=SteadyConversation(writer.loaded.messages, writer.hooks(), callbacks.held),
        runtime=runtime,
        tools=project_tools(place.project, settings=settings, also_readable=(posixpath.join(folder, SPILL_FOLDER),)),
        settings=settings,
        system=session_prompt(machine.fs, folder, fresh_prompt),
        allow=callbacks.allow,
        on_text=callbacks.on_text,
        on_progress=callbacks.on_progress,
        end_turn=writer.end_turn,
        after_turn=remember(machine.fs, memory, folder, writer.loaded.next_n, session_id),
    )
    return Agent(machine, place, writer, runner, memory, session_id)


def open_memory(
    machine: Machine,
    place: Place,
    *,
    provider: Provider | None = None,
    settings: Settings = Settings(),  # noqa: B008
) -> MemoryManager:
    """The memory of a place; without a provider it only reads."""
    return MemoryManager(
        fs=machine.fs,
        clock=machine.clock,
        background=machine.background,
        project_root=place.project,
        user_root=place.home,
        provider=provider,
        settings=settings,
    )


def remember(
    fs: FileSystem, memory: MemoryManager, folder: str, next_n: int, session_id: str
) -> Callable[[Sequence[Message]], None]:
    """Hand a turn to Memory with the numbers of its records: those from ``next_n`` on, or since the last turn that was handed over.

    Where the log cannot be read just then, the turn is handed over without them: it is done in this process or never.
    """

    def after_turn(messages: Sequence[Message]) -> None:
        nonlocal next_n
        try:
            first, next_n = next_n, load(folder, fs=fs).next_n
        except SessionUnreadable:
            memory.update_async(messages)  # the turn itself ended well, so nothing is raised into it
            return
        memory.update_async(messages, session_id=session_id, range=(first, next_n - 1))

    return after_turn


def turn_messages(fs: FileSystem, place: Place, session_id: str, first: int, last: int) -> tuple[Message, ...] | None:
    """The turn that ended with record ``last`` of a session, not before record ``first``; None when the session is gone.

    Turns before it that did not end normally are left out: Memory learns nothing from them.  Raises ``SessionUnreadable``.  The id
    comes from a file in the project, so it is taken for a name and nothing else.
    """
    if not session_id or session_id != posixpath.basename(session_id) or session_id in (".", ".."):
        return None
    folder = session_folder(place.home, place.project, session_id)
    if load(folder, fs=fs).state == "missing":
        return None
    found: list[Message] = []
    for raw in _log_lines(fs, posixpath.join(folder, LOG_NAME)):
        line = decode_line(raw)
        if not isinstance(line, Line) or line.n is None or not first <= line.n <= last:
            continue
        if line.message is not None:
            found = [line.message] if line.message.role == "user" else [*found, line.message]
    return tuple(found)


def _log_lines(fs: FileSystem, path: str) -> Iterator[bytes]:
    try:
        yield from _lines_of(fs, path)
    except OSError as error:
        raise SessionUnreadable(
            f"the session log cannot be read: {error.strerror or error}",
            where=path,
            still_true="It is not missing, and nothing was changed",
            do_next="Check its permissions and the disk, then try again",
        ) from error


def _lines_of(fs: FileSystem, path: str) -> Iterator[bytes]:
    fd = fs.open(path, "read")
    try:
        offset, rest = 0, b""
        while chunk := fs.pread(fd, _READ_BYTES, offset):
            offset += len(chunk)
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            yield from (raw for _, raw, nul in segments(whole + newline) if raw and not nul)
        yield from (raw for _, raw, nul in segments(rest) if raw and not nul)
    finally:
        fs.close(fd)
