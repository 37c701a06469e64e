"""A history that several threads change: hooks in order, readers never waiting, and the memory that is ahead of the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pseudoclaude.conversation import Conversation, Hooks
from pseudoclaude.errors import ReentrantChange
from pseudoclaude.messages import History, Message, ToolCall, ToolResult

PATIENCE_SECONDS = 5.0
A, B, C, D = (Message("user", text) for text in "abcd")


class Task(threading.Thread):
    """A call in a thread of its own; a deadlock fails the test instead of hanging it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self._value: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # noqa: BLE001 (raised again where the result is asked for)
            self._error = error

    def result(self) -> Any:
        self.join(PATIENCE_SECONDS)
        assert not self.is_alive(), "still waiting"
        if self._error is not None:
            raise self._error
        return self._value


class Gate:
    """A hook that stops at the first change until it is let through, and logs what reached it."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        self.log: list[Any] = []

    def on_append(self, message: Message) -> None:
        self._pass(message)

    def on_replace(self, reason: str, messages: History) -> None:
        self._pass((reason, messages))

    def _pass(self, change: Any) -> None:
        self.reached.set()
        assert self.open.wait(PATIENCE_SECONDS)
        self.log.append(change)

    def hooks(self) -> Hooks:
        return Hooks(self.on_append, self.on_replace)


class Disk:
    """A hook that keeps what it is given, unless it is broken."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.error: Exception | None = None

    def on_append(self, message: Message) -> None:
        self._keep(message)

    def on_replace(self, reason: str, messages: History) -> None:
        self._keep((reason, messages))

    def _keep(self, change: Any) -> None:
        if self.error is not None:
            raise self.error
        self.log.append(change)

    def hooks(self) -> Hooks:
        return Hooks(self.on_append, self.on_replace)


CHANGES: dict[str, Callable[[Conversation], object]] = {
    "append": lambda conversation: conversation.append(B),
    "replace": lambda conversation: conversation.replace_messages("recover", (A, B)),
    "prefix": lambda conversation: conversation.replace_prefix("compact", (A,), (A, B)),
}
"""What makes (A, B) of (A)."""


# --- snapshots -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_stays_what_it_was(change: str) -> None:
    conversation = Conversation([A])
    before = conversation.messages()
    CHANGES[change](conversation)
    assert before == (A,)
    assert conversation.messages() == (A, B)
    assert len(conversation) == 2


def test_a_snapshot_is_made_once_while_nothing_changes() -> None:
    conversation = Conversation([A])
    snapshot = conversation.messages()
    assert type(snapshot) is tuple
    assert conversation.messages() is snapshot
    assert conversation.replace_prefix("compact", (B,), ()) is False
    assert conversation.messages() is snapshot
    conversation.append(B)
    assert conversation.messages() is not snapshot


def test_a_list_that_was_given_may_change_afterwards() -> None:
    given = [A]
    conversation = Conversation(given)
    given.append(B)
    assert conversation.messages() == (A,)
    conversation.replace_messages("recover", given)
    given.clear()
    assert conversation.messages() == (A, B)


def test_each_kind_of_message_is_added_and_given_back() -> None:
    conversation = Conversation()
    call, answer = ToolCall("c", "t", "{}"), ToolResult("c", "x")
    added = [
        conversation.add_user("u"),
        conversation.add_assistant("a", stop="end_turn"),
        conversation.add_assistant_tool_calls("b", iter([call])),
        conversation.add_tool_result(answer),
    ]
    assert added == [
        Message("user", "u"),
        Message("assistant", "a", stop="end_turn"),
        Message("assistant", "b", (call,), stop="tool_use"),
        Message("tool", tool_result=answer),
    ]
    assert conversation.messages() == tuple(added)


# --- hooks -----------------------------------------------------------------------------------------------------


def test_hooks_are_told_each_change_with_the_whole_new_history() -> None:
    disk = Disk()
    conversation = Conversation([A], disk.hooks())
    conversation.append(B)
    conversation.replace_messages("snapshot", iter([C]))
    conversation.append(D)
    assert conversation.replace_prefix("compact", (C,), iter([A])) is True
    assert disk.log == [B, ("snapshot", (C,)), D, ("compact", (A, D))]
    assert conversation.messages() == (A, D)


@pytest.mark.parametrize("change", CHANGES)
def test_a_reader_sees_the_change_while_its_hook_is_still_writing(change: str) -> None:
    gate = Gate()
    conversation = Conversation([A], gate.hooks())
    changing = Task(lambda: CHANGES[change](conversation))
    assert gate.reached.wait(PATIENCE_SECONDS)
    assert Task(conversation.messages).result() == (A, B)
    assert Task(lambda: len(conversation)).result() == 2
    assert gate.log == []
    gate.open.set()
    changing.result()
    assert len(gate.log) == 1


@pytest.mark.parametrize("change", CHANGES)
def test_the_next_change_waits_for_the_hook_of_the_one_before(change: str) -> None:
    gate = Gate()
    conversation = Conversation([], gate.hooks())
    first = Task(lambda: conversation.append(A))
    assert gate.reached.wait(PATIENCE_SECONDS)
    second = Task(lambda: CHANGES[change](conversation))
    second.join(0.02)
    assert second.is_alive()
    assert conversation.messages() == (A,)
    gate.open.set()
    first.result()
    second.result()
    assert gate.log[0] == A
    assert len(gate.log) == 2
    assert conversation.messages() == (A, B)


