"""Bounding the context before each request: layer 1, estimate, threshold, breaker, layer 2, and the window's edge.

Promises: the cost of a check with nothing to do does not grow with the history; the conversation is changed only by whole
replacements, and what is appended meanwhile is kept; after three automatic failures in a row no model is asked any more, the user is
told once, and a full window is an error or, by setting, costs the oldest rounds.  Whatever went wrong is in ``ManageOutput.error``.

Passes on: errors of the conversation's hooks (the log could not be written) and anything that is no ``ProviderError``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pseudoclaude.compact.offload import OffloadResult, offload_tool_results
from pseudoclaude.compact.rounds import (
    NOTE,
    carried_request,
    is_note,
    latest_request,
    newest_rounds,
    settled_length,
    without_signed,
)
from pseudoclaude.compact.runtime import Runtime
from pseudoclaude.compact.summarize import compact
from pseudoclaude.compact.tokens import estimate
from pseudoclaude.conversation import Conversation, ReplaceReason
from pseudoclaude.errors import CompactError, ContextWindowExceeded, SpillFailed, SummaryFailed
from pseudoclaude.messages import History, Message
from pseudoclaude.ports import Provider, ToolSpec

PROGRESS = "Compacting the context…"


class ManageOutput(NamedTuple):
    """What one check did.

    ``before_tokens``/``after_tokens``: estimates of the next request.  ``offloaded_count``: results spilled now.  ``dropped_count``:
    messages dropped because the window was full and the settings say so.  ``error``: the spill that failed, else the full window, else
    the summary that failed.  ``notice``: a sentence for the user, set once when the breaker opens and when something was dropped.
    """

    before_tokens: int
    after_tokens: int
    triggered_layer1: bool = False
    offloaded_count: int = 0
    triggered_layer2: bool = False
    breaker_open: bool = False
    dropped_count: int = 0
    error: CompactError | None = None
    summary_error: SummaryFailed | None = None
    notice: str = ""

    @property
    def must_stop(self) -> bool:
        """True when the next request must not be sent: a spill failed, or the window is full.  A summary that failed while there
        is room is to be told, not to stop for."""
        return isinstance(self.error, SpillFailed | ContextWindowExceeded)


def manage_context(
    conversation: Conversation,
    runtime: Runtime,
    provider: Provider,
    *,
    tools: Sequence[ToolSpec] = (),
    system: str = "",
    on_progress: Callable[[str], None] | None = None,
) -> ManageOutput:
    """Bring the conversation under its limits before a request.  ``tools`` and ``system`` are those of that request."""
    messages = conversation.messages()
    before = runtime.estimate(messages, system, tools)
    layer1 = _offload(conversation, runtime, messages)
    current = runtime.estimate(conversation.messages(), system, tools) if layer1.changed else before
    output = ManageOutput(
        before, current, layer1.changed, layer1.offloaded_count, breaker_open=runtime.breaker_open, error=layer1.error
    )
    if current < runtime.threshold_tokens:
        return output
    if not runtime.breaker_open:
        output = _compact_automatically(conversation, runtime, provider, system, tools, on_progress, output)
    output = _at_the_edge(conversation, runtime, system, tools, output)
    notices = [part for part in (output.notice, runtime.notice_once()) if part]
    return output._replace(breaker_open=runtime.breaker_open, notice=" ".join(notices))


def force_compact(
    conversation: Conversation,
    runtime: Runtime,
    provider: Provider,
    *,
    instructions: str = "",
    tools: Sequence[ToolSpec] = (),
    system: str = "",
    on_progress: Callable[[str], None] | None = None,
) -> ManageOutput:
    """Compact because the user asked: no layer 1, no threshold, no breaker.  A success closes the breaker, a failure does not count."""
    before = runtime.estimate(conversation.messages(), system, tools)
    output = ManageOutput(before, before, breaker_open=runtime.breaker_open)
    if on_progress is not None:
        on_progress(PROGRESS)
    try:
        _summarize(conversation, runtime, provider, system, tools, instructions)
    except SummaryFailed as failure:
        return output._replace(error=failure, summary_error=failure)
    runtime.record_success()
    after = runtime.estimate(conversation.messages(), system, tools)
    return output._replace(after_tokens=after, triggered_layer2=True, breaker_open=False)


def _offload(conversation: Conversation, runtime: Runtime, messages: History) -> OffloadResult:
    """Layer 1, put in place; only then are its decisions frozen."""
    result = offload_tool_results(messages, runtime)
    if not result.changed or _replace(conversation, runtime, "snapshot", messages, result.messages):
        runtime.ledger.settle(result.messages, result.failed)
    return result


def _compact_automatically(
    conversation: Conversation,
    runtime: Runtime,
    provider: Provider,
    system: str,
    tools: Sequence[ToolSpec],
    on_progress: Callable[[str], None] | None,
    output: ManageOutput,
) -> ManageOutput:
    if on_progress is not None:
        on_progress(PROGRESS)
    try:
        _summarize(conversation, runtime, provider, system, tools, "")
    except SummaryFailed as failure:
        runtime.record_failure(failure)
        return output._replace(error=output.error or failure, summary_error=failure)
    after = runtime.estimate(conversation.messages(), system, tools)
    output = output._replace(after_tokens=after, triggered_layer2=True)
    if after < runtime.threshold_tokens:
        runtime.record_success()
        return output
    useless = SummaryFailed(
        f"the context was compacted and is still at {after:,} tokens, over the threshold of {runtime.threshold_tokens:,}",
        kind="no_saving",
        still_true="The summary is in place; system prompt, tools and kept messages take the rest",
        do_next="Use fewer tools, a shorter system prompt or a model with a larger window",
    )
    runtime.record_failure(useless)
    return output._replace(error=output.error or useless, summary_error=useless)


def _summarize(
    conversation: Conversation,
    runtime: Runtime,
    provider: Provider,
    system: str,
    tools: Sequence[ToolSpec],
    instructions: str,
) -> None:
    messages = conversation.messages()
    compacted = compact(messages, provider, runtime.settings, system=system, tools=tools, instructions=instructions)
    if not _replace(conversation, runtime, "compact", messages, compacted):
        raise SummaryFailed(
            "the history was replaced by someone else while the summary was written",
            kind="provider",
            still_true="The other replacement stands, the summary was dropped",
        )


def _replace(conversation: Conversation, runtime: Runtime, reason: ReplaceReason, old: History, new: History) -> bool:
    """Replace.  The usage of the old history is forgotten first, so also when the hook then fails."""
    runtime.void_anchor()
    return conversation.replace_prefix(reason, old, new)


# --- a full window ---------------------------------------------------------------------------------------------


def _at_the_edge(
    conversation: Conversation, runtime: Runtime, system: str, tools: Sequence[ToolSpec], output: ManageOutput
) -> ManageOutput:
    """What is left to do when the next request does not fit the window and compaction did not help."""
    settings = runtime.settings
    if runtime.fits_window(output.after_tokens):
        return output
    if settings.when_full == "drop_oldest":
        dropped = _drop_oldest(conversation, runtime, output.after_tokens)
        after = runtime.estimate(conversation.messages(), system, tools)
        output = output._replace(after_tokens=after, dropped_count=dropped)
        if dropped:
            output = output._replace(
                notice=f"The context window was full: the {dropped:,} oldest messages were dropped from it."
            )
        if runtime.fits_window(after):
            return output
    if isinstance(output.error, SpillFailed):
        return output
    full = ContextWindowExceeded(
        f"the next request needs about {output.after_tokens:,} tokens and {runtime.reply_tokens:,} for the reply; the window is "
        f"{settings.context_window:,}",
        still_true="Nothing was sent, and the session log has everything",
        do_next="Compact by hand, start a new session, use a model with a larger window, or set when_full to drop_oldest",
    )
    full.__cause__ = output.summary_error or runtime.last_failure
    return output._replace(error=full)


def _drop_oldest(conversation: Conversation, runtime: Runtime, current: int) -> int:
    """Drop the oldest rounds until the threshold is reached by estimate; returns how many messages went."""
    settings, messages = runtime.settings, conversation.messages()
    ratio = settings.bytes_per_token
    settled = messages[: settled_length(messages)]
    pinned = 1 if settled and is_note(settled[0]) else 0
    rounds = settled[pinned:]
    excess = current - runtime.threshold_tokens
    start = newest_rounds(rounds, estimate(rounds, ratio) - excess, ratio, drop_at_least=0)
    if start >= len(rounds):
        return 0
    note = Message(
        "user",
        f"{NOTE}{start:,} messages were dropped here because the context window was full; read again what you need.]",
    )
    head = [*settled[:pinned], note]
    request = latest_request(rounds)
    if request is not None and request < start:
        head.append(carried_request(rounds[request], int(settings.keep_recent_tokens * ratio)))
    kept = without_signed((*rounds[start:], *messages[len(settled) :]))
    replaced = _replace(conversation, runtime, "compact", messages, (*head, *kept))
    return start if replaced else 0
