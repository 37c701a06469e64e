"""MemoryManager: the two stores, the model that fills them, and the index that the next session reads.

The order of every start and update, under both locks (user first): make durable what a killed process may have left, finish what
journals tell, and only then read or change.  An update is one journal: before it is in place both stores are old, from then on new,
whatever happens.  A project that cannot be reached keeps its part of the journal and holds up nobody else.

Promises.  ``update_async`` never raises and never waits for the model.  A turn is recorded before the model is asked, and its record goes with the
update that it led to, so a killed process's turn is finished by the next start, once.  ``index`` changes only in ``refresh_index``.
What could not be done is told in ``take_reports``, never raised from the background.
"""

from __future__ import annotations

import posixpath
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import msgspec

from pseudoclaude.errors import ContextOverflow, InvalidRequest, MemoryFailed, ProviderError, PseudoClaudeError, listing
from pseudoclaude.memory import pending
from pseudoclaude.memory.extraction import NOTES_BYTES_MAX, defused, extraction_request, prompt_section
from pseudoclaude.memory.index import Joined, drop_lines, join_sections
from pseudoclaude.memory.journal import VERSION, Journal
from pseudoclaude.memory.notes import Note, digest, parse, timestamp
from pseudoclaude.memory.operations import Level, Operation, parse_operations
from pseudoclaude.memory.planning import Seen, plan_changes
from pseudoclaude.memory.recovery import OpenStores, finish_journals, make_update
from pseudoclaude.memory.store import Store, project_store, user_store
from pseudoclaude.messages import Message
from pseudoclaude.ports import Background, Clock, FileSystem, Provider
from pseudoclaude.settings import Settings

LOCK_WAIT_SECONDS = 30.0

TurnMessages = Callable[[str, int, int], Sequence[Message] | None]
"""(session id, first n, last n) to the messages of that turn; None when the session is gone."""


