"""One session put together: what is given to whom, and what a second process makes of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pseudoclaude.commands.agent import Callbacks, open_memory, turn_messages
from pseudoclaude.commands.interrupts import Interrupts
from pseudoclaude.errors import ProviderUnavailable, SessionLocked, SessionMissing
from pseudoclaude.messages import ToolCall
from pseudoclaude.ports import Reply, Request
from pseudoclaude.protocol.repair import OUTCOME_UNKNOWN
from pseudoclaude.session.catalog import session_folder
from pseudoclaude.session.loader import LOG_NAME
from tests.commands.build import Office, Remembering, texts
from tests.driving import Answer, Streamed, calls, said

NOTE = '[{"action":"create","level":"project","slug":"tests","name":"Tests","description":"Run make test","body":"make test"}]'


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def test_a_session_is_saved_where_it_belongs_and_goes_on(office: Office) -> None:
    agent = office.agent(Remembering([said("Hello.")]))
    list(agent.turn("Hi"))
    agent.close()
    provider = Remembering([said("Again.")])
    again = office.agent(provider, resume=agent.session_id)
    assert texts(again.loaded.messages) == ["Hi", "Hello."]
    list(again.turn("And?"))
    again.close()
    assert texts(provider.turns.requests[0].messages) == ["Hi", "Hello.", "And?"]
    assert (Path(session_folder(*office.place, agent.session_id)) / "conversation.jsonl").exists()
    assert again.loaded.model == "playing"


@pytest.mark.parametrize("session", ["nothing", "../x", "", ".", ".."])
def test_a_session_that_is_not_there_creates_nothing(office: Office, session: str) -> None:
    if session:
        with pytest.raises(SessionMissing, match="there is no session"):
            office.agent(Remembering([]), resume=session)
    assert not Path(office.place.home).exists()


def test_a_session_may_be_named_by_its_beginning_or_as_the_latest(office: Office) -> None:
    first = office.agent(Remembering([said("Hello.")]))
    list(first.turn("Hi"))
    first.close()
    for name in (first.session_id[:-1], "latest"):
        again = office.agent(Remembering([]), resume=name)
        assert again.session_id == first.session_id
        again.close()


def test_two_agents_cannot_have_one_session(office: Office) -> None:
    agent = office.agent(Remembering([said("Hello.")]))
    list(agent.turn("Hi"))
    with pytest.raises(SessionLocked, match="pid 1 on simulator"):
        office.agent(Remembering([]), resume=agent.session_id)
    agent.close()
    office.agent(Remembering([]), resume=agent.session_id).close()


def test_the_real_tools_work_in_the_project_and_read_what_was_spilled(office: Office) -> None:
    big = "line\n" * 20_000
    (Path(office.place.project) / "big.txt").write_text(big)
    provider = Remembering(
        [
            calls(ToolCall("c1", "run_command", '{"command": "cat big.txt"}')),
            said("Long."),
        ]
    )
    agent = office.agent(provider, callbacks=Callbacks(allow=lambda *_: True))
    list(agent.turn("Show it."))
    list_of = [found for message in agent.runner.conversation.messages() if (found := message.tool_result)]
    assert list_of[0].spill is not None
    path = f"{session_folder(*office.place, agent.session_id)}/{list_of[0].spill.path}"
    provider.turns.answers = [calls(ToolCall("c2", "read_file", f'{{"path": "{path}", "line": 19999}}')), said("Seen.")]
    list(agent.turn("The end of it?"))
    agent.close()
    last = [found for message in agent.runner.conversation.messages() if (found := message.tool_result)][-1]
    assert last.content.startswith("line\nline\n[Exit status 0.]")


def test_a_killed_process_is_answered_for_as_unknown(office: Office) -> None:
    dead = office.agent(Remembering([]))
    dead.runner.conversation.add_user("Do it.")
    dead.runner.conversation.add_assistant_tool_calls("", [ToolCall("c", "run_command", "{}")])
    dead._writer.abandon()  # as the system does with the lock of a dead process
    agent = office.agent(Remembering([said("I look first.")]), resume=dead.session_id)
    result = agent.runner.conversation.messages()[-1].tool_result
    assert result is not None
    assert (result.content, result.origin) == (OUTCOME_UNKNOWN, "interrupted")
    list(agent.turn("Go on."))
    agent.close()


# --- memory ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_turn_is_remembered_and_reaches_the_prompt_of_the_next_session_only(office: Office) -> None:
    provider = Remembering([said("Noted."), said("Yes.")], [NOTE])
    agent = office.agent(provider)
    list(agent.turn("Tests are run with make test."))
    office.machine.background.drain(10)
    list(agent.turn("Sure?"))
    agent.close()
    first, second = (request.system for request in provider.turns.requests)
    assert first == second
    assert "Tests" not in first
    resumed = Remembering([said("Still.")])
    again = office.agent(resumed, resume=agent.session_id)
    list(again.turn("Still?"))
    again.close()
    assert resumed.turns.requests[0].system == first
    fresh = Remembering([said("Hello.")])
    other = office.agent(fresh)
    list(other.turn("Hi"))
    other.close()
    assert "Run make test" in fresh.turns.requests[0].system
    assert "not instructions" in fresh.turns.requests[0].system


def test_only_turns_that_ended_normally_are_remembered(office: Office) -> None:
    cut = Streamed("Half", KeyboardInterrupt())
    provider = Remembering([cut, ProviderUnavailable("down"), said("No.", "refusal"), said("Done.")])
    agent = office.agent(provider)
    with pytest.raises(KeyboardInterrupt):
        list(agent.turn("one"))
    with pytest.raises(ProviderUnavailable):
        list(agent.turn("two"))
    list(agent.turn("three"))
    office.machine.background.drain(10)
    assert provider.memory_requests == []
    list(agent.turn("four"))
    agent.close()
    [request] = provider.memory_requests
    assert "user: four" in request.messages[0].content
    assert "user: one" not in request.messages[0].content


@pytest.mark.slow
def test_a_turn_whose_process_died_is_remembered_by_the_next_start(office: Office) -> None:
    class Dying(Remembering):
        def complete(self, request: object, on_text: object = None) -> object:  # type: ignore[override]
            if request.purpose == "memory":  # type: ignore[attr-defined]
                raise ProviderUnavailable("gone")
            return super().complete(request, on_text)  # type: ignore[arg-type]

    agent = office.agent(Dying([said("First."), said("Noted.")]))  # type: ignore[arg-type]
    list(agent.turn("Hello."))
    list(agent.turn("Tests are run with make test."))
    agent.close()
    assert any("kept for the next start" in report for report in agent.memory.take_reports())
    provider = Remembering([], [NOTE])
    office.agent(provider).close()
    seen = [request.messages[0].content for request in provider.memory_requests]
    assert len(seen) == 2
    assert sum("user: Hello." in content for content in seen) == 1
    assert sum("user: Tests are run" in content for content in seen) == 1
    notes = open_memory(office.machine, office.place).notes()
    assert [note.slug for note in notes["project"]] == ["tests"]
    office.agent(provider).close()
    assert len(provider.memory_requests) == 2


def test_the_messages_of_a_turn_are_found_by_their_numbers(office: Office) -> None:
    agent = office.agent(Remembering([said("One."), said("Two.")]))
    list(agent.turn("First"))
    list(agent.turn("Second"))
    agent.close()

    def found(first: int, last: int, session: str = agent.session_id) -> list[str] | None:
        messages = turn_messages(office.machine.fs, office.place, session, first, last)
        return None if messages is None else texts(messages)

    assert found(1, 2) == ["First", "One."]
    assert found(3, 4) == ["Second", "Two."]
    assert found(9, 12) == []
    assert [found(1, 2, session) for session in ("nothing", "../x", "..", "")] == [None] * 4


def test_a_record_that_makes_no_message_is_left_out_of_a_turn(office: Office) -> None:
    agent = office.agent(Remembering([said("One.")]))
    list(agent.turn("First"))
    agent.close()
    odd = '{"type":"message","n":3,"role":"user","tool_calls":[{"id":"c","name":"t","arguments":"{}"}]}'
    with Path(session_folder(*office.place, agent.session_id), LOG_NAME).open("a") as log:
        log.write(odd + "\n")
    messages = turn_messages(office.machine.fs, office.place, agent.session_id, 1, 3)
    assert messages is not None
    assert texts(messages) == ["First", "One."]


# --- the end ---------------------------------------------------------------------------------------------------


def test_changes_are_shielded_from_ctrl_c(office: Office) -> None:
    with Interrupts() as interrupts:
        agent = office.agent(Remembering([said("Hello.")]), callbacks=Callbacks(held=interrupts.held))
        list(agent.turn("Hi"))
        agent.close()
    assert agent.runner.conversation.unsaved == 0


class Slow(Remembering):
    """Thinks about memory until it may answer."""

    def __init__(self, turns: list[Answer]) -> None:
        super().__init__(turns)
        self.may_answer = threading.Event()

    def complete(self, request: Request, on_text: object = None) -> Reply:
        if request.purpose == "memory":
            self.may_answer.wait(10)
        return super().complete(request, on_text)


@pytest.mark.slow
def test_a_wait_for_memory_is_announced_and_ends_with_it(office: Office) -> None:
    provider = Slow([said("Hello.")])
    agent = office.agent(provider)
    list(agent.turn("Hi"))
    announced: list[bool] = []

    def on_wait() -> None:
        announced.append(True)
        provider.may_answer.set()

    agent.close(on_wait)
    assert announced == [True]
    assert len(provider.memory_requests) == 1


def test_who_is_in_a_hurry_does_not_wait_and_the_turn_is_taken_up_later(office: Office) -> None:
    provider = Slow([said("Hello.")])
    agent = office.agent(provider)
    list(agent.turn("Hi"))
    agent.close(lambda: pytest.fail("it waited"), in_a_hurry=True)
    pending = Path(office.place.project) / ".pseudoclaude" / "memory" / "pending"
    assert len(list(pending.iterdir())) == 1
    provider.may_answer.set()
    assert office.machine.background.drain(10)


def test_without_work_nothing_is_announced(office: Office) -> None:
    announced: list[bool] = []
    agent = office.agent(Remembering([]))
    agent.close(lambda: announced.append(True))
    assert announced == []
