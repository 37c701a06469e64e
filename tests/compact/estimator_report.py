"""The token estimate against the usage figures of the real recordings: ``python -m tests.compact.estimator_report``.

Two questions.  How far is an estimate of everything, without an anchor, from what the provider counted?  And how far is the anchor
plus an estimate of what came after it, for each pair of requests of which the second continues the first?  Recordings are read from
the shared folder; a request whose text the estimate cannot know (images, documents, histories kept by the server) is listed apart
with the reason.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pseudoclaude.compact import Anchor, estimate_with_anchor
from pseudoclaude.compact.tokens import Prefix, tokens_of_bytes
from pseudoclaude.messages import Usage
from simulator.replies.cassettes import Recorded, load_cassette
from simulator.replies.projection import read_history, system_text
from tests.shared import shared_file

RATIO = 3.5
UNKNOWN_SIZES = ("image", "image_url", "input_image", "document", "input_file", "file", "input_audio")
CUT_TEXT = "<MASSIVE_TEXT_FOR_RATE_LIMIT_TEST>"
SERVER_TOOLS = (
    "server_tool_use",
    "web_search_tool_result",
    "web_search_call",
    "code_execution_tool_result",
    "container_upload",
)


class Request(NamedTuple):
    """One successful request of a recording with what the provider counted for it."""

    file: str
    dialect: str
    body: dict[str, Any]
    usage: Usage
    paused: bool
    reasoned: bool


class Full(NamedTuple):
    """An estimate without anchor against the input tokens that were counted; ``reason`` says why it cannot be judged."""

    file: str
    estimate: int
    counted: int
    reason: str


class Pair(NamedTuple):
    """An anchored estimate of the second of two requests; ``reason`` lists a pair for which no estimate can be right."""

    file: str
    estimate: int
    counted: int
    reason: str

    @property
    def within(self) -> bool:
        """The promise: 10 % or 100 tokens."""
        return abs(self.estimate - self.counted) <= max(100, 0.10 * self.counted)


def read_requests(folder: Path) -> list[list[Request]]:
    """The counted requests of each recording."""
    found = []
    for path in sorted(folder.glob("*.yaml")):
        requests = [
            one for recorded in load_cassette(path).interactions if (one := _request(path.stem, recorded)) is not None
        ]
        found.append(requests)
    return found


def full_estimates(recordings: list[list[Request]]) -> list[Full]:
    return [_full(request) for requests in recordings for request in requests]


def pairs(recordings: list[list[Request]]) -> list[Pair]:
    return [pair for requests in recordings for pair in _pairs(requests)]


def report(recordings: list[list[Request]]) -> str:
    """Both distributions as text."""
    fulls, found = full_estimates(recordings), pairs(recordings)
    judged = sorted(one.estimate / one.counted for one in fulls if not one.reason)
    lines = [
        f"Estimate of everything / input tokens counted, {len(judged)} requests ({len(fulls) - len(judged)} apart):"
    ]
    lines += [f"  {name:>7} {_quantile(judged, share):6.2f}" for name, share in QUANTILES]
    lines += ["", "Apart (text the estimate cannot know):"]
    lines += [f"  {one.estimate:7,} for {one.counted:9,}  {one.reason}: {one.file}" for one in fulls if one.reason]
    errors = sorted(abs(one.estimate - one.counted) for one in found if not one.reason)
    good = sum(1 for one in found if not one.reason and one.within)
    lines += [
        "",
        f"Anchor + what came after it: {good} of {len(errors)} pairs within 10 % or 100 tokens; difference in tokens:",
    ]
    lines += [f"  {name:>7} {_quantile(errors, share):6.0f}" for name, share in QUANTILES]
    lines += [
        f"  outside: {one.estimate:,} for {one.counted:,}: {one.file}"
        for one in found
        if not one.reason and not one.within
    ]
    lines += ["", "Pairs apart, with the reason:"]
    lines += [f"  {one.estimate:7,} for {one.counted:9,}  {one.reason}: {one.file}" for one in found if one.reason]
    return "\n".join(lines) + "\n"


QUANTILES = (
    ("least", 0.0),
    ("10 %", 0.1),
    ("25 %", 0.25),
    ("median", 0.5),
    ("75 %", 0.75),
    ("90 %", 0.9),
    ("most", 1.0),
)


def _quantile(values: list[Any], share: float) -> float:
    return float(values[round(share * (len(values) - 1))]) if values else float("nan")


# --- reading ---------------------------------------------------------------------------------------------------


def _request(file: str, recorded: Recorded) -> Request | None:
    if recorded.dialect is None or recorded.status != 200 or not isinstance(recorded.body, dict):
        return None
    events = list(_events(recorded.reply))
    usage = _usage(events)
    if usage is None or not usage.context_tokens:
        return None
    paused = b'"pause_turn"' in recorded.reply
    reasoned = any(value for event in events for value in _named(event, ("reasoning_tokens", "thinking_tokens")))
    return Request(file, recorded.dialect, recorded.body, usage, paused, reasoned)


def _events(reply: bytes) -> Iterator[dict[str, Any]]:
    """The JSON body, or the JSON of every event of a stream."""
    text = reply.decode("utf-8", "replace").strip()
    chunks = (
        [text] if text.startswith("{") else [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    )
    for chunk in chunks:
        if chunk.startswith("{"):
            yield json.loads(chunk)


def _usage(events: list[dict[str, Any]]) -> Usage | None:
    merged: dict[str, Any] = {}
    for event in events:
        for holder in (event, event.get("message"), event.get("response")):
            if isinstance(holder, dict) and isinstance(holder.get("usage"), dict):
                merged.update({name: value for name, value in holder["usage"].items() if value is not None})
    if not merged:
        return None
    if "prompt_tokens" in merged:
        return Usage(merged["prompt_tokens"], merged.get("completion_tokens", 0))
    return Usage(
        merged.get("input_tokens", 0),
        merged.get("output_tokens", 0),
        merged.get("cache_read_input_tokens", 0),
        merged.get("cache_creation_input_tokens", 0),
    )


def _full(request: Request) -> Full:
    history = read_history(request.dialect, request.body)
    tools = request.body.get("tools") or request.body.get("functions") or []
    fixed = len(system_text(request.dialect, request.body).encode()) + (len(msgspec.json.encode(tools)) if tools else 0)
    total = estimate_with_anchor(history, None, RATIO, overhead_tokens=tokens_of_bytes(fixed, RATIO))
    cut = CUT_TEXT in json.dumps(request.body)
    return Full(request.file, total, _input(request.usage), "text cut out" if cut else _unknown(request.body))


def _input(usage: Usage) -> int:
    return usage.context_tokens - usage.output_tokens


def _unknown(body: dict[str, Any]) -> str:
    if body.get("previous_response_id") or body.get("conversation"):
        return "history kept by the server"
    if body.get("response_format") or body.get("text", {}).get("format", {}).get("schema"):
        return "output schema"
    types = set(_types(body))
    for name in UNKNOWN_SIZES:
        if name in types:
            return name.replace("_", " ")
    hosted = [tool for tool in body.get("tools", ()) if tool.get("type", "function") not in ("function", "custom")]
    return "server tools" if hosted or types & set(SERVER_TOOLS) else ""


def _types(value: Any) -> Iterator[str]:
    return (found for found in _named(value, ("type",)) if isinstance(found, str))


def _named(value: Any, names: tuple[str, ...]) -> Iterator[Any]:
    """Every value under one of ``names`` at any depth."""
    if isinstance(value, dict):
        yield from (value[name] for name in names if name in value)
        for item in value.values():
            yield from _named(item, names)
    elif isinstance(value, list):
        for item in value:
            yield from _named(item, names)


# --- pairs -----------------------------------------------------------------------------------------------------


def _pairs(requests: list[Request]) -> Iterator[Pair]:
    for first, second in pairwise(requests):
        split = _continues(first, second)
        if split is None:
            continue
        items = _items(second)
        before = read_history(second.dialect, _with_items(second, items[:split]))
        whole = read_history(second.dialect, second.body)
        history = (*before, *whole[len(before) :])
        anchor = Anchor(first.usage.context_tokens, Prefix.of(history, len(before)))
        yield Pair(
            second.file, estimate_with_anchor(history, anchor, RATIO), _input(second.usage), _why_apart(first, second)
        )


def _continues(first: Request, second: Request) -> int | None:
    """Where the second request's own part begins: after the first request's items and the model's reply; None if it is another."""
    earlier, later = _items(first), _items(second)
    if (
        first.dialect != second.dialect
        or len(later) <= len(earlier)
        or _shape(later[: len(earlier)]) != _shape(earlier)
    ):
        return None
    end = len(earlier)
    while end < len(later) and _by_model(later[end]):
        end += 1
    return end if end > len(earlier) else None


