"""The chat's own commands and keys, without a terminal; the terminal itself is in ``test_terminal``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from pseudoclaude.commands.agent import Callbacks
from pseudoclaude.commands.chat import Chat, session_lines
from pseudoclaude.commands.interrupts import Terminated
from pseudoclaude.errors import ProviderUnavailable
from tests.commands.build import Office, Remembering, Shown, Typed, texts
from tests.driving import Answer, said

STOP = KeyboardInterrupt()


class Talk:
    """One chat, played through: ``typed`` by the user, ``turns`` by the model."""

    def __init__(self, office: Office, typed: Iterable[str | BaseException], turns: Iterable[Answer] = ()) -> None:
        self.shown = Shown()
        self.typed = Typed(typed)
        self.provider = Remembering(list(turns))
        callbacks = Callbacks(on_text=self.shown.screen.text, on_progress=self.shown.screen.progress)
        self.agent = office.agent(self.provider, callbacks=callbacks)
        chat = Chat(self.agent, self.shown.screen, self.typed, lambda: session_lines(office.machine.fs, office.place))
        self.status = chat.run()

    @property
    def history(self) -> list[str]:
        return texts(self.agent.runner.conversation.messages())


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def test_words_go_to_the_model_and_its_words_to_the_screen(office: Office) -> None:
    talk = Talk(office, ["Hi"], [said("Hello there.")])
    assert talk.status == 0
    assert talk.history == ["Hi", "Hello there."]
    assert "Hello there.\n" in talk.shown.text
    assert talk.shown.text.endswith(f"Go on with: pseudoclaude chat --resume {talk.agent.session_id}\n")


def test_a_line_may_go_on_in_the_next(office: Office) -> None:
    talk = Talk(office, ["one\\", "two\\", "three"], [said("Yes.")])
    assert talk.history[0] == "one\ntwo\nthree"
    assert talk.typed.prompts == ["> ", "… ", "… ", "> "]


@pytest.mark.parametrize("line", ["", "   ", "/help", "/memory", "/nothing", "/sessions"])
def test_what_is_not_for_the_model_does_not_reach_it(office: Office, line: str) -> None:
    talk = Talk(office, [line])
    assert talk.history == []
    assert "Go on with" not in talk.shown.text


def test_a_path_is_not_a_command(office: Office) -> None:
    assert Talk(office, ["/etc/hosts is what?"], [said("A file.")]).history[0] == "/etc/hosts is what?"


@pytest.mark.parametrize("line", ["/quit", "/exit", " /quit "])
def test_quitting_leaves_at_once(office: Office, line: str) -> None:
    assert Talk(office, [line, "Hi"]).history == []


def test_sessions_are_listed_with_how_they_begin(office: Office) -> None:
    Talk(office, ["First question\nmore"], [said("Yes.")])
    talk = Talk(office, ["/sessions"])
    assert "2 messages  First question more\n" in talk.shown.text


def test_compacting_shows_what_it_did_or_why_not(office: Office) -> None:
    tale = [said("A long tale. " * 3_000), said("## Goal\nTales.")]
    talk = Talk(office, ["Tell.", "/compact keep names", "/compact"], [*tale, ProviderUnavailable("The model is down")])
    assert "Compacting the context…\nContext compacted: " in talk.shown.text
    assert "keep names" in talk.provider.turns.requests[1].messages[-1].content
    assert talk.shown.text.count("The model is down") == 1


def test_an_error_ends_the_turn_and_not_the_chat(office: Office) -> None:
    talk = Talk(office, ["one", "two"], [ProviderUnavailable("The model is down"), said("Back.")])
    assert talk.status == 0
    assert "pseudoclaude: The model is down." in talk.shown.text
    assert talk.history == ["one", "two", "Back."]


def test_ctrl_c_twice_leaves_and_once_does_not(office: Office) -> None:
    talk = Talk(office, [STOP, "Hi", STOP, STOP, "never"], [said("Hello.")])
    assert talk.history == ["Hi", "Hello."]
    assert talk.shown.text.count("Press Ctrl-C again to leave.") == 2


def test_ctrl_c_in_a_turn_counts_as_the_first(office: Office) -> None:
    talk = Talk(office, ["Hi", STOP, "never"], [STOP])
    assert talk.history == ["Hi"]
    assert talk.status == 0


def test_being_terminated_saves_and_says_so_in_the_status(office: Office) -> None:
    talk = Talk(office, ["Hi", Terminated(), "never"], [said("Hello.")])
    assert talk.status == 143
    assert talk.agent.runner.conversation.unsaved == 0


def test_a_line_that_is_not_utf8_is_not_sent(office: Office) -> None:
    broken = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    talk = Talk(office, [broken, "Hi"], [said("Hello.")])
    assert talk.history == ["Hi", "Hello."]
    assert "That was not UTF-8; nothing was sent." in talk.shown.text
