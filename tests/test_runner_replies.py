"""The Runner and what tools and models really give: errors, odd bytes, odd replies, and far too much; see ``tests.driving``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pseudoclaude import errors
from pseudoclaude.compact.manager import PROGRESS
from pseudoclaude.errors import (
    SpillFailed,
)
from pseudoclaude.messages import Message, Native, ToolCall
from pseudoclaude.ports import ToolOutput
from pseudoclaude.runner import (
    CUT_OFF,
    RESULT_BYTES_MAX,
    Compacted,
    Notice,
    TurnEnded,
)
from pseudoclaude.settings import Settings
from simulator.disk import DiskFault
from tests.driving import Answer, Driven, Speaking, calls, said

STOPPED = KeyboardInterrupt()
LOOK = Speaking("look")


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


@pytest.mark.parametrize("returned", [None, "text", {"x": 1}, ToolOutput(5), ToolOutput(None)])  # type: ignore[arg-type]
def test_a_tool_that_returns_something_else_failed(returned: Any) -> None:
    class Odd(Speaking):
        def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
            return returned  # type: ignore[no-any-return]

    driven = Driven(calls("look"), said("Odd."), tools=[Odd("look")])
    driven.turn()
    assert driven.results()[0].startswith("look failed: ")
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


def test_a_long_tool_loop_in_one_turn_is_compacted_between_complete_rounds() -> None:
    settings = Settings(context_window=100_000)
    rounds: list[Answer] = [calls(ToolCall(f"call_{number}", "look", "{}")) for number in range(50)]
    tool = Speaking("look", "x" * 14_000)
    driven = Driven(*rounds, said("Done."), tools=[tool], settings=settings)
    summaries = driven.provider.summarize_with("## Goal\nLook fifty times.")
    events = driven.turn("Look fifty times, and mind the gap.")
    compacted = [event for event in events if isinstance(event, Compacted)]
    assert events[-1] == TurnEnded("end_turn", 51)
    assert len(tool.runs) == 50
    assert len(summaries) == len(compacted) >= 2
    assert all(driven.runtime.fits_window(event.output.after_tokens) for event in compacted)
    assert any("mind the gap" in message.content for message in driven.history)
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