class MemoryManager:
    """The memory of one project and one user.  Without a ``provider`` nothing is extracted; reading works all the same.

    ``project_root`` and ``user_root`` are absolute paths.  Lines and bytes of the index are limited by
    ``settings.memory_lines_max`` and ``settings.memory_bytes_max``.
    """

    def __init__(
        self,
        *,
        fs: FileSystem,
        clock: Clock,
        background: Background,
        project_root: str,
        user_root: str,
        provider: Provider | None = None,
        settings: Settings = Settings(),  # noqa: B008 (immutable)
    ) -> None:
        self._fs = fs
        self._clock = clock
        self._background = background
        self._provider = provider
        self._settings = settings
        self._project_root = posixpath.normpath(project_root)
        self._user_root = posixpath.normpath(user_root)
        self._index = ""
        self._reports: list[str] = []
        self._reports_lock = threading.Lock()

    # --- for the prompt

    @property
    def index(self) -> str:
        """Both indexes under their headings, inside the limits, as the last ``refresh_index`` found them."""
        return self._index

    @property
    def prompt_section(self) -> str:
        """``index`` introduced as notes and wrapped as data, for the system prompt; empty when there are no notes."""
        return prompt_section(self._index)

    def refresh_index(self) -> None:
        """Finish what was interrupted and read the indexes.  A missing or unreadable one is empty (and reported); never raises."""
        try:
            with self._locked() as stores:
                finish_journals(stores, self._report)
                for store in stores.distinct:
                    self._tell(store.add_missing_lines())
        except MemoryFailed as error:
            self._report(f"Memory is read as it stands: {error}")
        self._index = self._read_index().text

    def take_reports(self) -> tuple[str, ...]:
        """What there is to tell the user since the last call: whole sentences, oldest first."""
        with self._reports_lock:
            reports, self._reports = tuple(self._reports), []
        return reports

    # --- after a turn

    def update_async(
        self, messages: Sequence[Message], *, session_id: str = "", range: tuple[int, int] = (0, 0)
    ) -> None:
        """Hand over the new messages of a turn that ended normally; ``range`` is their first and last ``n`` in the session's log.

        Returns once the turn is recorded; the model is asked in the background.  Never raises: troubles are reports.
        Without a session id the turn is not recorded, and is lost when the process ends before the update.
        """
        if self._provider is None or not messages:
            return
        held: pending.Held | None = None
        if session_id:
            try:
                held = pending.record(self._fs, self._stores()[0], pending.PendingTurn(session_id, *range))
            except MemoryFailed as error:
                self._report(f"A turn could not be recorded; if this process ends now it is not remembered: {error}")
            else:
                if held is None:
                    return
        self._submit(tuple(messages), held, session_id, range)

    def drain(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for updates under way; False when some are left, which the next start finishes."""
        done = self._background.drain(timeout)
        if not done:
            self._report(
                f"Memory updates were not finished within {timeout:g} seconds; recorded turns are finished at the next start"
            )
        return done

    def finish_pending(self, turn_messages: TurnMessages | None = None) -> int:
        """At start: finish interrupted updates and take up turns that a dead process left; returns how many were taken up.

        ``turn_messages`` reads a turn from its session's log.  Turns stay recorded without it or without a provider.  Never raises.
        """
        taken = 0
        store = self._stores()[0]
        try:
            with self._locked() as stores:
                finish_journals(stores, self._report)
            if self._provider is None or turn_messages is None or not store.exists():
                return 0
            found, problems = pending.take_all(self._fs, store)
            self._tell(problems)
            taken = sum(self._take_up(held, turn_messages) for held in found)
        except MemoryFailed as error:
            self._report(f"Pending memory updates wait for the next start: {error}")
        return taken

    def _take_up(self, held: pending.Held, turn_messages: TurnMessages) -> bool:
        """Submit a recorded turn; False when its messages cannot be had now (the record stays) or ever (it goes)."""
        turn = held.turn
        try:
            messages = turn_messages(turn.session_id, turn.first, turn.last)
        except PseudoClaudeError as error:
            self._report(f"A turn of session {turn.session_id} waits for the next start: {error}")
            self._guarded(lambda: None, held)
            return False
        if messages:
            self._submit(tuple(messages), held, turn.session_id, (turn.first, turn.last))
            return True
        self._report(f"The session {turn.session_id} of a turn to be remembered is gone; the turn was given up")
        self._guarded(lambda: self._give_up(held), held)
        return False

    # --- for people

    def notes(self) -> dict[Level, tuple[Note, ...]]:
        """All notes by level, project first, each sorted by name.  Raises ``MemoryFailed``; what cannot be read is reported."""
        found: dict[Level, tuple[Note, ...]] = {}
        for store in dict.fromkeys(self._stores()):
            notes, problems = store.notes() if store.exists() else ([], [])
            self._tell(problems)
            found[store.level] = tuple(notes)
        return found

    def show(self, slug: str) -> Note | None:
        """The note of that name, the project's before the user's; None when there is none.  Raises ``MemoryFailed``."""
        wanted = slug.removesuffix(".md")
        for store in dict.fromkeys(self._stores()):
            if store.exists() and wanted in store.slugs():
                data = store.read(wanted)
                return None if data is None else parse(wanted, data)
        return None

    def rebuild(self) -> tuple[str, ...]:
        """Make both indexes agree with their notes, keeping every other line; says what was done.  Raises ``MemoryFailed``."""
        done: list[str] = []
        with self._locked() as stores:
            finish_journals(stores, self._report)
            for store in stores.distinct:
                done += [f"{store.level}: {sentence}" for sentence in store.rebuild()]
        return tuple(done)

    # --- the update

    def _submit(
        self, messages: Sequence[Message], held: pending.Held | None, session_id: str, numbers: tuple[int, int]
    ) -> None:
        source = f"session {session_id}, messages {numbers[0]}-{numbers[1]}" if session_id else ""
        self._background.submit(lambda: self._guarded(lambda: self._update(messages, held, source), held))

    def _guarded(self, job: Callable[[], None], held: pending.Held | None) -> None:
        """Run a job of the background worker: its errors become reports, since nobody is there to catch them."""
        try:
            job()
        except (MemoryFailed, ProviderError) as error:
            kept = "its record is kept for the next start" if held is not None else "it is not remembered"
            self._report(f"A turn was not taken into memory, {kept}: {error}")
        except Exception as error:  # noqa: BLE001 (a bug must not end the worker, or later turns would be lost with it)
            self._report(f"A turn was not taken into memory because of a bug: {type(error).__name__}: {error}")
        finally:
            if held is not None:
                try:
                    held.release()
                except MemoryFailed as error:
                    self._report(str(error))

    def _update(self, messages: Sequence[Message], held: pending.Held | None, source: str) -> None:
        assert self._provider is not None
        notes, index, seen = self._read_notes()
        try:
            reply = self._provider.complete(extraction_request(messages, notes, index))
        except (ContextOverflow, InvalidRequest):
            self._give_up(held)
            raise
        operations, rejected = parse_operations(reply.message.content)
        for item in rejected:
            self._report(f"Memory operation {item.place} was dropped: {item.reason}")
        self._commit(operations, held, source, seen)

    def _read_notes(self) -> tuple[dict[Level, list[Note]], str, Seen]:
        """What the model is shown: the newest notes of each level, oldest first, and the index; and what was seen of each note."""
        notes: dict[Level, list[Note]] = {}
        seen: dict[tuple[str, str], tuple[str, str, str]] = {}
        with self._locked() as stores:
            finish_journals(stores, self._report)
            for store in stores.distinct:
                found, problems = store.newest_notes(NOTES_BYTES_MAX)
                self._tell(problems)
                notes[store.level] = [note for note, _ in found]
                for note, data in found:
                    seen[store.level, note.slug] = (digest(data), note.updated, note.source)
            return notes, self._read_index().text, seen

    def _commit(self, operations: Sequence[Operation], held: pending.Held | None, source: str, seen: Seen) -> None:
        with self._locked(make=True) as stores:
            finish_journals(stores, self._report)
            if held is not None and stores.project is not None and not held.exists():
                return  # another process has done this turn
            updated = timestamp(self._clock.now())
            levels: dict[Level, Store] = {store.level: store for store in stores.distinct}
            plan = plan_changes(self._levelled(operations, stores), levels, updated, source, seen)
            self._tell(plan.refused)
            name = held.name if held is not None else ""
            if plan.changes:
                make_update(
                    stores, Journal(VERSION, self._project_root, updated, plan.changes, source, name), self._report
                )
            elif stores.project is not None and name:
                stores.project.drop_pending(name)
        left_out = self._read_index().left_out if plan.changes else ()
        if left_out:
            self._report(
                f"The memory index is over its limit: {len(left_out)} lines do not reach new sessions ({listing(left_out)})"
            )

    def _levelled(self, operations: Sequence[Operation], stores: OpenStores) -> Iterator[Operation]:
        """The operations; all at the user's level where both levels share one folder."""
        shared = stores.user is not None and stores.user is stores.project
        for operation in operations:
            yield msgspec.structs.replace(operation, level="user") if shared else operation

    def _give_up(self, held: pending.Held | None) -> None:
        if held is not None:
            self._stores()[0].drop_pending(held.name)

    # --- stores

    def _stores(self) -> tuple[Store, Store]:
        """Project and user store; one object where both are the same folder."""
        user = user_store(self._fs, self._user_root)
        project = project_store(self._fs, self._project_root)
        return (user, user) if project.folder == user.folder else (project, user)

    @contextmanager
    def _locked(self, *, make: bool = False) -> Iterator[OpenStores]:
        """Hold both locks, the user's first.  ``make``: make the stores that do not exist; else those are left out.

        A project whose store cannot be had is reported and left out: it holds up nobody else.
        """
        project, user = self._stores()
        with ExitStack() as stack:
            open_user = self._opened(user, stack, make)
            open_project = open_user
            if project is not user:
                try:
                    open_project = self._opened(project, stack, make)
                except MemoryFailed as error:
                    self._report(f"The project's memory cannot be reached: {error}")
                    open_project = None
            yield OpenStores(self._fs, self._clock, self._project_root, open_user, open_project)

    def _opened(self, store: Store, stack: ExitStack, make: bool) -> Store | None:
        """The store with its lock held until ``stack`` ends; None when it does not exist and is not to be made."""
        if make:
            store.prepare()
        elif not store.exists():
            return None
        if not stack.enter_context(store.lock(self._clock, LOCK_WAIT_SECONDS)):
            raise MemoryFailed(
                f"another process has held the memory lock for {LOCK_WAIT_SECONDS:g} seconds",
                where=store.folder,
                still_true="Nothing was changed",
                do_next="End the process that hangs",
            )
        return store

    def _load(self, store: Store) -> str:
        """A store's index as it may stand in a prompt: no line without its note, nothing that closes the wrapper."""
        try:
            if not store.exists():
                return ""
            text = store.index_text()
            dangling = store.dangling(text)
        except MemoryFailed as error:
            self._report(f"The {store.level} memory counts as empty: {error}")
            return ""
        readable = text.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")
        return defused(drop_lines(readable, lambda slug: slug in dangling))

    def _read_index(self) -> Joined:
        """Both indexes as they are now, joined inside the limits."""
        project, user = self._stores()
        texts = (self._load(project), "" if user is project else self._load(user))
        limits = self._settings
        return join_sections(*texts, max_lines=limits.memory_lines_max, max_bytes=limits.memory_bytes_max)

    def _report(self, sentence: str) -> None:
        with self._reports_lock:
            self._reports.append(sentence)

    def _tell(self, sentences: Sequence[str]) -> None:
        for sentence in sentences:
            self._report(sentence)
