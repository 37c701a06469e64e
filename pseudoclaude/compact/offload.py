"""Layer 1: large tool results leave the context for a file, and a preview stays.  No model is asked.

First every result over its own limit, then, for each assistant turn, the largest of its results until the rest fits, previews
counted.  The file is durable before the preview exists, so a preview never points at nothing.

Promises: a turn of any sizes ends within both limits with the fewest and largest spills (where even all previews together are too
large, their heads shrink); deciding twice changes nothing; when a spill fails the full text stays and is tried again next time.

Refuses: to spill what would not get smaller, to touch a call's arguments, and to decide the sum of a turn whose calls are still open.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from pseudoclaude import text
from pseudoclaude.compact.ledger import ResultTurn
from pseudoclaude.compact.rounds import without_signed
from pseudoclaude.compact.runtime import Runtime
from pseudoclaude.compact.spill import FOLDER, SpillFolder, file_name
from pseudoclaude.errors import SpillFailed
from pseudoclaude.messages import History, Message, Spill, ToolResult
from pseudoclaude.settings import Settings

HEAD_BYTES_MIN = 16
"""A head is never cut below this, so that it is never empty."""


class OffloadResult(NamedTuple):
    """``messages`` is the history to use from now on (the given one when not ``changed``).  ``error`` is the first spill that
    failed, ``failed`` the turns to try again; the other spills were made all the same."""

    messages: History
    changed: bool = False
    offloaded_count: int = 0
    error: SpillFailed | None = None
    failed: tuple[ResultTurn, ...] = ()


def offload_tool_results(messages: History, runtime: Runtime) -> OffloadResult:
    """Spill what is over the limits and not decided yet.  Writes files, changes no conversation and freezes nothing: decisions are
    frozen (``Ledger.settle``) once the history they led to is in place, and until then made again, with the same outcome."""
    if runtime.ledger.nothing_to_decide(messages):
        return OffloadResult(messages)
    runtime.spills.sweep()
    new = list(messages)
    failed: list[ResultTurn] = []
    count, error, first_changed = 0, None, len(new)
    for turn in runtime.ledger.open_turns(messages):
        for index, preview_limit in _plan(messages, turn, runtime.settings, runtime.spills):
            result = _result_of(messages[index])
            try:
                spill = runtime.spills.store(result.call_id, result.content)
            except SpillFailed as failure:
                error = error or failure
                failed += [turn] if turn not in failed else []
                continue
            new[index] = Message("tool", tool_result=_preview(result, spill, runtime.spills, preview_limit))
            count += 1
            first_changed = min(first_changed, index)
    if not count:
        return OffloadResult(messages, error=error, failed=tuple(failed))
    fresh = (*new[: first_changed + 1], *without_signed(new[first_changed + 1 :]))
    return OffloadResult(fresh, True, count, error, tuple(failed))


# --- which ones ------------------------------------------------------------------------------------------------


class _Candidate(NamedTuple):
    """One result of a turn: its place, its size now, and what it would take as a preview with a full head and with the least."""

    place: int
    size: int
    preview_size: int
    preview_size_min: int


def _plan(messages: History, turn: ResultTurn, settings: Settings, spills: SpillFolder) -> list[tuple[int, int]]:
    """What to spill in ``turn``, in order of place, each with the size limit of its preview."""
    total = sum(text.size(_result_of(messages[index]).content) for index in range(turn.start, turn.end))
    candidates = [
        _candidate(index, result, settings, spills)
        for index in range(turn.start, turn.end)
        if (result := _result_of(messages[index])).spill is None
    ]
    useful = [candidate for candidate in candidates if candidate.preview_size_min < candidate.size]
    chosen = [candidate for candidate in useful if candidate.size > settings.result_limit_bytes]
    total -= sum(candidate.size - candidate.preview_size for candidate in chosen)
    if turn.complete:
        rest = [candidate for candidate in useful if candidate.size <= settings.result_limit_bytes]
        for candidate in sorted(rest, key=lambda one: (-one.size, one.place)):
            if total <= settings.turn_results_limit_bytes:
                break
            chosen.append(candidate)
            total -= candidate.size - candidate.preview_size
    excess = max(0, total - settings.turn_results_limit_bytes) if turn.complete else 0
    return sorted((candidate.place, limit) for candidate, limit in _shrunk(chosen, excess))


def _candidate(index: int, result: ToolResult, settings: Settings, spills: SpillFolder) -> _Candidate:
    size = text.size(result.content)
    least = _notice_size(result, size, spills) + HEAD_BYTES_MIN
    full = least - HEAD_BYTES_MIN + max(settings.preview_bytes, HEAD_BYTES_MIN)
    return _Candidate(index, size, max(least, min(full, settings.result_limit_bytes, size - 1)), least)


def _shrunk(chosen: list[_Candidate], excess: int) -> list[tuple[_Candidate, int]]:
    """Preview limits for ``chosen``, together at least ``excess`` bytes below full heads, as far as their least size allows."""
    limits = []
    left = len(chosen)
    for candidate in sorted(chosen, key=lambda one: (one.preview_size - one.preview_size_min, one.place)):
        share = -(-excess // left)
        give = min(share, candidate.preview_size - candidate.preview_size_min)
        limits.append((candidate, candidate.preview_size - give))
        excess -= give
        left -= 1
    return limits


# --- what stays ------------------------------------------------------------------------------------------------


def _preview(result: ToolResult, spill: Spill, spills: SpillFolder, limit: int) -> ToolResult:
    notice = _notice(spills.absolute(spill.path), spill.bytes, spill.sha256)
    head = head_of(result.content, max(HEAD_BYTES_MIN, limit - text.size(notice)))
    return replace(result, content=notice + head, spill=spill)


def head_of(content: str, limit: int) -> str:
    """The beginning of ``content`` in at most ``limit`` bytes: whole lines where they fill half of it, else whole graphemes."""
    lines = text.head(content, limit)
    return lines if 2 * text.size(lines) >= limit else text.cut_graphemes(content, limit)


def _notice(path: str, size: int, digest: str) -> str:
    return (
        f"[A tool result of {size:,} bytes is too large for the context. Its full text is in {path} (SHA-256 {digest}). "
        "Read that file for what is not shown. It begins:]\n"
    )


def _notice_size(result: ToolResult, size: int, spills: SpillFolder) -> int:
    unknown_digest = "0" * 64
    path = spills.absolute(f"{FOLDER}/{file_name(result.call_id, unknown_digest)}")
    return text.size(_notice(path, size, unknown_digest))


def _result_of(message: Message) -> ToolResult:
    assert message.tool_result is not None, "a tool message always holds a result"
    return message.tool_result
