"""The Runner: every way a turn can be interrupted leaves a history that is acceptable, saved, and goes on; see ``tests.driving``."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import closing, nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude import errors
from pseudoclaude.errors import (
    ContextOverflow,
    ContextWindowExceeded,
    NotDurable,
    ProviderError,
    StreamInterrupted,
)
from pseudoclaude.messages import Message, ToolCall, ToolResult, Usage
from pseudoclaude.ports import ToolOutput
from pseudoclaude.protocol.repair import OUTCOME_UNKNOWN
from pseudoclaude.runner import (
    NOT_STARTED,
    Compacted,
    Replied,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from pseudoclaude.settings import Settings
from simulator.disk import DiskFault
from tests.driving import Answer, Driven, Speaking, Streamed, calls, said

STOPPED = KeyboardInterrupt()
LOOK = Speaking("look")


def provider_error(kind: type[ProviderError]) -> ProviderError:
    if kind is StreamInterrupted:
        return StreamInterrupted("The reply was cut off", partial=said("Half an ans", "interrupted"))
    return kind("It failed")


PROVIDER_ERRORS = sorted(
    (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ProviderError)),
    key=lambda kind: kind.__name__,
)


# --- the plain turn --------------------------------------------------------------------------------------------


def test_a_turn_goes_from_words_over_tools_to_words() -> None:
    tool = Speaking("look", "seen")
    driven = Driven(calls("look", text="I look."), said("Done."), tools=[tool])
    events = driven.turn("Look.")
    kinds = [type(event) for event in events]
    assert kinds == [Replied, ToolStarted, ToolFinished, Replied, TurnEnded]
    assert events[-1] == TurnEnded("end_turn", 2)
    assert [message.role for message in driven.history] == ["user", "assistant", "tool", "assistant"]
    assert driven.results() == ["seen"]
    assert driven.remembered == [list(driven.history)]
    driven.assert_settled()


def test_each_request_carries_prompt_tools_and_the_whole_history() -> None:
    driven = Driven(calls("look"), said("Done."), tools=[LOOK], system="Be brief.")
    driven.turn()
    first, second = driven.provider.requests
    assert [len(request.messages) for request in (first, second)] == [1, 3]
    assert all(request.system == "Be brief." and request.tools == (LOOK.spec,) for request in (first, second))


def test_the_usage_of_a_reply_anchors_the_estimate() -> None:
    driven = Driven(said("Done."))
    driven.provider.usage = Usage(70_000, 30)
    driven.turn()
    assert driven.runtime.estimate(driven.history) == 70_030


def test_text_streams_to_whoever_listens() -> None:
    heard: list[str] = []
    Driven(said("Done."), on_text=heard.append).turn()
    assert heard == ["Done."]


# --- interruptions ---------------------------------------------------------------------------------------------


def test_ctrl_c_before_any_text_keeps_the_users_words_only() -> None:
    driven = Driven(STOPPED)
    with pytest.raises(KeyboardInterrupt):
        driven.turn("Hello?")
    assert driven.history == (Message("user", "Hello?"),)
    assert driven.remembered == []
    driven.assert_settled()


def test_ctrl_c_in_the_middle_of_a_stream_keeps_the_text_and_marks_it() -> None:
    driven = Driven(Streamed("Half an ans", STOPPED))
    with pytest.raises(KeyboardInterrupt):
        driven.turn()
    assert driven.history[-1] == said("Half an ans", "interrupted")
    assert driven.remembered == []
    driven.assert_settled()


def test_ctrl_c_inside_a_tool_leaves_its_outcome_unknown_and_says_that_the_next_was_not_run() -> None:
    driven = Driven(calls("look", "stop", "never"), tools=[LOOK, Speaking("stop", STOPPED), Speaking("never")])
    with pytest.raises(KeyboardInterrupt):
        driven.turn()
    assert driven.results() == ["fine", OUTCOME_UNKNOWN, NOT_STARTED]
    origins = [message.tool_result.origin for message in driven.history if message.tool_result]
    assert origins == ["tool", "interrupted", "interrupted"]
    driven.assert_settled()


def test_ctrl_c_at_the_question_means_not_run() -> None:
    def ask(*_: object) -> bool:
        raise KeyboardInterrupt

    tool = Speaking("write", changes=True)
    driven = Driven(calls("write"), tools=[tool], allow=ask)
    with pytest.raises(KeyboardInterrupt):
        driven.turn()
    assert driven.results() == [NOT_STARTED]
    assert tool.runs == []
    driven.assert_settled()


@pytest.mark.parametrize("before", [[], [STOPPED]], ids=["it was answered", "it was interrupted"])
def test_a_call_sent_again_as_it_was_has_not_been_started_again(before: list[BaseException]) -> None:
    again = calls("look")
    tool = Speaking("look", *before) if before else LOOK
    driven = Driven(again, again, tools=[tool])
    if before:
        with pytest.raises(KeyboardInterrupt):
            driven.turn()
    with closing(driven.runner.turn("Again.")) as events:
        for event in events:
            if isinstance(event, ToolStarted) and len(driven.results()) == 1:
                break
    assert driven.results()[1] == NOT_STARTED
    driven.assert_settled()


@pytest.mark.parametrize("answer", [said("Done."), STOPPED, errors.Overloaded("Busy")], ids=["end", "stop", "error"])
def test_the_end_of_a_turn_is_told_however_it_ends(answer: Answer) -> None:
    driven = Driven(answer, settings=Settings(durability="batch"))
    with pytest.raises(type(answer)) if isinstance(answer, BaseException) else nullcontext():
        driven.turn()
    assert driven.turns_ended == 1


@pytest.mark.parametrize("taken", range(1, 8))
def test_a_consumer_may_stop_after_any_event(taken: int) -> None:
    driven = Driven(calls("look", "look"), calls("look"), said("Done."), tools=[LOOK])
    with closing(driven.runner.turn("Do it.")) as events:
        seen = list(itertools.islice(events, taken))
    assert len(seen) == taken
    assert driven.remembered == []
    driven.assert_settled()


def test_what_a_second_ctrl_c_left_open_is_closed_by_the_next_turn() -> None:
    driven = Driven()
    driven.conversation.append(Message("user", "Do it."))
    driven.conversation.append(calls("look", "look"))
    driven.provider.answers = [said("Here.")]
    driven.tools = (LOOK,)
    driven.turn("Are you there?")
    assert driven.results() == [NOT_STARTED, NOT_STARTED]
    driven.assert_settled()


def test_a_message_from_elsewhere_during_a_tool_goes_behind_its_result() -> None:
    class Busy(Speaking):
        def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
            driven.conversation.add_user("By the way.")
            return super().run(arguments)

    driven = Driven(calls("look"), said("Both seen."), tools=[Busy("look")])
    driven.turn()
    assert [(message.role, message.content) for message in driven.history] == [
        ("user", "Do it."),
        ("assistant", ""),
        ("tool", ""),
        ("user", "By the way."),
        ("assistant", "Both seen."),
    ]
    driven.assert_settled()


def test_a_history_that_was_unacceptable_from_the_start_is_mended_before_it_is_sent() -> None:
    driven = Driven(said("Here."), tools=[LOOK])
    for message in (
        said("I begin."),
        calls("look"),
        Message("user", "Hm?"),
        Message("tool", tool_result=ToolResult("x", "y")),
    ):
        driven.conversation.append(message)
    driven.turn("Are you there?")
    assert driven.history[-1] == said("Here.")
    driven.assert_settled()


# --- provider errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PROVIDER_ERRORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("round_before", [False, True], ids=["first request", "after a tool"])
def test_every_provider_error_ends_the_turn_as_itself(kind: type[ProviderError], round_before: bool) -> None:
    failures = [provider_error(kind) for _ in range(6)]
    driven = Driven(*([calls("look")] if round_before else []), *failures, tools=[LOOK])
    with pytest.raises(ContextWindowExceeded if kind is ContextOverflow else kind):
        driven.turn()
    assert driven.remembered == []
    if kind is ContextOverflow:
        driven.runtime.void_anchor()  # what the provider counted stands until something is removed
    driven.assert_settled()


def test_a_cut_stream_keeps_its_partial_text_once() -> None:
    cut = StreamInterrupted("The reply was cut off", partial=said("Half an ans", "interrupted"))
    driven = Driven(Streamed("Half an ans", cut))
    with pytest.raises(StreamInterrupted):
        driven.turn()
    assert [message.content for message in driven.history] == ["Do it.", "Half an ans"]
    driven.assert_settled()


def test_a_provider_that_counts_more_than_we_do_is_asked_once_more_after_a_compaction() -> None:
    driven = Driven(said("A long tale. " * 3_000), said("Another. " * 3_000))
    driven.turn("Tell.")
    driven.turn("More.")
    driven.provider.answers = [ContextOverflow("The request is too long"), said("## Goal\nTales."), said("Here.")]
    events = driven.turn("And now?")
    compacted = [event for event in events if isinstance(event, Compacted)]
    assert len(compacted) == 1
    assert compacted[0].output.triggered_layer2
    assert events[-1] == TurnEnded("end_turn", 1)
    assert driven.history[-1] == said("Here.")
    driven.assert_settled()


# --- the disk --------------------------------------------------------------------------------------------------


def _two_rounds() -> list[Answer]:
    return [calls("look", "look"), calls("look"), said("Done.")]


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("nth", range(1, 10))
def test_a_disk_that_fails_at_any_append_ends_the_turn_and_loses_nothing(call: str, nth: int) -> None:
    fault = DiskFault(call=call, nth=nth, error="EIO", sticky=True, path_suffix=".jsonl")  # type: ignore[arg-type]
    driven = Driven(*_two_rounds(), tools=[LOOK])
    faults = driven.break_disk(fault)
    assert _turn_that_may_fail(driven) == (faults.fired > 0)
    driven.assert_settled()


def _turn_that_may_fail(driven: Driven) -> bool:
    try:
        driven.turn()
    except NotDurable:
        return True
    return False


def test_a_full_disk_ends_the_turn_with_the_history_in_memory() -> None:
    fault = DiskFault(call="write", nth=3, error="ENOSPC", partial=10, sticky=True, path_suffix=".jsonl")
    driven = Driven(*_two_rounds(), tools=[LOOK])
    driven.break_disk(fault)
    with pytest.raises(NotDurable):
        driven.turn()
    assert driven.conversation.unsaved > 0
    assert driven.results() == [NOT_STARTED, NOT_STARTED]
    driven.assert_settled()
    assert driven.conversation.unsaved == 0


@pytest.mark.parametrize(
    ("call", "when"),
    [("write", "before"), ("write", "after"), ("fsync", "before"), ("fsync", "after"), ("stat", "before")],
)
@pytest.mark.parametrize("nth", range(1, 9))
def test_ctrl_c_inside_a_call_to_the_disk(call: str, nth: int, when: str) -> None:
    fault = DiskFault(call=call, nth=nth, exception="KeyboardInterrupt", when=when, path_suffix=".jsonl")  # type: ignore[arg-type]
    driven = Driven(*_two_rounds(), tools=[LOOK])
    faults = driven.break_disk(fault)
    try:
        driven.turn()
    except KeyboardInterrupt:
        assert faults.fired == 1
    else:
        assert faults.fired == 0
    driven.assert_settled()


def test_a_summary_that_cannot_be_saved_ends_the_turn_with_the_summary_in_memory() -> None:
    settings = Settings(context_window=60_000, keep_recent_tokens=2_000)
    driven = Driven(said("A long tale. " * 10_000), said("## Goal\nTales."), settings=settings)
    driven.turn("Tell.")
    driven.break_disk(DiskFault(call="write", nth=2, error="ENOSPC", sticky=True, path_suffix=".jsonl"))
    with pytest.raises(NotDurable):
        driven.turn("More.")
    driven.assert_settled()


# --- any of these, in any order --------------------------------------------------------------------------------

ANSWERS = st.sampled_from(
    [
        said("Done."),
        said(""),
        said("Half", "max_tokens"),
        said("No.", "refusal"),
        calls("look"),
        calls("look", "look", "nothing", text="I look."),
        calls(ToolCall("same", "look", "{"), ToolCall("same", "write", "{}"), stop="max_tokens"),
        calls("stop", "look"),
        Streamed("Half an ans", STOPPED),
        Streamed("Half an ans", StreamInterrupted("Cut", partial=said("Half an ans", "interrupted"))),
        STOPPED,
        errors.Overloaded("Busy"),
        ContextOverflow("Too long"),
    ]
)
FAULTS = st.lists(
    st.builds(
        DiskFault,
        call=st.sampled_from(["write", "fsync", "open", "stat", "fsync_dir"]),
        nth=st.integers(1, 12),
        error=st.sampled_from(["EIO", "ENOSPC"]),
        sticky=st.booleans(),
        partial=st.integers(0, 40),
        path_suffix=st.sampled_from(["", ".jsonl"]),
    ),
    max_size=2,
)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, database=None, max_examples=150)
@given(
    answers=st.lists(ANSWERS, min_size=1, max_size=8),
    faults=FAULTS,
    durability=st.sampled_from(["always", "batch", "off"]),
)
def test_whatever_comes_the_session_goes_on(answers: list[Answer], faults: list[DiskFault], durability: Any) -> None:
    tools = [LOOK, Speaking("write", changes=True), Speaking("stop", STOPPED)]
    driven = Driven(*answers, tools=tools, settings=Settings(durability=durability))
    driven.break_disk(*faults)
    for turn in range(3):
        driven.provider.answers = answers[turn:] or [said("Well.")]
        try:
            driven.turn(f"turn {turn}")
        except (errors.PseudoClaudeError, KeyboardInterrupt, IndexError):
            continue  # IndexError: the model has no more to say, which is an error of a provider as any other
    driven.runtime.void_anchor()
    driven.assert_settled()
