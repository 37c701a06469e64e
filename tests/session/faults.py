"""One session driven through a disk fault, and swept: the same object goes on after it, and power is cut at every point."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pseudoclaude.errors import NotDurable, SessionError
from pseudoclaude.messages import History, Message
from pseudoclaude.session import SessionWriter
from pseudoclaude.settings import Durability, Settings
from simulator.crash import Model
from simulator.disk import FaultPlan, OpLog, SimFileSystem
from simulator.disk.faults import DiskFault
from simulator.product import Product
from simulator.replies.script import ProviderSpec
from simulator.scenario import Crash, Expect, Faults, Scenario
from simulator.sweep import Sweep, SweepResult
from simulator.values import ROOT, Disk, Recording, SessionRecord
from tests.session.build import FOLDER, assistant, opened, user

BASE = Disk({}, {ROOT: {}})
INTERRUPTS = (KeyboardInterrupt, MemoryError)


class Driven(msgspec.Struct):
    """What one drive left: ``histories[k]`` after ``k`` changes; ``raised``: the errors the caller saw; ``closed``: close returned."""

    fs: SimFileSystem
    log: OpLog
    histories: list[History]
    replaces: set[int]
    raised: list[BaseException]
    closed: bool = False

    def change(self, history: History, act: Callable[[], None], durability: Durability) -> None:
        self.histories.append(history)
        step = len(self.histories) - 1
        self.log.issue(FOLDER, step)
        if self.attempt(act):
            replaced = step in self.replaces and durability != "off"
            self.log.ack(FOLDER, step, durable=durability == "always" or replaced)

    def settle(self, act: Callable[[], None], durability: Durability) -> None:
        if self.attempt(act):
            self.log.ack(FOLDER, len(self.histories) - 1, durable=durability != "off")

    def attempt(self, act: Callable[[], None]) -> bool:
        try:
            act()
        except (SessionError, *INTERRUPTS) as error:
            self.raised.append(error)
            return False
        return True


def drive(*faults: DiskFault, durability: Durability = "always", base: Disk = BASE, clear_after: int = 0) -> Driven:
    """Open (again, where that fails), four appends, a replace, an append, a turn's end, close (again, where that fails).

    ``clear_after``: the disk is well again after so many changes.
    """
    log = OpLog()
    fs = SimFileSystem(base, log=log, faults=FaultPlan(faults))
    driven = Driven(fs, log, [()], set(), [])
    writer = _open(driven, durability)
    if writer is None:
        return driven
    if writer.loaded.messages:
        driven.histories = [writer.loaded.messages]
    changes: list[Message | list[Message]] = [user("a"), assistant("b é"), user("c"), assistant("d"), [user("short")]]
    for number, change in enumerate([*changes, assistant("e"), user("f")], 1):
        _one(driven, writer, change, durability)
        if number == clear_after:
            fs.faults.clear()
        if number == 3:
            driven.settle(writer.end_turn, durability)
    for _ in range(4):
        closed = len(driven.raised)
        driven.settle(writer.close, durability)
        driven.closed = len(driven.raised) == closed
        if driven.closed:
            break
    else:
        driven.attempt(writer.abandon)
    return driven


def _one(driven: Driven, writer: SessionWriter, change: Message | list[Message], durability: Durability) -> None:
    if isinstance(change, Message):
        driven.change((*driven.histories[-1], change), lambda: writer.append_message(change), durability)
        return
    driven.replaces.add(len(driven.histories))
    driven.change(tuple(change), lambda: writer.append_replace("compact", change), durability)


def _open(driven: Driven, durability: Durability) -> SessionWriter | None:
    for _ in range(3):
        try:
            return opened(driven.fs, durability=durability)
        except (SessionError, *INTERRUPTS) as error:
            driven.raised.append(error)
    return None


def swept(driven: Driven, *, base: Disk = BASE, durability: Durability = "always", again: bool = False) -> SweepResult:
    """Every crash of the drive, judged."""
    settings = Settings(durability=durability)
    models: tuple[Model, ...] = ("kill", "posix-min")
    crash = Crash(models=models, again=again)
    scenario = Scenario(
        "session/driven", "00000000", "", "", settings, {}, ProviderSpec(), (), Faults(crash=crash), Expect()
    )
    recording = Recording(
        scenario="session/driven",
        content_hash="00000000",
        seed=0,
        variant="product",
        base=base,
        ops=tuple(driven.log.ops),
        sessions=(SessionRecord(FOLDER, tuple(driven.histories), frozenset(driven.replaces)),),
        dialect="anthropic",
        durability=durability,
    )
    return Sweep(recording, Product(), scenario, tears="ends").run(crash)


def told(driven: Driven) -> list[NotDurable]:
    return [error for error in driven.raised if isinstance(error, NotDurable)]