def test_the_log_of_the_hooks_agrees_with_memory_whatever_the_threads_do() -> None:
    replayed: list[Message] = []

    def on_append(message: Message) -> None:
        threading.Event().wait(0.000_01)  # gives another thread its turn
        replayed.append(message)

    def on_replace(_: str, messages: History) -> None:
        threading.Event().wait(0.000_01)
        replayed[:] = messages

    conversation = Conversation([], Hooks(on_append, on_replace))

    def work(number: int) -> None:
        for turn in range(20):
            conversation.append(Message("user", f"{number} {turn}"))
            if turn % 7 == number:
                seen = conversation.messages()
                conversation.replace_prefix("compact", seen, seen[-5:])

    tasks = [Task(lambda number=number: work(number)) for number in range(4)]  # type: ignore[misc]
    for task in tasks:
        task.result()
    assert tuple(replayed) == conversation.messages()
    for number in range(4):
        mine = [int(message.content.split()[1]) for message in replayed if message.content.startswith(f"{number} ")]
        assert mine == sorted(set(mine))


@pytest.mark.parametrize("inner", CHANGES)
@pytest.mark.parametrize("outer", CHANGES)
def test_a_change_from_inside_a_hook_is_an_error_and_no_deadlock(outer: str, inner: str) -> None:
    changes: list[object] = []

    def hook(*change: object) -> None:
        changes.append(change)
        if len(changes) == 1:
            CHANGES[inner](conversation)

    conversation = Conversation([A], Hooks(hook, hook))
    with pytest.raises(
        ReentrantChange, match=r"the inner one was not made\. Make the change after the hook has returned"
    ):
        Task(lambda: CHANGES[outer](conversation)).result()
    assert conversation.messages() == (A, B)
    assert len(changes) == 1
    Task(lambda: conversation.append(C)).result()
    assert conversation.messages() == (A, B, C)


def test_a_hook_may_read_the_conversation() -> None:
    seen: list[History] = []
    conversation = Conversation([A], Hooks(on_append=lambda _: seen.append(conversation.messages())))
    Task(lambda: conversation.append(B)).result()
    assert seen == [(A, B)]


# --- a hook that fails -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES)
def test_a_failing_hook_leaves_memory_ahead_and_says_so(change: str) -> None:
    disk = Disk()
    conversation = Conversation([A], disk.hooks())
    assert conversation.unsaved == 0
    disk.error = OSError("disk full")
    with pytest.raises(OSError, match="disk full") as caught:
        CHANGES[change](conversation)
    assert caught.value is disk.error
    assert conversation.messages() == (A, B)
    assert conversation.unsaved == 1
    with pytest.raises(OSError, match="disk full"):
        conversation.append(C)
    assert conversation.unsaved == 2
    disk.error = None
    conversation.append(D)
    assert conversation.unsaved == 0
    assert conversation.messages() == (A, B, C, D)


def test_a_change_that_nobody_wants_to_know_of_is_not_unsaved() -> None:
    disk = Disk()
    conversation = Conversation([A], Hooks(on_replace=disk.on_replace))
    conversation.append(B)
    assert conversation.unsaved == 0


# --- replacing -------------------------------------------------------------------------------------------------


def test_what_came_late_stays_behind_the_new_prefix_once() -> None:
    conversation = Conversation([A, B])
    old = conversation.messages()
    conversation.append(C)
    conversation.append(D)
    assert conversation.replace_prefix("compact", old, [Message("user", "summary")]) is True
    assert conversation.messages() == (Message("user", "summary"), C, D)


@pytest.mark.parametrize(
    "now",
    [(), (A,), (B, A), (A, Message("user", "b")), (Message("user", "summary"), C)],
    ids=["empty", "shorter", "another order", "equal and not the same", "compacted"],
)
def test_a_prefix_that_is_no_longer_there_is_not_replaced(now: History) -> None:
    disk = Disk()
    conversation = Conversation(now, disk.hooks())
    assert conversation.replace_prefix("compact", (A, B), (D,)) is False
    assert conversation.messages() == now
    assert disk.log == []
    assert conversation.unsaved == 0


@pytest.mark.parametrize("reason", ["edit", "", None, "Compact"])
def test_only_compaction_and_recovery_replace(reason: Any) -> None:
    disk = Disk()
    conversation = Conversation([A], disk.hooks())
    words = f"a history is replaced for snapshot, compact, recover, not for {reason!r}"
    with pytest.raises(ValueError, match=words):
        conversation.replace_messages(reason, ())
    with pytest.raises(ValueError, match=words):
        conversation.replace_prefix(reason, (A,), ())
    assert conversation.messages() == (A,)
    assert disk.log == []


def test_a_new_history_that_breaks_off_replaces_nothing() -> None:
    def broken() -> Iterator[Message]:
        yield B
        raise KeyError("no more")

    conversation = Conversation([A])
    with pytest.raises(KeyError):
        conversation.replace_messages("compact", broken())
    with pytest.raises(KeyError):
        conversation.replace_prefix("compact", (A,), broken())
    assert conversation.messages() == (A,)
