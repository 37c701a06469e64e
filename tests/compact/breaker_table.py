"""What each way to fail costs, and what the user hears: ``python -m tests.compact.breaker_table``.

For each kind of failure a conversation at 170,000 of 200,000 tokens goes through ten turns with automatic compaction, then the user
compacts by hand twice: with the same failing model, and with one that works.
"""

from __future__ import annotations

import sys
import tempfile
from typing import NamedTuple

from pseudoclaude.compact import ManageOutput, Runtime, force_compact, manage_context
from pseudoclaude.conversation import Conversation
from pseudoclaude.errors import (
    AuthenticationFailed,
    ContextOverflow,
    Overloaded,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    StreamInterrupted,
    SummaryFailed,
)
from pseudoclaude.messages import Message, Native, ToolCall, Usage
from pseudoclaude.realworld import RealFileSystem
from tests.compact.build import SUMMARY, ScriptedProvider, said, summary_reply, talk, user

TURNS = 10
Answers = list[Message | ProviderError]

_GOOD = summary_reply()
_TOO_LONG = ContextOverflow("prompt is too long", status=400)
_THINKING = Native("anthropic", "messages", "m", [{"type": "thinking", "thinking": "hm", "signature": "s"}])
_TIMEOUT = ProviderUnavailable("the request timed out", retryable=True)

KINDS: dict[str, Answers] = {
    "provider error 500": [ProviderUnavailable("internal server error", status=500, retryable=True)],
    "key refused 401": [AuthenticationFailed("the key is not valid", status=401)],
    "rate limit 429": [RateLimited("too many requests", status=429, retryable=True)],
    "overload 529": [Overloaded("overloaded", status=529, retryable=True)],
    "timeout": [_TIMEOUT],
    "connection reset": [ProviderUnavailable("connection reset by peer", retryable=True)],
    "stream cut": [StreamInterrupted("the stream was cut", partial=Message("assistant", "## Go", stop="interrupted"))],
    "empty summary": [summary_reply("")],
    "blank summary": [summary_reply("  \n")],
    "only thinking": [Message("assistant", "", native=_THINKING, stop="end_turn")],
    "cut-off summary": [summary_reply("## Goal\nhalf a sent", "max_tokens")],
    "larger than the input": [summary_reply("y" * 700_000)],
    "tool call instead of text": [Message("assistant", "", (ToolCall("c", "read", "{}"),), stop="tool_use")],
    "text and a tool call": [Message("assistant", SUMMARY, (ToolCall("c", "read", "{}"),), stop="tool_use")],
    "refusal": [summary_reply("I cannot help with that.", "refusal")],
    "too long once": [_TOO_LONG, _GOOD],
    "too long twice": [*[_TOO_LONG] * 2, _GOOD],
    "too long three times": [*[_TOO_LONG] * 3, _GOOD],
    "too long four times": [*[_TOO_LONG] * 4, _GOOD],
    "too long always": [_TOO_LONG],
    "success after two failures": [_TIMEOUT, _TIMEOUT, _GOOD],
    "no failure": [_GOOD],
}


class Row(NamedTuple):
    """``requests``: automatic ones in ten turns.  ``failures`` and ``stopped``: the turns (from 1) in which the user was told of a
    failed summary, and that automatic compaction stopped.  ``unchanged``: whether failures left the history as it was.
    ``manual_same``/``manual_good``: outcome of compacting by hand with the failing and with a working model, breaker after it.
    ``words``: what the user was told, word for word, each sentence once."""

    kind: str
    requests: int
    breaker: str
    failures: tuple[int, ...]
    failure_kind: str
    stopped: tuple[int, ...]
    unchanged: bool
    manual_same: str
    manual_good: str
    words: tuple[str, ...] = ()


def row(kind: str, answers: Answers, folder: str) -> Row:
    conversation = Conversation(talk(60))
    runtime = Runtime(fs=RealFileSystem(), session_folder=folder)
    provider = ScriptedProvider(answers)
    outputs: list[ManageOutput] = []
    unchanged = True
    for turn in range(TURNS):
        conversation.append(user(f"turn {turn}"))
        before = conversation.messages()
        if not any(output.triggered_layer2 for output in outputs):
            runtime.record_usage(before, Usage(170_000, 0))
        output = manage_context(conversation, runtime, provider)
        unchanged = unchanged and (output.summary_error is None or conversation.messages() is before)
        outputs.append(output)
        conversation.append(said("done"))
    requests, breaker = len(provider.requests), _state(runtime)
    kinds = [output.summary_error.kind for output in outputs if output.summary_error is not None]
    return Row(
        kind,
        requests,
        breaker,
        tuple(turn for turn, output in enumerate(outputs, 1) if output.summary_error is not None),
        kinds[-1] if kinds else "",
        tuple(turn for turn, output in enumerate(outputs, 1) if output.notice),
        unchanged,
        _manual(conversation, runtime, ScriptedProvider(answers[-1:])),
        _manual(conversation, runtime, ScriptedProvider([_GOOD])),
        _told(outputs),
    )


def _told(outputs: list[ManageOutput]) -> tuple[str, ...]:
    """A failed summary reaches the user as it is, a notice as the Runner's event; in order, each once."""
    words: dict[str, None] = {}
    for output in outputs:
        failed = "" if output.summary_error is None else f"Compaction failed: {output.summary_error}"
        words.update(dict.fromkeys(sentence for sentence in (failed, output.notice) if sentence))
    return tuple(words)


def _manual(conversation: Conversation, runtime: Runtime, provider: ScriptedProvider) -> str:
    conversation.replace_messages("recover", talk(60))
    output = force_compact(conversation, runtime, provider)
    assert output.error is None or isinstance(output.error, SummaryFailed)
    return f"{output.error.kind if output.error is not None else 'compacted'}, {_state(runtime)}"


def _state(runtime: Runtime) -> str:
    return "open" if runtime.breaker_open else "closed"


def table() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return [row(kind, answers, folder) for kind, answers in KINDS.items()]


def render(rows: list[Row]) -> str:
    """The table as text; one line a kind of failure.  Below it, what the user was told in each, word for word."""
    head = (
        "failure",
        "requests",
        "breaker",
        "told: summary failed",
        "told: stopped",
        "history",
        "by hand, same model",
        "by hand, working",
    )
    cells = [head]
    for one in rows:
        told = f"{one.failure_kind} in turns {_turns(one.failures)}" if one.failures else "-"
        kept = "as it was" if one.unchanged else "CHANGED"
        cells.append(
            (
                one.kind,
                str(one.requests),
                one.breaker,
                told,
                _turns(one.stopped),
                kept,
                one.manual_same,
                one.manual_good,
            )
        )
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    sections = [f"{one.kind}\n" + "\n".join(f"    {sentence}" for sentence in one.words) for one in rows if one.words]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], "", "What the user was told:", "", *sections]) + "\n"


def _turns(turns: tuple[int, ...]) -> str:
    return ", ".join(map(str, turns)) or "-"


if __name__ == "__main__":
    sys.stdout.write(render(table()))
