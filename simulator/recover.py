"""Recover: run the real product on one crash state, the way a user would, and write down what it did.

For every session the recording knows: look at it (``load``), open it for append, say something, close, and look again.  Nothing is judged here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from pseudoclaude.messages import History, Message
from pseudoclaude.session import LoadResult
from pseudoclaude.session.loader import LOCK_NAME, UNSYNCED_NAME
from pseudoclaude.settings import Settings
from simulator.disk import OpLog, SimFileSystem
from simulator.product import Product
from simulator.values import Disk, Loaded, Recovered, SpillSeen
from simulator.world import SimClock, SimIds, protocol_violations

PROBE = Message("user", "Are you still there? ✓")
OPENED, APPENDED = 1, 3
"""Steps of a recovery: the history it found; what its repair made of it (step 2, just before the append); and that plus the probe."""
NEXT = Message("user", "Go on.")


class Recoverer:
    """Recovers many disks of one recording.  Protocol checks of histories it has seen are not made twice."""

    def __init__(self, product: Product, settings: Settings) -> None:
        self._product = product
        self._settings = settings
        self._clock = SimClock()
        self._ids = SimIds(0)
        self._folders: object = None
        self._looked_up: dict[str, int] = {}
        self._checked: dict[int, list[tuple[History, tuple[str, ...]]]] = {}
        """Histories that were loaded, by length, with what the protocol says against them."""

    def recover(self, disk: Disk, folder: str, log: OpLog | None = None) -> Recovered:
        """What the product does with ``disk``.  ``log`` records the calls of the opening and the append, for a second crash."""
        fs = SimFileSystem(disk, paths=self._paths(disk))
        loaded = self._look(folder, lambda: self._product.load(folder, fs=fs, dangling="trim"), fs)
        marked = fs.peek(f"{folder}/{UNSYNCED_NAME}") is not None
        fs.log = log
        reopened, untouched = self._live(folder, fs, log)
        fs.log = None
        usable = self._look(folder, lambda: self._product.load(folder, fs=fs, dangling="trim"))
        return Recovered(loaded, reopened, untouched, PROBE, usable, fs.open_files, marked)

    def _paths(self, disk: Disk) -> dict[str, int]:
        """Looked-up paths, shared by all disks with the same folders."""
        if disk.folders is not self._folders:
            self._folders = disk.folders
            self._looked_up = {}
        return self._looked_up

    def _live(self, folder: str, fs: SimFileSystem, log: OpLog | None) -> tuple[Loaded, bool]:
        """One process: open, append the probe, close.  What it loaded, and whether opening left every byte alone."""
        untouched = True

        def open_and_append() -> LoadResult:
            nonlocal untouched
            fs.touched.clear()
            writer = self._product.open(
                folder,
                settings=self._settings,
                fs=self._product.file_system(fs),
                clock=self._clock,
                ids=self._ids,
                dangling="trim",
            )
            try:
                untouched = not fs.changed_besides(f"{folder}/{LOCK_NAME}")
                if log is not None:
                    log.ack(folder, OPENED, durable=self._settings.durability != "off")
                    log.issue(folder, APPENDED)
                writer.append_message(PROBE)
                if log is not None:
                    log.ack(folder, APPENDED, durable=self._settings.durability == "always")
                writer.close()
            except BaseException:
                writer.abandon()
                raise
            return writer.loaded

        return self._look(folder, open_and_append), untouched

    def _look(self, folder: str, load: Callable[[], LoadResult], fs: SimFileSystem | None = None) -> Loaded:
        """What ``load`` gives; with ``fs``, also what lies under the names of the spilled results in it."""
        try:
            result = load()
        except Exception as error:  # noqa: BLE001
            # Whatever the product raises here is evidence for O1; the oracle judges it.
            return Loaded(folder, raised=f"{type(error).__name__}: {error}")
        messages, violations = self._known(result.messages)
        return Loaded(
            folder,
            state=result.state,
            messages=messages,
            truncated=tuple([call.id for call in result.truncated]) if result.truncated else (),
            findings=result.findings,
            spills=() if fs is None else _spills(folder, messages, fs),
            violations=violations,
        )

    def _known(self, messages: History) -> tuple[History, tuple[str, ...]]:
        """``messages``, as the same object that an equal history was before, and what the protocol says against going on from them."""
        known = self._checked.setdefault(len(messages), [])
        for entry in known:
            if entry[0] == messages:
                return entry
        entry = (messages, tuple(protocol_violations(self._settings.dialect, (*messages, NEXT))))
        known.append(entry)
        return entry


def _spills(folder: str, messages: History, fs: SimFileSystem) -> tuple[SpillSeen, ...]:
    seen = []
    for message in messages:
        spill = message.tool_result.spill if message.tool_result is not None else None
        if spill is not None:
            data = fs.peek(f"{folder}/{spill.path}")
            digest = "" if data is None else hashlib.sha256(data).hexdigest()
            seen.append(SpillSeen(spill.path, spill.bytes, spill.sha256, -1 if data is None else len(data), digest))
    return tuple(seen)
