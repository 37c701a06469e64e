"""ScriptedProvider: replies and failures from a script, in memory.

A verified fake: the same script through the emulator and a real adapter gives the same replies, texts and errors (test_scripted.py).
Failures are built from the same bodies that the emulator sends, by the same function that the adapters use.  Refuses events in disorder.
"""

from __future__ import annotations

from collections.abc import Callable

from pseudoclaude.errors import ProviderError, ProviderUnavailable, StreamInterrupted
from pseudoclaude.messages import Message, Usage
from pseudoclaude.ports import Reply, Request
from pseudoclaude.providers.failures import interrupted, provider_failure
from simulator.replies.errors import NotScriptable, ScriptExhausted
from simulator.replies.refusals import error_events, refusal
from simulator.replies.script import Fail, ProviderSpec, Purpose, ScriptEntry
from simulator.replies.wire_events import Numbered, pieces, text_before_cut

NO_COUNT = Usage(0, 0)


class Queues:
    """The entries of a script that are still to come, one queue a purpose."""

    def __init__(self, spec: ProviderSpec) -> None:
        self._spec = spec
        self._next: dict[Purpose, int] = {"turn": 0, "summary": 0, "memory": 0}

    @property
    def taken(self) -> int:
        """How many entries were taken, over all queues."""
        return sum(self._next.values())

    @property
    def remaining(self) -> int:
        """How many entries are left, over all queues."""
        queues = (self._spec.queue(purpose) for purpose in self._next)
        return sum(map(len, queues)) - self.taken

    def take(self, purpose: Purpose) -> ScriptEntry:
        """Raises ``ScriptExhausted``."""
        queue, position = self._spec.queue(purpose), self._next[purpose]
        if position >= len(queue):
            name = "script" if purpose == "turn" else purpose
            raise ScriptExhausted(
                f"The script has no entry for request {position} of kind {purpose}",
                where=f"provider.{name}, {len(queue)} entries",
                do_next="Add an entry, or find out why one more request was made",
            )
        self._next[purpose] = position + 1
        return queue[position]


class ScriptedProvider:
    """``ports.Provider`` from the ``provider:`` part of a scenario."""

    def __init__(self, spec: ProviderSpec, dialect: str = "anthropic") -> None:
        self.dialect = dialect
        self.model = spec.model or "scripted"
        self._queues = Queues(spec)

    @property
    def remaining(self) -> int:
        """Entries that were not used."""
        return self._queues.remaining

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        number = self._queues.taken
        entry = self._queues.take(request.purpose)
        if entry.fail is not None and entry.fail.stop is None:
            failed = self._failure(entry, entry.fail, number)
            if failed is not None:
                if isinstance(failed, StreamInterrupted):
                    _speak(failed.partial.content, on_text)
                raise failed
        _speak(entry.spoken, on_text)
        message = Message("assistant", entry.spoken, entry.calls, stop=entry.ending)
        return Reply(message, entry.count, self.model)

    def _failure(self, entry: ScriptEntry, fail: Fail, number: int) -> ProviderError | None:
        where = f"script, request {number}"
        if fail.cut_after_events is not None:
            text = text_before_cut(self.dialect, Numbered(entry, number, self.model, NO_COUNT), fail.cut_after_events)
            return None if text is None else interrupted(text, self._break(fail, where))
        if fail.disorders:
            raise NotScriptable(
                "Events in disorder have no reply of their own: what comes of them is up to the adapter that reads them",
                where=where,
                do_next="Serve or record the script, and replay the cassette",
            )
        if fail.kind == "connection":
            return _unavailable("The connection to the provider failed", where)
        if fail.kind == "timeout":
            return _unavailable("The provider did not answer in time", where)
        answer = refusal(self.dialect, fail)
        return provider_failure(answer.status, answer.body, answer.headers, where=where)

    def _break(self, fail: Fail, where: str) -> ProviderError:
        """Why a stream that had begun stopped: the connection, or an error event, of which only the body speaks."""
        if fail.status is None:
            return _unavailable("The connection was cut", where)
        return provider_failure(200, error_events(self.dialect, fail)[0].data, {}, where=where)


def _unavailable(what: str, where: str) -> ProviderUnavailable:
    return ProviderUnavailable(what, retryable=True, where=where)


def _speak(text: str, on_text: Callable[[str], None] | None) -> None:
    if on_text is not None:
        for piece in pieces(text):
            on_text(piece)
