"""Layer 2: a model's summary takes the place of the old part of a history.

The new history is one user message (a reminder that this is a summary, then the summary), the user's latest request if it is not
among the recent messages, and the recent messages word for word.

Promises: a summary is accepted only if it is whole text and saves what the settings ask; else ``SummaryFailed`` says why, in
``kind``, and nothing was changed.  Text of an error never becomes part of a history.  The request carries the session's system
prompt and tools, so that it is valid with tool rounds in it (protocol rule A30) and hits the provider's cache.

Refuses: to send one request more than one plus the retries of the settings, and to retry anything but a request that is too long
(waiting and trying again is the retry policy's part).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from pseudoclaude.compact.rounds import (
    NOTE,
    SUMMARY_NOTE,
    carried_request,
    is_note,
    latest_request,
    newest_rounds,
    select_recent,
    settled_length,
    without_signed,
)
from pseudoclaude.compact.tokens import estimate, overhead
from pseudoclaude.errors import ContextOverflow, ProviderError, SummaryFailed
from pseudoclaude.messages import History, Message
from pseudoclaude.ports import Provider, Reply, Request, ToolSpec
from pseudoclaude.settings import Settings

BOUNDARY = SUMMARY_NOTE

SUMMARY_PROMPT = """\
The context is nearly full. Write a summary that will replace the conversation above; whoever continues the task sees only it, the \
latest request and the last few messages. Answer with text only and call no tools. Use these headings, and leave one out only if it \
would be empty:

