"""One task without a person: what is said of a session that comes back, and of what was refused."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pseudoclaude.commands.agent import Callbacks
from pseudoclaude.commands.run import Refusal, run_task, tell_resumed
from pseudoclaude.messages import Message, ToolCall
from pseudoclaude.session import SessionWriter
from pseudoclaude.session.catalog import session_folder
from tests.commands.build import Office, Remembering, Shown
from tests.driving import calls, said
from tests.session.build import HEADER, line, user


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def resumed(office: Office, log: bytes) -> list[str]:
    """What resuming a session with this log says."""
    folder = session_folder(*office.place, "1")
    SessionWriter.open(folder).close()
    Path(folder, "conversation.jsonl").write_bytes(log)
    shown = Shown()
    shown.screen.console.width = 2_000
    agent = office.agent(Remembering([]), resume="1")
    tell_resumed(agent, shown.screen)
    agent.close()
    return shown.text.splitlines()


def open_calls(number: int) -> Message:
    return Message("assistant", tool_calls=tuple(ToolCall(f"c{n}", "read_file", "{}") for n in range(number)))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "One call was interrupted; its outcome is unknown."),
        (2, "2 calls were interrupted; their outcomes are unknown."),
    ],
)
def test_a_call_that_a_kill_left_open_is_no_damage(office: Office, number: int, words: str) -> None:
    told = resumed(office, HEADER + line(user("a"), 1) + line(open_calls(number), 2))
    assert told == [f"Resumed session 1: {2 + number} messages.", words]


def test_a_whole_session_is_only_counted(office: Office) -> None:
    assert resumed(office, HEADER + line(user("a"), 1)) == ["Resumed session 1: 1 message."]


def test_damage_is_told_with_the_command_that_shows_it(office: Office) -> None:
    told = resumed(office, HEADER + line(user("a"), 1) + line(user("b"), 3))
    log = session_folder(*office.place, "1") + "/conversation.jsonl"
    assert told[1:] == [
        "The log is damaged in 1 place:",
        "  record 2 is missing before this.",
        f"All of it: pseudoclaude check {log}",
    ]


def test_much_damage_is_told_in_part_and_counted(office: Office) -> None:
    told = resumed(office, HEADER + b"".join(line(user("a"), 1 + 2 * number) for number in range(8)))
    assert told[1] == "The log is damaged in 7 places:"
    assert told[6] == "  record 10 is missing before this."
    assert told[7] == "  and 2 more."


def test_a_refusal_says_once_what_would_let_it_and_text_before_a_call_is_progress(office: Office) -> None:
    shown, out = Shown(), io.StringIO()
    write = ToolCall("c1", "write_file", '{"path": "x", "content": "y"}')
    provider = Remembering(
        [
            Message("assistant", "I write it.", tool_calls=(write,), stop="tool_use"),
            calls(ToolCall("c2", "run_command", '{"command": "ls"}')),
            said("It could not be written."),
        ]
    )
    agent = office.agent(provider, callbacks=Callbacks(Refusal(shown.screen)))
    assert run_task(agent, "Write x.", shown.screen, out) == 0
    assert out.getvalue() == "It could not be written.\n"
    assert shown.text.count("write_file was refused: it changes something. --allow lets it.") == 1
    assert shown.text.count("--allow") == 1
    assert "I write it.\n● write_file" in shown.text
    assert "the user did not allow it" in provider.turns.requests[1].messages[-1].tool_result.content  # type: ignore[union-attr]


class NobodyReads(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_the_session_is_given_back_when_nobody_reads_the_result(office: Office) -> None:
    agent = office.agent(Remembering([said("Hello.")]))
    with pytest.raises(BrokenPipeError):
        run_task(agent, "Hi", Shown().screen, NobodyReads())
    again = office.agent(Remembering([]), resume=agent.session_id)
    assert again.loaded.messages[-1].content == "Hello."
    again.close()
