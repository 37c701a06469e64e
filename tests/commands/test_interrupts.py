"""Ctrl-C never falls between a message in memory and its record."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from pseudoclaude.commands.interrupts import Interrupts, SteadyConversation, Terminated
from pseudoclaude.conversation import Conversation, Hooks
from pseudoclaude.messages import History, Message


def press(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def test_outside_a_change_an_interrupt_comes_at_once() -> None:
    with Interrupts(), pytest.raises(KeyboardInterrupt):
        press()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_asked_to_end_is_told_apart(number: int) -> None:
    with Interrupts(), pytest.raises(Terminated):
        press(number)


def test_inside_a_change_it_waits_for_the_end() -> None:
    reached = []

    def change(interrupts: Interrupts) -> None:
        with interrupts.held():
            with interrupts.held():
                press()
                reached.append("inner")
            reached.append("outer")
        reached.append("never")

    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            change(interrupts)
        with interrupts.held():
            reached.append("later")
    assert reached == ["inner", "outer", "later"]


def test_a_second_one_does_not_wait() -> None:
    reached = []

    def change(interrupts: Interrupts) -> None:
        with interrupts.held():
            press()
            reached.append("first")
            press()
            reached.append("second")

    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        change(interrupts)
    assert reached == ["first"]


def test_an_error_in_the_change_is_what_is_raised() -> None:
    def change(interrupts: Interrupts) -> None:
        with interrupts.held():
            press()
            raise OSError("disk")

    with Interrupts() as interrupts:
        with pytest.raises(OSError, match="disk"):
            change(interrupts)
        with interrupts.held():
            pass


def test_afterwards_the_handlers_are_as_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


CHANGES: dict[str, Callable[[Conversation, Message], object]] = {
    "append": lambda conversation, message: conversation.append(message),
    "replace": lambda conversation, message: conversation.replace_messages("recover", (message,)),
    "prefix": lambda conversation, message: conversation.replace_prefix("compact", (), (message,)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_a_conversation_reaches_its_hook(change: str) -> None:
    saved: list[History] = []

    def on_append(message: Message) -> None:
        press()
        saved.append((message,))

    def on_replace(_: str, messages: History) -> None:
        press()
        saved.append(messages)

    one = Message("user", "one")
    with Interrupts() as interrupts:
        conversation = SteadyConversation((), Hooks(on_append, on_replace), interrupts.held)
        with pytest.raises(KeyboardInterrupt):
            CHANGES[change](conversation, one)
    assert saved == [(one,)] == [conversation.messages()]
    assert conversation.unsaved == 0


def test_it_is_a_conversation_like_any_other_without_a_shield() -> None:
    conversation = SteadyConversation((), Hooks(), nullcontext)
    conversation.add_user("one")
    assert conversation.replace_prefix("compact", (Message("user", "other"),), ()) is False
    assert conversation.messages() == (Message("user", "one"),)