## Goal
What the user wants, in their words where they matter, and every constraint or preference they stated.
## Done
What was done and found out, in order; decisions and why they were taken.
## State
Files, commands, names, values and ids that matter now, exactly as written; paths of saved tool results.
## Problems
Errors met, what fixed them, what is still broken.
## Next
What is left, and the very next step."""

_KEPT_SHARE = 4
"""At most a quarter of a history is kept as recent messages, so that a small one can be compacted by hand too."""
_SCRATCH = re.compile(
    r"<(analysis|scratch_?pad|think|thinking|thoughts?|reasoning|reflection|planning)>.*?(?:</\1>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_WRAPPING = re.compile(r"</?[a-z_]+>|^\s*#+ .*$|^\s*```\w*\s*$", re.MULTILINE | re.IGNORECASE)
"""Tags, headings and fences: what may stand around words, and is none."""
_FENCE = re.compile(r"\A```\w*\s*\n(.*)\n```\s*\Z", re.DOTALL)
_CALL_AS_TEXT = re.compile(r"\s*<(tool_call|tool_use|function_calls?|invoke)\b", re.IGNORECASE)


def compact(
    messages: History,
    provider: Provider,
    settings: Settings,
    *,
    system: str = "",
    tools: Sequence[ToolSpec] = (),
    instructions: str = "",
) -> History:
    """Ask ``provider`` for a summary of the old part of ``messages`` and return the new history.  Raises ``SummaryFailed``."""
    settled = messages[: settled_length(messages)]
    ratio = settings.bytes_per_token
    before = estimate(settled, ratio)
    recent = select_recent(
        settled,
        keep_tokens=min(settings.keep_recent_tokens, before // _KEPT_SHARE),
        round_tokens_max=min(settings.compact_at_tokens, before) // 2,
        bytes_per_token=ratio,
    )
    old = settled[: len(settled) - len(recent)]
    if not old:
        raise _failure("no_saving", "there is nothing old enough to summarize")
    summary = _ask(old, provider, settings, system, tuple(tools), instructions)
    new = _compacted(summary, settled, recent, settings)
    after = estimate(new, ratio)
    if after > before * (1 - settings.saving_min_ratio):
        raise _failure("no_saving", f"the summary saves too little ({before:,} tokens would become {after:,})")
    return (*new, *without_signed(messages[len(settled) :]))


def _compacted(summary: str, settled: History, recent: History, settings: Settings) -> History:
    head = [Message("user", f"{BOUNDARY}\n\n{summary}")]
    request = latest_request(settled)
    if request is not None and request < len(settled) - len(recent):
        head.append(carried_request(settled[request], int(settings.keep_recent_tokens * settings.bytes_per_token)))
    return (*head, *without_signed(recent))


# --- the request -----------------------------------------------------------------------------------------------


def _ask(
    old: History, provider: Provider, settings: Settings, system: str, tools: tuple[ToolSpec, ...], instructions: str
) -> str:
    prompt = Message(
        "user", SUMMARY_PROMPT + (f"\n\nThe user asks for this summary: {instructions}" if instructions.strip() else "")
    )
    max_tokens = max(1, min(settings.max_output_tokens, settings.summary_reserve_tokens))
    fixed = overhead(system, tools, settings.bytes_per_token) + estimate([prompt], settings.bytes_per_token)
    room = settings.context_window - max_tokens - fixed
    source = old if estimate(old, settings.bytes_per_token) <= room else _shorter(old, old, room, settings, 0)
    for attempt in range(1 + settings.summary_retries):
        if source is None:
            raise _failure("too_long", "the summary request is too long and cannot be cut any more")
        request = Request((*source, prompt), system=system, tools=tools, max_tokens=max_tokens, purpose="summary")
        try:
            return accepted_summary(provider.complete(request))
        except ContextOverflow as error:
            if attempt == settings.summary_retries:
                raise _failure("too_long", f"the summary request was too long {attempt + 1} times") from error
            source = _shorter(old, source, room, settings, attempt)
        except ProviderError as error:
            raise _failure("provider", f"the summary request failed: {error.what}") from error
    raise AssertionError("the last attempt returns or raises")


def _shorter(old: History, source: History, room: int, settings: Settings, attempt: int) -> History | None:
    """``old`` without more of its oldest rounds than ``source`` lacks; None when there is no round left to drop.

    ``room`` is what the window leaves for messages.  What must go is what is over it and a safety margin that doubles with each
    attempt, but never more than half.  An earlier summary at the start stays: it stands for everything before it.
    """
    pinned = 1 if is_note(old[0]) else 0
    rounds = old[pinned:]
    largest = min(estimate(source, settings.bytes_per_token), room)
    budget = max(largest - (settings.auto_margin_tokens << attempt), largest // 2)
    budget -= estimate(old[:pinned], settings.bytes_per_token)
    dropped_before = 0 if source is old else len(old) - len(source) + 1
    start = newest_rounds(rounds, budget, settings.bytes_per_token, drop_at_least=dropped_before)
    if start >= len(rounds):
        return None
    note = Message(
        "user", f"{NOTE}{start:,} messages from here on were left out of this request because it was too long.]"
    )
    shorter = (*old[:pinned], note, *without_signed(rounds[start:]))
    return shorter if estimate(shorter, settings.bytes_per_token) <= room else None


# --- the answer ------------------------------------------------------------------------------------------------


def accepted_summary(reply: Reply) -> str:
    """The text of a summary.  Raises ``SummaryFailed`` for an answer that is none: a refusal, only a call, cut off, or empty."""
    message = reply.message
    summary = _SCRATCH.sub("", message.content).strip()
    if message.stop == "refusal":
        raise _failure("refusal", "the model refused to write a summary")
    if message.stop in ("max_tokens", "pause_turn", "interrupted"):
        raise _failure("cut_off", f"the summary is not whole (stop reason {message.stop})")
    if (message.tool_calls and not summary) or _is_call_as_text(summary):
        raise _failure("tool_call", "the model called a tool instead of writing a summary")
    if not any(character.isalnum() for character in _WRAPPING.sub("", summary)):
        raise _failure("empty_summary", "the model gave an empty summary")
    return summary


def _is_call_as_text(text: str) -> bool:
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced is not None else text
    if _CALL_AS_TEXT.match(text):
        return True
    if not (text.startswith("{") and text.endswith("}")):
        return False
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return "name" in value and any(key in value for key in ("arguments", "input", "parameters"))


def _failure(kind: str, what: str) -> SummaryFailed:
    return SummaryFailed(
        what,
        kind=kind,
        still_true="The history is as it was",
        do_next="Compact by hand to try again, or start a new session",
    )
