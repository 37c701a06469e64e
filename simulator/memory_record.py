"""Memory in the recorded run: the product's manager in each process, and what became of both stores.

``MemoryWatch`` lives as long as the run.  Each change of the stores (a start, an update, an edit by hand) is *issued* in the log of calls
before any of it can reach the disk and *acknowledged* when the product or the person was done.  What a change came to is what a start makes
of the stores after it, since that is what is seen again after a crash; that start is made on a copy of the disk.

The jobs of the background worker run when a turn's step ends, or when the process does.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from pseudoclaude.commands.agent import Place, remember, turn_messages
from pseudoclaude.memory import MemoryManager
from pseudoclaude.memory.extraction import extraction_request
from pseudoclaude.messages import Message
from pseudoclaude.ports import Clock, FileSystem, Provider, Reply, Request
from pseudoclaude.prompt import session_prompt, system_prompt
from pseudoclaude.settings import Settings
from simulator.disk import FaultPlan, SimFileSystem
from simulator.disk.faults import CallKind, DiskFault
from simulator.product import Product, Writer
from simulator.scenario import KillAt, Scenario, ScenarioError, StoreFiles, UpdateMeanwhile
from simulator.values import MEMORY, TURNS, HandEdit, MemoryRecord, MemoryTurn, Notes
from simulator.world import HOME, PROJECT, PROJECT_STORE, USER_STORE, SimBackground, World, store_files

PLACE = Place(HOME, PROJECT)
STORES = (PROJECT_STORE, USER_STORE)
PENDING = f"{PROJECT_STORE}/pending"


class MemoryWatch:
    """Both stores over one run."""

    def __init__(self, world: World, scenario: Scenario, product: Product) -> None:
        self.world = world
        self.product = product
        self.settings = scenario.settings
        self.asks_model = bool(scenario.provider.memory)
        self.meanwhile = UpdateMeanwhile()
        """What the current step wants to happen to its update."""
        self._states: list[Notes] = [self._as_started()]
        self._edits = [HandEdit(0, path, data) for path, data in store_files(scenario.memory or StoreFiles()).items()]
        self._turns: list[MemoryTurn] = []
        self._reports: list[str] = []
        self._open = False
        """Whether the last change was issued and has not ended."""
        self._asked = ""
        self._records: list[str] = []

    def record(self) -> MemoryRecord:
        self._end(acknowledged=False)
        return MemoryRecord(
            folders=STORES,
            states=tuple(self._states),
            edits=tuple(self._edits),
            turns=tuple(self._turns),
            reports=tuple(self._reports),
            lines_max=self.settings.memory_lines_max,
            bytes_max=self.settings.memory_bytes_max,
        )

    def facts(self) -> dict[str, int]:
        """``memory_requests``: asked of the model; ``memory_notes``: in both stores at the end; ``memory_waiting``: turns still to be taken up;
        ``memory_reports``: sentences that the user was told."""
        return {
            "memory_requests": sum(request.purpose == "memory" for request in self.world.provider.seen),
            "memory_notes": sum(posixpath.basename(path) != "MEMORY.md" for path in self._states[-1]),
            "memory_waiting": len(self._waiting()),
            "memory_reports": len(self._reports),
        }

    # --- a start

    def start_begins(self) -> None:
        self._issue()

    def start_ended(self, manager: MemoryManager) -> None:
        self._end(acknowledged=True)
        self.told(manager)

    # --- a turn, and its update

    def handed_over(self, hand_over: Callable[[], None], messages: Sequence[Message]) -> None:
        """A turn is given to memory.  Once that returned it survives, if it could be recorded and its session's log is synced."""
        self._turns.append(MemoryTurn(asked_about(messages)))
        self.world.log.issue(TURNS, len(self._turns))
        before = len(self._waiting())
        hand_over()
        if len(self._waiting()) > before:
            self.world.log.ack(TURNS, len(self._turns), durable=self.settings.durability != "off")

    def asked(self, request: Request) -> None:
        """The model is asked; nobody holds a lock."""
        self._asked = request_about(request)
        self._records = self._waiting()
        meanwhile, self.meanwhile = self.meanwhile, UpdateMeanwhile()
        self.edit(meanwhile.edit, meanwhile=True)
        if meanwhile.kill is not None:
            if meanwhile.kill.call == "asked":
                self.world.fs.die()
            self.world.fs.faults = KillPlan(self.world.fs, meanwhile.kill)

    def answered(self, reply: Reply) -> None:
        self._issue()
        turn = self._turn()
        if turn is not None:
            self._turns[turn] = replace(self._turns[turn], answer=reply.message.content)

    def job_ended(self) -> None:
        """Raises ``ScenarioError`` when the process should have died on the way."""
        plan, self.world.fs.faults = self.world.fs.faults, self.world.faults
        if isinstance(plan, KillPlan):
            raise ScenarioError(f"the update ended before {plan.words}, where the process should be killed")
        self._end(acknowledged=True)

    def killed(self) -> None:
        """The process is dead; what it left is what the next start finds."""
        self.world.fs.faults = self.world.faults
        self.meanwhile = UpdateMeanwhile()
        self._end(acknowledged=False)

    def told(self, manager: MemoryManager) -> None:
        self._reports += manager.take_reports()

    # --- a person

    def edit(self, files: StoreFiles, *, meanwhile: bool = False) -> None:
        """A person saves or removes files, each durably and as a whole."""
        for path, data in store_files(files).items():
            step = self._issue()
            self._edits.append(HandEdit(step, path, data, meanwhile))
            save_by_hand(self.world.fs, path, data)
            self._end(acknowledged=True, by_hand=True)

    # --- changes

    def _issue(self) -> int:
        self._end(acknowledged=False)
        self._states.append({})
        self._open = True
        step = len(self._states) - 1
        self.world.log.issue(MEMORY, step)
        return step

    def _end(self, *, acknowledged: bool, by_hand: bool = False) -> None:
        """The last change is over.  An update that left its journal behind is not acknowledged: the next start makes it."""
        if not self._open:
            return
        self._open = False
        step = len(self._states) - 1
        unfinished = any(posixpath.basename(path).startswith("journal-") for path in left_on(self.world.fs))
        self._states[step] = self._as_started()
        if acknowledged and (by_hand or not unfinished):
            self.world.log.ack(MEMORY, step, durable=True)
        turn = self._turn()
        if turn is not None and (unfinished or any(name not in self._waiting() for name in self._records)):
            self._turns[turn] = replace(self._turns[turn], step=step)
            self._asked = ""

    def _as_started(self) -> Notes:
        """What a start makes of the disk as it is."""
        copy = SimFileSystem(self.world.fs.disk())
        memory_of(self.product, copy, self.world.clock, SimBackground(), None, self.settings).refresh_index()
        return notes_on(copy)

    def _turn(self) -> int | None:
        """Which of the turns the model was last asked about; None when that is over."""
        return next(
            (i for i, turn in enumerate(self._turns) if turn.asked == self._asked and not turn.step and self._asked),
            None,
        )

    def _waiting(self) -> list[str]:
        return [path for path, _ in self.world.fs.files_under(PENDING) if path.endswith(".json")]


