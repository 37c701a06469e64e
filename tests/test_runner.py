"""The Runner: every way a turn can be interrupted leaves a history that is acceptable, saved, and goes on; see ``tests.driving``."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import closing

import pytest

from pseudoclaude import errors
from pseudoclaude.compact.manager import PROGRESS
from pseudoclaude.errors import (
    ContextOverflow,
    ContextWindowExceeded,
    NotDurable,
    ProviderError,
    SpillFailed,
    StreamInterrupted,
)
from pseudoclaude.messages import Message, Native, ToolCall, Usage
from pseudoclaude.protocol.repair import OUTCOME_UNKNOWN
from pseudoclaude.runner import (
    CUT_OFF,
    NOT_STARTED,
    RESULT_BYTES_MAX,
    Compacted,
    Notice,
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


# --- tools -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (errors.ToolFailed("there is no file 'x'"), "look failed: there is no file 'x'."),
        (OSError(28, "No space left on device"), "look failed: [Errno 28] No space left on device"),
        (KeyError("path"), "look failed: KeyError: 'path'"),
        (RuntimeError(), "look failed: RuntimeError"),
        (RecursionError("too deep"), "look failed: RecursionError: too deep"),
        (UnicodeEncodeError("utf-8", "\udce9", 0, 1, "surrogates not allowed"), "look failed: UnicodeEncodeError: "),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_a_tool_that_raises_is_an_answer_for_the_model(raised: Exception, words: str) -> None:
    driven = Driven(calls("look"), said("I see."), tools=[Speaking("look", raised)])
    driven.turn()
    assert driven.results()[0].startswith(words)
    assert driven.history[2].tool_result.is_error  # type: ignore[union-attr]
    driven.assert_settled()


def test_an_unknown_tool_is_named_with_the_known_ones() -> None:
    driven = Driven(calls("fly"), said("I cannot."), tools=[LOOK, Speaking("write")])
    driven.turn()
    assert driven.results() == ["There is no tool 'fly'. The tools are: look, write."]
    driven.assert_settled()


@pytest.mark.parametrize("allow", [None, lambda *_: False], ids=["nobody to ask", "the user said no"])
def test_a_tool_that_changes_something_is_refused_without_permission(allow: Callable[..., bool] | None) -> None:
    tool = Speaking("write", changes=True)
    driven = Driven(calls("write", "look"), said("Too bad."), tools=[tool, LOOK], allow=allow)
    driven.turn()
    assert tool.runs == []
    assert driven.results() == [
        "Refused: write changes something, and the user did not allow it. It was not run.",
        "fine",
    ]
    driven.assert_settled()


@pytest.mark.parametrize("arguments", ['{"path": "a', "[1]", "null", "5", "[" * 20_000])
def test_arguments_that_are_no_object_are_told_to_the_model(arguments: str) -> None:
    tool = Speaking("look")
    driven = Driven(calls(ToolCall("c", "look", arguments)), said("Again."), tools=[tool])
    driven.turn()
    assert tool.runs == []
    assert "it was not run" in driven.results()[0]
    driven.assert_settled()


def test_output_of_any_bytes_becomes_text() -> None:
    driven = Driven(calls("look"), said("Odd."), tools=[Speaking("look", b"\x00\xff\xfe caf\xc3\xa9")])
    driven.turn()
    assert driven.results() == ["\x00\ufffd\ufffd café"]
    driven.assert_settled()


@pytest.mark.parametrize("content", ["", "  \n", "\ud83d", "a\x00b"])
def test_odd_results_are_saved_and_can_be_sent(content: str) -> None:
    driven = Driven(calls("look"), said("Odd."), tools=[Speaking("look", content)])
    driven.turn()
    driven.assert_settled()


# --- odd replies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", ["max_tokens", "refusal"])
def test_the_last_call_of_a_reply_that_was_cut_off_is_not_run(stop: str) -> None:
    tool = Speaking("look")
    driven = Driven(calls("look", "look", stop=stop), said("Again."), tools=[tool])  # type: ignore[arg-type]
    driven.turn()
    assert driven.results() == ["fine", CUT_OFF]
    assert len(tool.runs) == 1
    driven.assert_settled()


def test_broken_arguments_of_a_cut_off_reply_can_be_sent_again() -> None:
    broken = calls(ToolCall("c", "look", '{"path": "/etc/pas'), text="I look.", stop="max_tokens")
    driven = Driven(broken, said("Again."), tools=[LOOK])
    driven.turn()
    assert driven.history[1].tool_calls[0].arguments == '{"path": "/etc/pas'
    driven.assert_settled()


@pytest.mark.parametrize("stop", ["refusal", "max_tokens"])
@pytest.mark.parametrize("text", ["", "Half a"])
def test_a_turn_that_did_not_end_by_itself_is_not_remembered(stop: str, text: str) -> None:
    driven = Driven(said(text, stop))  # type: ignore[arg-type]
    assert driven.turn()[-1] == TurnEnded(stop, 1)
    assert driven.remembered == []
    driven.assert_settled()


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_reply_ends_the_turn_and_can_be_sent(text: str) -> None:
    driven = Driven(said(text))
    assert driven.turn()[-1] == TurnEnded("end_turn", 1)
    driven.assert_settled()


@pytest.mark.parametrize("ids", [("same", "same"), ("", ""), ("call_0", "call_0", "call_0")])
def test_repeated_ids_in_one_reply_keep_their_results_apart(ids: tuple[str, ...]) -> None:
    tools = [Speaking(f"t{index}", f"result {index}") for index in range(len(ids))]
    wanted = [ToolCall(one, f"t{index}", "{}") for index, one in enumerate(ids)]
    driven = Driven(calls(*wanted), calls(*wanted), said("Done."), tools=tools)
    driven.turn()
    assert driven.results() == [f"result {index}" for index in range(len(ids))] * 2
    driven.assert_settled()


PAUSED = Message(
    "assistant",
    "Searching.",
    native=Native(
        "anthropic",
        "messages",
        "playing",
        [
            {"type": "text", "text": "Searching."},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        ],
    ),
    stop="pause_turn",
)


def test_a_paused_turn_is_continued_with_the_same_history() -> None:
    driven = Driven(PAUSED, said("Found."))
    assert driven.turn()[-1] == TurnEnded("end_turn", 2)
    assert driven.provider.requests[1].messages[-1] == PAUSED
    driven.assert_settled()


def test_a_paused_turn_that_fails_afterwards_can_be_gone_on_from() -> None:
    driven = Driven(PAUSED, STOPPED)
    with pytest.raises(KeyboardInterrupt):
        driven.turn()
    driven.assert_settled()


# --- bounds ----------------------------------------------------------------------------------------------------


def test_a_turn_that_never_ends_is_stopped_after_the_limit() -> None:
    driven = Driven(*[calls("look")] * 3, tools=[LOOK], settings=Settings(turn_requests_max=3))
    events = driven.turn()
    assert events[-1] == TurnEnded("requests", 3)
    assert isinstance(events[-2], Notice)
    assert driven.remembered == []
    driven.assert_settled()


@pytest.mark.parametrize(
    "content", ["x" * 12_000_000, "é🙂" * 500_000, b"\xff" * 1_500_000], ids=["a", "wide", "bytes"]
)
def test_a_huge_result_never_enters_the_log_in_full(content: str | bytes) -> None:
    driven = Driven(calls("look", "small"), said("Long."), tools=[Speaking("look", content), Speaking("small")])
    driven.turn()
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    first = driven.history[2].tool_result
    assert first is not None
    assert first.spill is not None
    assert first.spill.bytes == len(text.encode())
    assert len(first.content) < 5_000
    assert driven.results()[1] == "fine"
    assert len(driven.log) < 20_000
    assert _file(driven, first.spill.path) == text.encode()
    driven.assert_settled()


def _file(driven: Driven, path: str) -> bytes:
    fd = driven.fs.open(f"{driven.writer.folder}/{path}", "read")
    try:
        return driven.fs.pread(fd, 1 << 30, 0)
    finally:
        driven.fs.close(fd)


def test_a_huge_result_that_cannot_be_spilled_stays_whole_and_stops_the_turn() -> None:
    fault = DiskFault(call="write", error="ENOSPC", sticky=True, path_suffix="spill.tmp")
    content = "x" * (RESULT_BYTES_MAX + 1)
    driven = Driven(calls("look"), tools=[Speaking("look", content)])
    driven.break_disk(fault)
    with pytest.raises(SpillFailed):
        driven.turn()
    assert driven.results() == [content]
    driven.break_disk()
    driven.provider.answers = [said("Now it fits.")]
    driven.turn("Again.")
    assert len(driven.results()[0]) < 5_000
    driven.assert_settled()


def test_progress_is_told_while_compaction_runs() -> None:
    settings = Settings(context_window=60_000, keep_recent_tokens=2_000)
    seen: list[str] = []
    driven = Driven(
        said("A long tale. " * 10_000),
        said("## Goal\nTales."),
        said("Go on."),
        settings=settings,
        on_progress=seen.append,
    )
    driven.turn("Tell.")
    assert [event.text for event in driven.turn("More.") if isinstance(event, Notice)] == []
    assert seen == [PROGRESS]
    driven.assert_settled()


def test_compacting_by_hand_says_what_it_does_and_raises_what_fails() -> None:
    driven = Driven(said("A long tale. " * 3_000), said("## Goal\nTales."))
    driven.turn("Tell.")
    events = list(driven.runner.compact("keep names"))
    assert events[0] == Notice(PROGRESS)
    assert isinstance(events[1], Compacted)
    assert "keep names" in driven.provider.requests[-1].messages[-1].content
    before = driven.history
    driven.provider.answers = [errors.Overloaded("The provider is busy")]
    with pytest.raises(errors.SummaryFailed):
        list(driven.runner.compact())
    assert driven.history == before
    driven.assert_settled()
