"""Ctrl-C at a place where it can do no harm.

Python raises ``KeyboardInterrupt`` between any two instructions of the main thread, so also after a message entered the history and before the
log heard of it.  ``Interrupts`` delays it to the end of a change; everywhere else - in a request, a tool, a prompt - it comes at once.
A second Ctrl-C does not wait: a disk that hangs must not make the program unstoppable.

SIGTERM and SIGHUP (the terminal is gone) end the program the same way, so that a tool's processes are not left running.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, Self

from pseudoclaude.conversation import Conversation, Hooks, ReplaceReason
from pseudoclaude.messages import History, Message

Shield = Callable[[], AbstractContextManager[None]]


class Terminated(KeyboardInterrupt):
    """The program was asked to end, not only to stop what it does."""


class Interrupts:
    """While entered, signals arrive as described above.  Main thread only."""

    def __init__(self) -> None:
        self._depth = 0
        self._due: type[KeyboardInterrupt] | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._previous[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Delay an interrupt until the block is left.  When the block fails, its error is what is raised: it stops things as well."""
        self._depth += 1
        try:
            yield
        except BaseException:
            self._due = None
            raise
        finally:
            self._depth -= 1
        if self._due is not None and self._depth == 0:
            due, self._due = self._due, None
            raise due

    def _arrived(self, number: int, _frame: FrameType | None) -> None:
        kind = KeyboardInterrupt if number == signal.SIGINT else Terminated
        if self._depth and self._due is None:
            self._due = kind
            return
        raise kind


class SteadyConversation(Conversation):
    """A Conversation whose changes are not interrupted between memory and log."""

    def __init__(self, messages: Iterable[Message], hooks: Hooks, held: Shield) -> None:
        super().__init__(messages, hooks)
        self._held = held

    def append(self, message: Message) -> None:
        with self._held():
            super().append(message)

    def replace_messages(self, reason: ReplaceReason, messages: Iterable[Message]) -> None:
        with self._held():
            super().replace_messages(reason, messages)

    def replace_prefix(self, reason: ReplaceReason, old: History, new: Iterable[Message]) -> bool:
        with self._held():
            return super().replace_prefix(reason, old, new)