class MemoryProcess:
    """Memory in one process: started as the product's own command line does it."""

    def __init__(self, watch: MemoryWatch, fs: FileSystem, writer: Writer, folder: str) -> None:
        self._watch = watch
        self._background = SimBackground(watch.job_ended)
        provider = _Watched(watch.world.retrying, watch) if watch.asks_model else None
        self._manager = memory_of(watch.product, fs, watch.world.clock, self._background, provider, watch.settings)
        self.notes: Notes | None = None
        """What stood in the stores when the prompt was made; None for a session that goes on with the prompt it began with."""
        watch.start_begins()
        self._manager.finish_pending(lambda session, first, last: turn_messages(fs, PLACE, session, first, last))
        self.system = session_prompt(fs, folder, self._fresh_prompt)
        watch.start_ended(self._manager)
        self._hand_over = remember(fs, self._manager, folder, writer.loaded.next_n, posixpath.basename(folder))

    def _fresh_prompt(self) -> str:
        self._manager.refresh_index()
        self.notes = notes_on(self._watch.world.fs)
        return system_prompt(self._manager.prompt_section)

    def after_turn(self, messages: Sequence[Message]) -> None:
        """What the Runner calls after a turn that ended normally."""
        self._watch.handed_over(lambda: self._hand_over(messages), messages)

    def run_updates(self) -> None:
        self._background.drain(0)
        self._watch.told(self._manager)