def _items(request: Request) -> list[Any]:
    value = request.body.get("messages") or request.body.get("input") or []
    return value if isinstance(value, list) else [{"role": "user", "content": value}]


def _with_items(request: Request, items: list[Any]) -> dict[str, Any]:
    return {**request.body, ("messages" if "messages" in request.body else "input"): items}


def _by_model(item: dict[str, Any]) -> bool:
    return item.get("role") == "assistant" or item.get("type") in ("function_call", "reasoning", "web_search_call")


def _shape(items: list[Any]) -> str:
    """Items as text, without cache marks and with a string content as one text block."""
    return json.dumps([{**item, "content": _blocks(item.get("content"))} for item in items], sort_keys=True)


def _blocks(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [
            {k: v for k, v in block.items() if k != "cache_control"} if isinstance(block, dict) else block
            for block in content
        ]
    return content


def _why_apart(first: Request, second: Request) -> str:
    if first.body.get("model") != second.body.get("model"):
        return "another model"
    if json.dumps(first.body.get("tools")) != json.dumps(second.body.get("tools")):
        return "other tools"
    if first.paused:
        return "paused turn"
    unknown = _unknown(second.body)
    if unknown:
        return unknown
    return (
        "dropped thinking"
        if first.reasoned or set(_types(second.body)) & {"thinking", "redacted_thinking", "reasoning"}
        else ""
    )


if __name__ == "__main__":
    sys.stdout.write(report(read_requests(shared_file("cassettes/real"))))
