"""Where a history may be cut, and what must stay whatever is cut.

A round is a user message, or an assistant message with the results of its calls; a paused turn (``pause_turn``) is one round with its
continuation, which holds the results of the provider's own tools.  Every cut here falls between rounds, so a result is never apart
from its call.  The last round is open while calls of it have no result or it is paused; it and all that follows is never cut into.

Messages that Compact itself writes into a history stand at its beginning with the user's latest request behind them, so which message
that request is goes by place alone: no text of a user can be mistaken for a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace

from pseudoclaude.compact.tokens import BYTES_PER_TOKEN, message_bytes, tokens_of_bytes
from pseudoclaude.messages import History, Message
from pseudoclaude.protocol.repair import is_signed
from pseudoclaude.text import cut_graphemes, size

NOTE = "[Context note: "
SUMMARY_NOTE = (
    NOTE
    + "the conversation before this point was compacted into the summary below. It is not the full text of files, errors or tool "
    "results: read them again where a detail matters, and do not rely on file contents you only know from here.]"
)
"""The sentences before a summary, word for word as they are written and as logs have them."""
_DROPPED_NOTE = re.compile(
    re.escape(NOTE)
    + r"[0-9]{1,3}(?:,[0-9]{3})* messages were dropped here because the context window was full; read again what you need\.\]"
)


def settled_length(messages: History) -> int:
    """How many messages stand before the last round if that is open; all of them if every call has its result."""
    if messages and messages[-1].stop == "pause_turn":
        return max(position for position in range(len(messages)) if starts_round(messages, position))
    for position in range(len(messages) - 1, -1, -1):
        calls = len(messages[position].tool_calls)
        if calls:
            after = messages[position + 1 : position + 1 + calls]
            answered = sum(1 for message in after if message.role == "tool")
            return len(messages) if answered == calls else position
    return len(messages)


def starts_round(messages: History, position: int) -> bool:
    """Whether a cut may fall directly before ``messages[position]``."""
    return messages[position].role != "tool" and not (position and messages[position - 1].stop == "pause_turn")


def select_recent(
    messages: History, *, keep_tokens: int = 10_000, round_tokens_max: int = 0, bytes_per_token: float = BYTES_PER_TOKEN
) -> History:
    """The latest whole rounds within ``keep_tokens``: what stays word for word beside a summary.

    An open last round and all after it is left out: it is not the summary's business.  The very last round is kept even when it is
    larger than ``keep_tokens``, up to ``round_tokens_max``: the model may not have seen its results yet.
    """
    settled = settled_length(messages)
    start, total = settled, 0
    for position in range(settled - 1, -1, -1):
        total += message_bytes(messages[position])
        if not starts_round(messages, position):
            continue
        limit = max(keep_tokens, round_tokens_max) if start == settled else keep_tokens
        if tokens_of_bytes(total, bytes_per_token) > limit:
            break
        start = position
    return messages[start:settled]


def newest_rounds(messages: History, budget_tokens: float, bytes_per_token: float, *, drop_at_least: int = 0) -> int:
    """The position from which whole rounds to the end fit in ``budget_tokens``; past ``drop_at_least``.

    At least the last round stays; ``len(messages)`` when even dropping all others is not past ``drop_at_least``.
    """
    starts = [position for position in range(len(messages)) if starts_round(messages, position)]
    if not starts:
        return len(messages)
    chosen, total, end = starts[-1], 0, len(messages)
    for start in reversed(starts):
        total += sum(map(message_bytes, messages[start:end]))
        end = start
        if start < starts[-1] and tokens_of_bytes(total, bytes_per_token) > budget_tokens:
            break
        chosen = start
    later = [start for start in starts if start > drop_at_least]
    return chosen if chosen > drop_at_least else (later[0] if later else len(messages))


def latest_request(messages: History) -> int | None:
    """The position of the user's latest request: the last user message, whatever its text, since notes of Compact have one behind them."""
    for position in range(len(messages) - 1, -1, -1):
        if messages[position].role == "user":
            return position
    return None


def carried_request(message: Message, limit_bytes: int) -> Message:
    """The user's latest request as it stays in a compacted history: whole, or its beginning when it is larger than the limit."""
    if size(message.content) <= limit_bytes:
        return message
    kept = cut_graphemes(message.content, limit_bytes)
    left_out = size(message.content) - size(kept)
    return Message(
        "user", f"{kept}\n[… {left_out:,} more bytes of this request were left out when the context was compacted]"
    )


def is_note(first: Message) -> bool:
    """Whether the first message of a history has, word for word, the sentences that Compact writes there; such a one is kept when
    messages after it are dropped."""
    text = first.content if first.role == "user" else ""
    return text.startswith(f"{SUMMARY_NOTE}\n\n") or _DROPPED_NOTE.fullmatch(text) is not None


def without_signed(messages: Iterable[Message]) -> History:
    """``messages`` behind an edit.  Signed thinking holds only for the exact history it was produced after (protocol rule A45), so the
    provider's own blocks go where they are signed, and with those of a paused turn its continuation's; text and calls stay."""
    kept: list[Message] = []
    lost_paused = False
    for message in messages:
        if message.native is not None and (lost_paused or is_signed(message.native)):
            message = replace(message, native=None)
            lost_paused = message.stop == "pause_turn"
        elif message.role == "assistant":
            lost_paused = False
        kept.append(message)
    return tuple(kept)
