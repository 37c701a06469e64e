"""``pseudoclaude chat`` in a real terminal."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from pseudoclaude.protocol.repair import OUTCOME_UNKNOWN
from simulator.replies.emulator import running_emulator
from tests.commands.real_task import CHECK, COMMAND, DONE, EDIT, HANG, READ, TASK, WAIT_SECONDS, Desk, spec

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*forkpty:DeprecationWarning")]
ALLOW_EDIT = r"Allow edit_file\? \[y\]es, \[n\]o, \[a\]lways: "
HAND_SECONDS = 0.3
ALLOW_COMMAND = r"Allow run_command\? \[y\]es, \[n\]o, \[a\]lways: "


class Terminal:
    """A chat in a pseudo terminal."""

    def __init__(self, desk: Desk, *arguments: str) -> None:
        self.desk = desk
        program, *first = COMMAND
        self.process: Any = pexpect.spawn(
            program,
            [*first, "chat", *arguments],
            cwd=str(desk.project),
            env=desk.environment,
            encoding="utf-8",
            timeout=WAIT_SECONDS,
            dimensions=(40, 150),
        )

    def sees(self, pattern: str) -> str:
        """Wait for ``pattern``; what stood before it."""
        self.process.expect(pattern)
        return str(self.process.before)

    def says(self, line: str) -> None:
        self.process.sendline(line)

    def presses_ctrl_c(self) -> None:
        """As a person does.  Between the prompt and the wait for a key lie microseconds in which Python's line editor does not see a signal."""
        time.sleep(HAND_SECONDS)
        self.process.sendintr()

    def ends(self) -> Any:
        self.process.expect(pexpect.EOF)
        self.process.close()
        return self.process.exitstatus


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.process.close(force=True)


def test_a_task_is_talked_through_with_questions_before_each_change(desk: Desk, terminals: list[Any]) -> None:
    chat = Terminal(desk, "--provider", desk.script("all", READ, EDIT, CHECK, EDIT, DONE))
    terminals.append(chat)
    chat.sees("> ")
    chat.says(TASK)
    chat.sees("I read it first")
    chat.sees("I repair it")
    chat.sees("new: Hello")
    chat.sees(ALLOW_EDIT)
    assert desk.text("greeting.txt") == "Helo, world!\n"
    chat.says("what?")
    chat.sees(ALLOW_EDIT)
    chat.says("y")
    chat.sees(ALLOW_COMMAND)
    assert desk.text("greeting.txt") == "Hello, world!\n"
    chat.says("n")
    chat.sees("Refused: run_command")
    chat.sees(ALLOW_EDIT)
    chat.says("n")
    chat.sees("repaired and checked")
    chat.sees("> ")
    assert not (desk.project / "checked").exists()
    chat.says("/quit")
    chat.sees(f"chat --resume {desk.sessions()[0]}")
    assert chat.ends() == 0


@pytest.mark.parametrize("dialect", [None, "anthropic", "openai-responses"])
def test_killed_in_a_tool_and_resumed(desk: Desk, terminals: list[Any], dialect: str | None) -> None:
    with running_emulator(spec(READ, EDIT, HANG)) as served:
        options = (
            ("--provider", desk.script("first", READ, EDIT, HANG))
            if dialect is None
            else ("--provider", f"{dialect}:m", "--base-url", served.url(dialect))
        )
        chat = Terminal(desk, *options)
        terminals.append(chat)
        chat.sees("> ")
        chat.says(TASK)
        chat.sees(ALLOW_EDIT)
        chat.says("a")
        chat.sees(ALLOW_COMMAND)
        chat.says("y")
        running = int(desk.wait_for("running"))
        os.kill(chat.process.pid, signal.SIGKILL)
        os.kill(running, signal.SIGKILL)
        chat.ends()
        assert served.emulator.violations == []
    [session] = desk.sessions()
    with running_emulator(spec(CHECK, DONE)) as served:
        options = (
            ("--provider", desk.script("second", CHECK, DONE))
            if dialect is None
            else ("--provider", f"{dialect}:m", "--base-url", served.url(dialect))
        )
        chat = Terminal(desk, *options, "--resume", session)
        terminals.append(chat)
        chat.sees(f"Resumed session {session}: 8 messages")
        chat.sees("2 calls were interrupted; their outcomes are unknown.")
        chat.sees("> ")
        chat.says("Go on.")
        chat.sees(ALLOW_COMMAND)
        chat.says("y")
        chat.sees("repaired and checked")
        chat.sees("> ")
        chat.process.sendeof()
        assert chat.ends() == 0
        assert served.emulator.violations == []
    results = [found for message in desk.loaded().messages if (found := message.tool_result)]
    assert [found.content for found in results if found.origin == "interrupted"] == [OUTCOME_UNKNOWN] * 2
    assert desk.text("checked") == "checked\n"


def test_ctrl_c_stops_what_runs_and_twice_leaves(desk: Desk, terminals: list[Any]) -> None:
    chat = Terminal(desk, "--provider", desk.script("all", HANG, DONE))
    terminals.append(chat)
    chat.sees("> ")
    chat.says(TASK)
    chat.sees(ALLOW_COMMAND)
    chat.says("y")
    desk.wait_for("running")
    chat.presses_ctrl_c()
    chat.sees("Stopped. Press Ctrl-C again to leave.")
    chat.sees("> ")
    chat.says("Go on.")
    chat.sees("repaired and checked")
    chat.sees("> ")
    chat.presses_ctrl_c()
    chat.sees("Press Ctrl-C again to leave.")
    chat.sees("> ")
    chat.presses_ctrl_c()
    chat.sees("chat --resume")
    assert chat.ends() == 0
    results = [found.content for message in desk.loaded().messages if (found := message.tool_result)]
    assert results[0] == OUTCOME_UNKNOWN
    assert "it was not run" in results[1]
    assert desk.loaded().state == "clean"


def test_commands_and_errors_leave_the_chat_going(desk: Desk, terminals: list[Any]) -> None:
    chat = Terminal(desk, "--provider", desk.script("one", {"fail": {"status": 400, "message": "no such thing"}}, DONE))
    terminals.append(chat)
    for line, seen in [
        ("/help", "/compact"),
        ("/memory", "Nothing is remembered yet"),
        ("/nothing", "There is no command /nothing"),
        ("/compact", "there is nothing old enough to summarize"),
        ("Hello", "no such thing"),
        ("Again", "repaired and checked"),
        ("And again", "no entry for request"),
        ("/sessions", "messages"),
    ]:
        chat.sees("> ")
        chat.says(line)
        chat.sees(seen)
    chat.says("/quit")
    assert chat.ends() == 0
    assert [message.content for message in desk.loaded().messages if message.role == "user"] == [
        "Hello",
        "Again",
        "And again",
    ]
