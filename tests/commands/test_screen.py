"""What people see, and what cannot steer their terminal."""

from __future__ import annotations

import pytest

from pseudoclaude.commands.screen import visible
from pseudoclaude.compact import ManageOutput
from pseudoclaude.errors import Overloaded, SummaryFailed
from pseudoclaude.messages import Message, ToolCall, ToolResult
from pseudoclaude.runner import Compacted, Notice, Replied, ToolFinished, ToolStarted, TurnEnded
from tests.commands.build import Shown
from tests.driving import Speaking


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 🙂\n\ttab", "plain é 日本 🙂\n\ttab"),
        ("\x1b[2J", "␛[2J"),
        ("over\rwritten\x08", "over␍written␈"),
        ("\x9b31m\x7f", "<U+009B>31m<U+007F>"),
        ("a\u202eb\u2066c", "a<U+202E>b<U+2066>c"),
        ("\x00", "␀"),
    ],
)
def test_what_would_steer_a_terminal_is_shown_instead(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


def test_text_streams_and_a_line_of_ours_begins_a_new_line() -> None:
    shown = Shown()
    for piece in ("Half ", "a [bold]line[/bold]\x1b"):
        shown.screen.text(piece)
    shown.screen.line("Ours")
    assert shown.text == "Half a [bold]line[/bold]␛\nOurs\n"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Replied(Message("assistant", "x"), None), ""),
        (ToolStarted(ToolCall("c", "read_file", '{"path":\n"a"}')), '● read_file {"path": "a"}\n'),
        (
            ToolFinished(ToolCall("c", "x", ""), ToolResult("c", "one\ntwo\n[Exit status 0.]")),
            "  one  (+2 lines)  [Exit status 0.]\n",
        ),
        (ToolFinished(ToolCall("c", "x", ""), ToolResult("c", "")), "  \n"),
        (Compacted(ManageOutput(9_000, 900, triggered_layer2=True)), "Context compacted: 9,000 to 900 tokens.\n"),
        (Compacted(ManageOutput(9, 9, True, 2)), "2 large tool results were moved to files.\n"),
        (
            Compacted(ManageOutput(9, 9, summary_error=SummaryFailed("busy", kind="provider"))),
            "Compaction failed: busy.\n",
        ),
        (Notice("Look."), "Look.\n"),
        (TurnEnded("end_turn", 1), ""),
        (TurnEnded("max_tokens", 1), "The reply was cut off at the output limit.\n"),
        (TurnEnded("refusal", 1), "The model refused.\n"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_event_is_a_line_or_nothing(event: object, line: str) -> None:
    shown = Shown()
    shown.screen.show(event)  # type: ignore[arg-type]
    assert shown.text == line


def test_a_retry_says_why_and_how_long() -> None:
    shown = Shown()
    shown.screen.retry(Overloaded("The provider is busy"), 2.04)
    assert shown.text == "The provider is busy. Trying again in 2.0 s.\n"


# --- the question ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "allowed", "asked"),
    [(["y"], True, 1), (["YES "], True, 1), (["n"], False, 1), (["", "maybe", "no"], False, 3), ([], False, 1)],
)
def test_a_change_needs_a_clear_yes(answers: list[str], allowed: bool, asked: int) -> None:
    shown = Shown(answers)
    assert shown.screen.allow(Speaking("write"), {}) is allowed
    assert len(shown.answers.prompts) == asked


def test_always_counts_for_this_tool_only() -> None:
    shown = Shown(["a", "n"])
    assert shown.screen.allow(Speaking("write"), {})
    assert shown.screen.allow(Speaking("write"), {})
    assert not shown.screen.allow(Speaking("run"), {})
    assert len(shown.answers.prompts) == 2


def test_the_question_shows_what_it_is_about_and_cannot_be_painted_over() -> None:
    shown = Shown(["n"])
    shown.screen.allow(Speaking("run"), {"command": "rm -rf x\x1b[1A\x1b[2Kls", "number": 5, "long": "y" * 5_000})
    assert "  command: rm -rf x␛[1A␛[2Kls\n  number: 5\n" in shown.text
    assert "[… 1,000 more characters]" in shown.text


def test_ctrl_c_at_the_question_goes_on_up() -> None:
    with pytest.raises(KeyboardInterrupt):
        Shown([KeyboardInterrupt()]).screen.allow(Speaking("write"), {})
