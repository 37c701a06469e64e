"""Repair: any canonical history into one in which every call has its result directly after it.

A pure, deterministic, idempotent walk in order over the whole history.  Calls and results are paired by position, not only by id,
because providers restart ids each turn (``call_0``), leave them empty, or use one twice in a message.  The walk decides what needs
the history: pairing, order, duplicates, orphans, the missing beginning.  It leaves alone what a projection can do without losing
the record: empty texts, ids, argument JSON.

Promises.  A valid history comes back as the same object.  Nothing leaves unnamed: each step is a ``Repair`` that holds what went.
An edited message loses its ``native``, and so does every later one with signed thinking or reasoning in it, since a signature is
bound to what stood before it (A44, A45); what stands before the first edit keeps its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from pseudoclaude.messages import History, Message, Native, ToolCall, ToolResult
from pseudoclaude.protocol.names import is_one_of
from pseudoclaude.protocol.values import Dangling, Repair

MISSING_BEGINNING = "[conversation resumed; the beginning is missing]"
OUTCOME_UNKNOWN = "[interrupted: this call was not answered; it may or may not have run, its outcome is unknown]"
SIGNED_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})


def repair(messages: Iterable[Message], *, dangling: Dangling = "trim") -> tuple[History, tuple[Repair, ...]]:
    """The history as a provider accepts it, and every step that led there, in order of position.

    ``dangling`` says what happens to a call without a result: ``trim`` removes it (and its message, if nothing is left),
    ``answer`` keeps it and adds a result that says the outcome is unknown.  Raises ``ValueError`` for any other word.
    """
    if dangling not in ("trim", "answer"):
        raise ValueError(f"dangling is 'trim' or 'answer', not {dangling!r}")
    history = messages if type(messages) is tuple else tuple(messages)
    if _is_sound(history):
        return history, ()
    walk = _Walk()
    for position, message in enumerate(history):
        walk.take(position, message)
    repaired = walk.finish(dangling)
    if not walk.repairs:
        return history, ()
    return repaired, tuple(sorted(walk.repairs, key=lambda step: step.position))


def is_signed(native: Native) -> bool:
    """Whether the payload holds thinking or reasoning, which is valid only after exactly what it was produced after."""
    payload = native.payload
    if not isinstance(payload, list):
        return False
    return any(isinstance(item, dict) and is_one_of(item.get("type"), SIGNED_TYPES) for item in payload)


def _is_sound(history: History) -> bool:
    """True if there is certainly nothing to do; answers in another order than the calls are left to the walk."""
    if not history:
        return True
    if history[0].role != "user":
        return False
    pending: tuple[ToolCall, ...] = ()
    answered = 0
    for message in history:
        if pending:
            result = message.tool_result
            if result is None or result.call_id != pending[answered].id:
                return False
            answered += 1
            if answered == len(pending):
                pending = ()
        elif message.tool_calls:
            pending = message.tool_calls
            answered = 0
        elif message.tool_result is not None:
            return False
    return not pending


class _Entry:
    """A message that stays, with one slot for the answer of each of its calls."""

    __slots__ = ("arrived", "edited", "message", "position", "slots")

    def __init__(self, position: int, message: Message) -> None:
        self.position = position
        self.message = message
        self.slots: list[Message | None] = [None] * len(message.tool_calls)
        self.arrived: list[int] = []
        self.edited = False

    def results(self) -> list[Message]:
        """Answers as they came, or in the order of the calls once the group had to be edited."""
        order = range(len(self.slots)) if self.edited else self.arrived
        return [message for slot in order if (message := self.slots[slot]) is not None]


class _Walk:
    """The state of one repair.

    ``open_calls`` holds, for each id, the calls without a result, the nearest last, so that ``pop`` pairs by position.
    ``edited_after`` is the lowest position after which the history is not what it was; signed payloads beyond it must go.
    """

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.repairs: list[Repair] = []
        self.open_calls: dict[str, list[tuple[_Entry, int]]] = {}
        self.answered: dict[str, tuple[_Entry, int]] = {}
        self.edited_after: int | None = None

    def take(self, position: int, message: Message) -> None:
        if message.tool_result is not None:
            self._take_result(position, message, message.tool_result)
            return
        entry = _Entry(position, message)
        self.entries.append(entry)
        calls = message.tool_calls
        for slot in reversed(range(len(calls))):
            self.open_calls.setdefault(calls[slot].id, []).append((entry, slot))

    def _take_result(self, position: int, message: Message, result: ToolResult) -> None:
        waiting = self.open_calls.get(result.call_id)
        prior = self.answered.get(result.call_id)
        if waiting and not self._repeats(prior, waiting[-1][0], result):
            entry, slot = waiting.pop()
            entry.slots[slot] = message
            entry.arrived.append(slot)
            self.answered[result.call_id] = (entry, slot)
            if self.entries[-1] is not entry:
                self._edit(entry)
                self._note(
                    "A21", position, "move_result", f"the late result of call {result.call_id!r} moved behind its call"
                )
        elif prior is not None:
            self._take_second_result(position, message, result, prior)
        else:
            self._dropped(position, "A21", f"no call {result.call_id!r} stands before this result", message)

    def _repeats(self, prior: tuple[_Entry, int] | None, waiting: _Entry, result: ToolResult) -> bool:
        """The same answer once more, right behind the call it answers: not the late answer of an older call of that id."""
        if prior is None or prior[0] is waiting or prior[0] is not self.entries[-1]:
            return False
        kept = prior[0].slots[prior[1]]
        return kept is not None and kept.tool_result == result

    def _take_second_result(
        self, position: int, message: Message, result: ToolResult, prior: tuple[_Entry, int]
    ) -> None:
        entry, slot = prior
        kept = entry.slots[slot]
        if kept is not None and _is_stand_in(kept) and not _is_stand_in(message):
            entry.slots[slot] = message
            self._edit(entry)
            detail = f"the real result of call {result.call_id!r} took the place of 'outcome unknown'"
            self._note("A23", position, "replace_result", detail, (kept,))
        else:
            self._dropped(position, "A23", f"call {result.call_id!r} already has its result", message)

    def finish(self, dangling: Dangling) -> History:
        """Settle calls without a result, the beginning and the signed payloads; the repaired history."""
        settle = self._trim if dangling == "trim" else self._answer
        kept = [entry for entry in self.entries if None not in entry.slots or settle(entry)]
        head: list[Message] = []
        if kept and kept[0].message.role == "assistant" and not _opens_with_compaction(kept[0].message):
            head = [Message("user", MISSING_BEGINNING)]
            self.edited_after = -1
            self._note("A02", kept[0].position, "insert_user", "the history does not start with a user message")
        self._drop_signed(kept)
        out = head
        for entry in kept:
            out.append(entry.message)
            out += entry.results()
        return tuple(out)

    def _trim(self, entry: _Entry) -> bool:
        message = entry.message
        calls = message.tool_calls
        answered = [slot for slot, result in enumerate(entry.slots) if result is not None]
        for slot, result in enumerate(entry.slots):
            if result is None:
                detail = f"call {calls[slot].id!r} of {calls[slot].name!r} has no result"
                self._note("A20", entry.position, "trim_call", detail, (calls[slot],))
        self._edit(entry)
        if not message.content and not answered:
            self._note("A20", entry.position, "drop_message", "nothing is left of this message", (message,))
            return False
        if message.native is not None:
            detail = "the provider's own form still holds the call that was removed"
            self._note("A41", entry.position, "drop_native", detail, (message.native,))
        stop = message.stop if answered or message.stop != "tool_use" else None
        entry.message = Message("assistant", message.content, tuple(calls[slot] for slot in answered), stop=stop)
        entry.slots = [entry.slots[slot] for slot in answered]
        return True

    def _answer(self, entry: _Entry) -> bool:
        for slot, result in enumerate(entry.slots):
            if result is None:
                call = entry.message.tool_calls[slot]
                stand_in = ToolResult(call.id, OUTCOME_UNKNOWN, is_error=True, origin="interrupted")
                entry.slots[slot] = Message("tool", tool_result=stand_in)
                detail = f"call {call.id!r} of {call.name!r} has no result; its outcome is unknown"
                self._note("A20", entry.position, "answer_call", detail)
        self._edit(entry)
        return True

    def _drop_signed(self, kept: list[_Entry]) -> None:
        if self.edited_after is None:
            return
        for entry in kept:
            native = entry.message.native
            if native is not None and entry.position > self.edited_after and is_signed(native):
                message = entry.message
                entry.message = Message(message.role, message.content, message.tool_calls, stop=message.stop)
                detail = "signed thinking or reasoning is bound to what stood before it, and that was edited"
                self._note("A45", entry.position, "drop_native", detail, (native,))

    def _dropped(self, position: int, rule: str, detail: str, message: Message) -> None:
        self._edited(position)
        self._note(rule, position, "drop_result", detail, (message,))

    def _edit(self, entry: _Entry) -> None:
        entry.edited = True
        self._edited(entry.position)

    def _edited(self, position: int) -> None:
        if self.edited_after is None or position < self.edited_after:
            self.edited_after = position

    def _note(self, rule: str, position: int, action: str, detail: str, removed: tuple[object, ...] = ()) -> None:
        self.repairs.append(Repair(rule, position, action, detail, removed))  # type: ignore[arg-type]


def _is_stand_in(message: Message) -> bool:
    return message.tool_result is not None and message.tool_result.origin == "interrupted"


def _opens_with_compaction(message: Message) -> bool:
    """A server-side compaction block stands for the beginning and must come first (A51)."""
    native = message.native
    if native is None or not isinstance(native.payload, list) or not native.payload:
        return False
    first = native.payload[0]
    return isinstance(first, dict) and first.get("type") == "compaction"
