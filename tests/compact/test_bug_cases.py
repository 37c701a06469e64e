"""Faults people really met (shared/bug-cases.md, parts C and D), with the expected value given there.

Each goes through a whole session: writer, conversation and compaction on a simulated disk (on a real one where links matter).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pseudoclaude.compact import Runtime, force_compact, manage_context
from pseudoclaude.compact.rounds import NOTE
from pseudoclaude.compact.tokens import overhead
from pseudoclaude.conversation import Conversation
from pseudoclaude.errors import (
    AuthenticationFailed,
    ContextWindowExceeded,
    InvalidMessage,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    SummaryFailed,
)
from pseudoclaude.memory.operations import validate_operation
from pseudoclaude.messages import History, Message, Native, ToolCall, ToolResult, Usage
from pseudoclaude.ports import ToolSpec
from pseudoclaude.realworld import RealFileSystem
from pseudoclaude.session import SessionWriter, load
from pseudoclaude.settings import Settings
from simulator.disk import SimFileSystem
from simulator.world import SimClock, SimIds
from tests.compact.build import (
    SUMMARY,
    TOOLS,
    ScriptedProvider,
    assert_pairs,
    assert_valid,
    calls,
    content_of,
    result,
    said,
    summary_reply,
    talk,
    user,
)
from tests.driving import Driven, Speaking
from tests.driving import calls as asks_for
from tests.driving import said as says
from tests.replies.build import HELLO, provider

FOLDER = "/home/user/.pseudoclaude/projects/p/sessions/s"
LOG = f"{FOLDER}/conversation.jsonl"
FAMILY = "👩‍👩‍👧"


class Session:
    """A session on a simulated disk that began with ``history``; ``reopened`` is what the next process finds."""

    def __init__(self, history: History = (), settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.fs = SimFileSystem()
        self.writer = self._open()
        self.conversation = Conversation((), self.writer.hooks())
        self.runtime = Runtime(fs=self.fs, session_folder=FOLDER, settings=self.settings)
        for message in history:
            self.conversation.append(message)

    def _open(self) -> SessionWriter:
        return SessionWriter.open(FOLDER, settings=self.settings, fs=self.fs, clock=SimClock(), ids=SimIds(0))

    @property
    def log(self) -> bytes:
        return self.fs.peek(LOG) or b""

    def reopened(self) -> History:
        self.writer.close()
        self.writer = self._open()
        return self.writer.loaded.messages


# --- C. compaction ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        AuthenticationFailed("SECRET the key has expired", status=401),
        RateLimited("SECRET too many requests", status=429, retryable=True),
        ProviderUnavailable("SECRET the request timed out", retryable=True),
        ProviderUnavailable("SECRET connection reset by peer", retryable=True),
    ],
    ids=["401", "429", "timeout", "reset"],
)
def test_35_a_manual_compaction_that_fails_changes_neither_history_nor_file(error: ProviderError) -> None:
    session = Session(talk(20))
    history, log = session.conversation.messages(), session.log
    output = force_compact(session.conversation, session.runtime, ScriptedProvider([error]))
    assert isinstance(output.error, SummaryFailed)
    assert output.error.kind == "provider"
    assert output.error.__cause__ is error
    assert session.conversation.messages() is history
    assert session.log == log
    assert session.reopened() == history
    assert b"SECRET" not in session.log


def _reply_of(dialect: str, body: dict[str, Any]) -> Message:
    """What the real adapter makes of a whole reply."""
    return provider(dialect, json.dumps(body).encode(), stream=False).complete(HELLO).message


_ANTHROPIC = {"type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
_THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}


def _chat(content: str | None) -> Message:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    return _reply_of("openai-chat", {"model": "m", "choices": [choice]})


@pytest.mark.parametrize(
    "empty",
    [
        lambda: _chat(""),
        lambda: _chat("  \n"),
        lambda: _chat(None),
        lambda: _chat("<analysis>only scratch</analysis>"),
        lambda: _reply_of("anthropic", {**_ANTHROPIC, "content": [_THINKING]}),
        lambda: _reply_of("anthropic", {**_ANTHROPIC, "content": []}),
    ],
    ids=["empty", "blank", "null", "scratch", "thinking", "no blocks"],
)
def test_37_an_empty_summary_is_a_failure_and_the_history_stays(empty: Callable[[], Message]) -> None:
    session = Session(talk(20))
    history, log = session.conversation.messages(), session.log
    output = force_compact(session.conversation, session.runtime, ScriptedProvider([empty()]))
    assert isinstance(output.error, SummaryFailed)
    assert output.error.kind == "empty_summary"
    assert (session.conversation.messages(), session.log) == (history, log)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Message("assistant", "", (ToolCall("c", "read", "{}"),), stop="tool_use"), "tool_call"),
        (Message("assistant", SUMMARY, (ToolCall("c", "read", "{}"),), stop="tool_use"), ""),
        (Message("assistant", "## Goal\nRepair the par", stop="max_tokens"), "cut_off"),
    ],
    ids=["a call", "text and a call", "cut off"],
)
def test_38_a_call_fails_text_beside_a_call_is_used_and_a_cut_off_summary_fails(answer: Message, kind: str) -> None:
    session = Session(talk(20))
    history = session.conversation.messages()
    output = force_compact(session.conversation, session.runtime, ScriptedProvider([answer]))
    if kind:
        assert output.summary_error is not None
        assert output.summary_error.kind == kind
        assert session.conversation.messages() is history
    else:
        assert output.error is None
        assert session.conversation.messages()[0].content.endswith(SUMMARY)
        assert ToolCall("c", "read", "{}") not in [call for one in session.reopened() for call in one.tool_calls]


def test_40_fixed_overhead_over_the_threshold_stops_after_three_compactions_without_progress() -> None:
    settings = Settings(  # a threshold of 80 % of the window
        context_window=32_000, summary_reserve_tokens=4_000, auto_margin_tokens=2_400, max_output_tokens=2_000, keep_recent_tokens=2_000
    )  # fmt: skip
    tools = (ToolSpec("fixed", "x" * int(29_000 * 3.5), {}),)
    assert 29_000 <= overhead("", tools) < 29_050
    session = Session(talk(2), settings)
    model, outputs = ScriptedProvider([summary_reply()]), []
    for number in range(10):
        session.conversation.append(user(f"go on {number}"))
        outputs.append(manage_context(session.conversation, session.runtime, model, tools=tools))
        session.conversation.append(said("done " * 200))
    assert len(model.requests) <= 3
    assert [output.breaker_open for output in outputs] == [False, False, *[True] * 8]
    assert [bool(output.notice) for output in outputs] == [False, False, True, *[False] * 7]
    assert isinstance(outputs[-1].error, ContextWindowExceeded)
    assert "32,000" in str(outputs[-1].error)


def test_41_usage_from_before_a_compaction_does_not_trigger_another_also_after_a_reload() -> None:
    session = Session(talk(60))
    session.runtime.record_usage(session.conversation.messages(), Usage(170_000, 0))
    model = ScriptedProvider([summary_reply("- a fact\n" * 300)])
    assert manage_context(session.conversation, session.runtime, model).triggered_layer2
    again = manage_context(session.conversation, session.runtime, model)
    reloaded = Conversation(session.reopened())
    fresh = Runtime(fs=session.fs, session_folder=FOLDER, settings=session.settings)
    after = manage_context(reloaded, fresh, model)
    assert [output.triggered_layer2 for output in (again, after)] == [False, False]
    assert again.before_tokens == after.before_tokens <= 12_000
    assert len(model.requests) == 1


def test_43_a_message_sent_while_the_summary_is_written_is_there_once_in_memory_and_on_disk() -> None:
    session = Session(talk(20))

    def arrive() -> None:
        late = threading.Thread(target=session.conversation.append, args=(user("late"),))
        late.start()
        late.join()

    model = ScriptedProvider([summary_reply()], before=arrive)
    assert force_compact(session.conversation, session.runtime, model).error is None
    texts = [message.content for message in session.conversation.messages()]
    assert texts[0].startswith(NOTE)
    assert texts[-1] == "late"
    assert texts.count("late") == 1
    assert session.reopened() == session.conversation.messages()


def test_44_a_long_tool_loop_in_one_turn_is_compacted_after_complete_pairs() -> None:
    settings = Settings(context_window=100_000, durability="off")
    rounds = [asks_for(ToolCall(f"c{number}", "read", "{}")) for number in range(50)]
    driven = Driven(*rounds, says("All read."), tools=[Speaking("read", "x" * 14_000)], settings=settings)
    summaries = driven.provider.summarize_with(SUMMARY)
    driven.turn("Read all fifty.")
    assert 2 <= len(summaries) <= 6
    turns = [request for request in driven.provider.requests if request.purpose == "turn"]
    assert len(turns) == 51
    assert all("Read all fifty." in [message.content for message in request.messages] for request in turns)
    assert_pairs(driven.history)
    assert driven.saved() == driven.history


# --- D. tool output, Unicode -----------------------------------------------------------------------------------


def test_46_a_lone_surrogate_in_the_log_is_replaced_and_told_and_no_cut_makes_one() -> None:
    session = Session((user("a"),))
    session.writer.close()
    fd = session.fs.open(LOG, "append")
    session.fs.write(fd, b'{"type":"message","role":"user","content":"ok \\ud83d"}\n')
    session.fs.close(fd)
    loaded = load(FOLDER, fs=session.fs)
    assert [message.content for message in loaded.messages] == ["a", "ok \ufffd"]
    assert "utf8" in [finding.kind for finding in loaded.findings]
    for limit in range(400, 460):
        small = Settings(result_limit_bytes=700, preview_bytes=limit)
        cut = Session((user("q"), calls("c"), result("c", FAMILY * 100)), small)
        manage_context(cut.conversation, cut.runtime, ScriptedProvider([summary_reply()]))
        head = content_of(cut.conversation.messages()[2]).split("It begins:]\n")[1]
        assert head
        assert head == FAMILY * (len(head) // len(FAMILY))
        assert cut.reopened() == cut.conversation.messages()


def test_47_surrogates_never_raise_after_a_partial_write_and_memory_equals_disk() -> None:
    session = Session((user("\udce9x"), calls("c1"), result("c1", os.fsdecode(b"\xff"))))
    native = Native("anthropic", "messages", "m", [{"type": "text", "text": "t", "k\ud800": "v\ud800"}])
    session.conversation.append(Message("assistant", "t", native=native))
    kept = session.conversation.messages()
    assert (kept[0].content, content_of(kept[2])) == ("\ufffdx", "\ufffd")
    assert kept[3].native is not None
    assert kept[3].native.payload[0]["k\ufffd"] == "v\ufffd"
    session.log.decode("utf-8")
    assert session.reopened() == kept
    note = validate_operation(
        {"action": "create", "level": "project", "name": "n", "description": "d", "body": "a \ud800 note"}
    )
    assert "a \ufffd note" in note.body


CONTROLS = "".join(map(chr, range(1, 32))) + "\x7f"


@pytest.mark.parametrize("content", ["a\x00b", CONTROLS, "\ufeffa byte order mark", "\u2028\u2029\x85"])
def test_49_control_characters_come_back_exactly(content: str) -> None:
    session = Session((user("q"), calls("c1"), result("c1", content), said("done")))
    kept = session.conversation.messages()
    assert content_of(kept[2]) == content
    assert session.reopened() == kept
    assert_valid(kept)


HOSTILE = ["../../etc/x", "a/b", "C:\\x", "CON", "", "x" * 4_000, "call_1", "CALL_1", "y" * 16 + "1", "y" * 16 + "2"]


def test_50_ids_never_leave_the_folder_or_meet_in_it(tmp_path: Path) -> None:
    settings = Settings(result_limit_bytes=1_000, preview_bytes=100)
    runtime = Runtime(fs=RealFileSystem(), session_folder=tmp_path, settings=settings)
    texts = [f"result {number}\n" * 200 for number in range(len(HOSTILE))]
    answers = [result(one, text) for one, text in zip(HOSTILE, texts, strict=True)]
    conversation = Conversation((user("q"), calls(*HOSTILE), *answers))
    (tmp_path / "elsewhere").write_text("untouched")
    output = manage_context(conversation, runtime, ScriptedProvider([summary_reply()]))
    assert (output.offloaded_count, output.error) == (len(HOSTILE), None)
    spills = [message.tool_result.spill for message in conversation.messages() if message.tool_result is not None]
    names = [Path(spill.path).name for spill in spills if spill is not None]
    assert len({name.casefold() for name in names}) == len(HOSTILE)
    assert max(len(name.encode()) for name in names) <= 255
    assert sorted(os.listdir(tmp_path / "tool-results")) == sorted(names)
    assert [(tmp_path / "tool-results" / name).read_text() for name in names] == texts
    assert (tmp_path / "elsewhere").read_text() == "untouched"
    assert_valid(conversation.messages())


def test_50_a_link_at_the_target_is_not_followed_and_not_overwritten(tmp_path: Path) -> None:
    settings = Settings(result_limit_bytes=1_000, preview_bytes=100)
    history = (user("q"), calls("c"), result("c", "secret\n" * 300))
    victim = tmp_path / "victim"
    victim.write_text("mine")
    session = tmp_path / "s"
    session.mkdir()

    def spilled() -> Path:
        conversation = Conversation(history)
        runtime = Runtime(fs=RealFileSystem(), session_folder=session, settings=settings)
        assert manage_context(conversation, runtime, ScriptedProvider([summary_reply()])).error is None
        kept = conversation.messages()[2].tool_result
        assert kept is not None
        assert kept.spill is not None
        return session / kept.spill.path

    place = spilled()
    place.unlink()
    place.symlink_to(victim)
    other = spilled()
    assert other != place
    assert other.read_text() == "secret\n" * 300
    assert (victim.read_text(), place.is_symlink()) == ("mine", True)


@pytest.mark.parametrize(
    "value",
    [
        {"x": float("nan")},
        {"b": b"\x00"},
        {1: "int key"},
        {"s": {1, 2}},
        {"p": Path("x")},
        {"n": 10**5000},
        json.loads("[" * 900 + "]" * 900),
    ],
    ids=["NaN", "bytes", "int key", "set", "path", "10**5000", "deep"],
)
def test_52_what_json_cannot_hold_is_refused_before_any_byte_is_written(value: Any) -> None:
    session = Session((user("a"),))
    log = session.log
    with pytest.raises(InvalidMessage):
        session.conversation.append(Message("assistant", "t", native=Native("anthropic", "messages", "m", [value])))
    assert session.log == log
    session.conversation.append(said("b"))
    assert session.reopened() == (user("a"), said("b"))


def test_52_two_thousand_nested_lists_are_refused_too() -> None:
    nested: list[Any] = []
    for _ in range(2_000):
        nested = [nested]
    with pytest.raises(InvalidMessage, match="nested deeper"):
        Native("anthropic", "messages", "m", nested)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (b'{"type":"message","role":"user","content":"x","content":"y"}', "y"),
        (b'{"type":"message","role":"user","content":NaN}', ""),
        (b'{"type":"message","role":"user","content":"x","native":' + b"[" * 2_000 + b"]" * 2_000 + b"}", ""),
        (b'{"type":"message","role":"user","content":"x","ts":' + b"9" * 5_000 + b"}", "x"),
    ],
    ids=["duplicate keys", "NaN", "deep", "long number"],
)
def test_52_a_foreign_line_is_read_by_a_fixed_rule_or_is_a_finding(line: bytes, read: str) -> None:
    """Of duplicate keys the last counts; a number that nobody needs is no reason to lose a message."""
    session = Session((user("a"),))
    session.writer.close()
    fd = session.fs.open(LOG, "append")
    session.fs.write(fd, line + b"\n")
    session.fs.close(fd)
    loaded = load(FOLDER, fs=session.fs)
    assert [message.content for message in loaded.messages] == (["a", read] if read else ["a"])
    assert bool(loaded.findings) == (not read)


def test_a_result_and_its_error_flag_survive_the_spill() -> None:
    history = (user("q"), calls("c"), Message("tool", tool_result=ToolResult("c", "x" * 60_000, is_error=True)))
    session = Session(history)
    assert (
        manage_context(session.conversation, session.runtime, ScriptedProvider([summary_reply()]), tools=TOOLS).error
        is None
    )
    (kept,) = [message.tool_result for message in session.reopened() if message.tool_result is not None]
    assert kept.is_error
    assert kept.spill is not None