class KillPlan(FaultPlan):
    """The faults of the scenario, and death before one call."""

    def __init__(self, fs: SimFileSystem, kill: KillAt) -> None:
        super().__init__()
        self._fs = fs
        self._inner = fs.faults
        self._kill = kill
        self._left = kill.nth
        self.words = f"call number {kill.nth} of the kind {kill.call}"

    def hit(self, call: CallKind, path: str) -> DiskFault | None:
        self._left -= call == self._kill.call
        if not self._left:
            self._fs.die()
        return None if self._inner is None else self._inner.hit(call, path)


class _Watched:
    """``ports.Provider`` that tells the watch when the model is asked and when it has answered."""

    def __init__(self, inner: Provider, watch: MemoryWatch) -> None:
        self._inner = inner
        self._watch = watch

    @property
    def dialect(self) -> str:
        return self._inner.dialect

    @property
    def model(self) -> str:
        return self._inner.model

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        self._watch.asked(request)
        reply = self._inner.complete(request, on_text)
        self._watch.answered(reply)
        return reply


def memory_of(
    product: Product,
    fs: FileSystem,
    clock: Clock,
    background: SimBackground,
    provider: Provider | None,
    settings: Settings,
) -> MemoryManager:
    """The product's memory in the simulated place."""
    return product.memory(
        fs=fs,
        clock=clock,
        background=background,
        project_root=PROJECT,
        user_root=HOME,
        provider=provider,
        settings=settings,
    )


# --- what stands on a disk -------------------------------------------------------------------------------------


def notes_on(fs: SimFileSystem) -> Notes:
    """The notes and indexes of both stores, by path."""
    return {path: data for path, data in _store_files(fs) if path.endswith(".md")}


def left_on(fs: SimFileSystem) -> tuple[str, ...]:
    """Journals and unfinished files that stand in the stores."""
    return tuple(path for path, _ in _store_files(fs) if posixpath.basename(path).startswith(("journal-", ".aside")))


def _store_files(fs: SimFileSystem) -> list[tuple[str, bytes]]:
    return [
        (path, data) for store in STORES for path, data in fs.files_under(store) if posixpath.dirname(path) == store
    ]


def save_by_hand(fs: SimFileSystem, path: str, data: bytes | None) -> None:
    """As a careful editor does it: written beside, synced, renamed, the folder synced."""
    folder = posixpath.dirname(path)
    if data is None:
        fs.unlink(path)
        fs.fsync_dir(folder)
        return
    _make_folders(fs, folder)
    beside = posixpath.join(folder, "saving~")
    fd = fs.open(beside, "create")
    fs.write(fd, data)
    fs.fsync(fd)
    fs.close(fd)
    fs.rename(beside, path)
    fs.fsync_dir(folder)


def _make_folders(fs: SimFileSystem, folder: str) -> None:
    try:
        fs.stat(folder)
    except FileNotFoundError:
        _make_folders(fs, posixpath.dirname(folder))
        fs.mkdir(folder)
        fs.fsync_dir(posixpath.dirname(folder))


def asked_about(messages: Sequence[Message]) -> str:
    """What the model is told of a turn, whatever the notes are."""
    return request_about(extraction_request(messages, {}, ""))


def request_about(request: Request) -> str:
    return request.messages[0].content.partition("<turn>")[2]
