"""Which tool results were decided already: kept word for word, or spilled.

A decision is by place in the history, never by call id alone: providers reuse ids (``call_0`` in every turn) and send empty ones.
``decided`` messages from the start are final; a turn whose spill failed is listed apart and tried again.

Promises: a result once kept is never rewritten later (that would void the provider's cache and signed thinking for nothing); a
check with nothing new costs the same for any length of history.  A history that was replaced by someone else starts over, and
starting over decides the same, because a turn within the limits is left alone and a preview is never spilled again.  That is also
how a resumed session comes to the same decisions: it starts over on the loaded history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pseudoclaude.compact.tokens import Prefix
from pseudoclaude.messages import History

_NOTHING = Prefix(0, None, None)


class ResultTurn(NamedTuple):
    """The results of one assistant message: ``messages[start:end]`` are all tool messages.  ``complete`` when no more can join."""

    start: int
    end: int
    complete: bool


class Ledger:
    """How far the decisions reach.  Not for several threads: one Runner owns it."""

    def __init__(self) -> None:
        self._decided = _NOTHING
        self._failed: list[ResultTurn] = []

    @property
    def decided(self) -> int:
        """Messages from the start whose decision is final, failed turns apart."""
        return self._decided.length

    def nothing_to_decide(self, messages: History) -> bool:
        """True when every message was looked at before and no spill waits for another try."""
        return not self._failed and self._decided.length == len(messages) and self._decided.begins(messages)

    def open_turns(self, messages: History) -> list[ResultTurn]:
        """The turns still to decide, in order: those whose spill failed, then the new ones."""
        if not self._decided.begins(messages):
            self.reset()
        return [*self._failed, *result_turns(messages, self._decided.length)]

    def settle(self, messages: History, failed: Iterable[ResultTurn]) -> None:
        """Freeze the decisions for ``messages`` as they are now, except ``failed`` turns and a last turn that may still grow."""
        decided = len(messages)
        for turn in result_turns(messages, _last_turn_start(messages)):
            if not turn.complete:
                decided = turn.start
        self._decided = Prefix.of(messages, decided)
        self._failed = [turn for turn in failed if turn.complete]

    def reset(self) -> None:
        """Forget every decision: the history is another one."""
        self._decided = _NOTHING
        self._failed = []


def result_turns(messages: History, start: int) -> Iterator[ResultTurn]:
    """The runs of consecutive tool messages from ``start`` on."""
    index, count = start, len(messages)
    while index < count:
        if messages[index].role != "tool":
            index += 1
            continue
        end = index
        while end < count and messages[end].role == "tool":
            end += 1
        calls = len(messages[index - 1].tool_calls) if index else 0
        yield ResultTurn(index, end, complete=end < count or end - index >= calls)
        index = end


def _last_turn_start(messages: History) -> int:
    index = len(messages)
    while index and messages[index - 1].role == "tool":
        index -= 1
    return index
