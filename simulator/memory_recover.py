"""Recover memory: start the product's memory on one crash state, and write down what it did.  Nothing is judged here.

First a start without a model, as a new session makes it; then turns that a dead process left are finished, with the answers that the model
gave in the recorded run; then one start more, which must find nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable

from pseudoclaude.commands.agent import turn_messages
from pseudoclaude.errors import ProviderUnavailable
from pseudoclaude.memory import MemoryManager
from pseudoclaude.messages import Message
from pseudoclaude.ports import FileSystem, Provider, Reply, Request
from pseudoclaude.settings import Settings
from simulator.disk import SimFileSystem
from simulator.memory_record import PENDING, PLACE, left_on, memory_of, notes_on, request_about
from simulator.product import Product
from simulator.values import Disk, MemoryRecord, Notes, Remembered
from simulator.world import SimBackground, SimClock


class MemoryRecoverer:
    """Recovers the stores of many disks of one recording."""

    def __init__(self, product: Product, settings: Settings, memory: MemoryRecord) -> None:
        self._product = product
        self._settings = settings
        self._clock = SimClock()
        self._model = _Answers({turn.asked: turn.answer for turn in memory.turns if turn.answer is not None}, settings)

    def recover(self, disk: Disk) -> Remembered:
        """What memory does with ``disk``."""
        fs = SimFileSystem(disk)
        try:
            return self._started(fs)
        except Exception as error:  # noqa: BLE001
            # Whatever the product raises here is evidence for M1; the oracle judges it.
            return Remembered({}, raised=f"{type(error).__name__}: {error}")

    def _started(self, fs: SimFileSystem) -> Remembered:
        product_fs = self._product.file_system(fs)
        manager = self._manager(product_fs, SimBackground(), None)
        manager.refresh_index()
        notes, left = notes_on(fs), left_on(fs)
        taken = self._finish(product_fs)
        finished: Notes = notes_on(fs) if taken else notes
        waiting = sum(path.endswith(".json") for path, _ in fs.files_under(PENDING))
        again = self._finish(product_fs) if taken else 0
        return Remembered(notes, left, manager.prompt_section, finished, taken, waiting, again, fs.open_files)

    def _finish(self, fs: FileSystem) -> int:
        """Start with a model and finish the turns that were left; how many there were."""
        background = SimBackground()
        manager = self._manager(fs, background, self._model)
        taken = manager.finish_pending(lambda session, first, last: turn_messages(fs, PLACE, session, first, last))
        background.drain(0)
        return taken

    def _manager(self, fs: FileSystem, background: SimBackground, provider: Provider | None) -> MemoryManager:
        return memory_of(self._product, fs, self._clock, background, provider, self._settings)


class _Answers:
    """``ports.Provider`` that answers each turn as the model did in the recorded run."""

    model = "scripted"

    def __init__(self, answers: dict[str, str], settings: Settings) -> None:
        self.dialect: str = settings.dialect
        self._answers = answers

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        del on_text
        answer = self._answers.get(request_about(request))
        if answer is None:
            raise ProviderUnavailable("In the recorded run the model never answered this turn", retryable=False)
        return Reply(Message("assistant", answer, stop="end_turn"))
