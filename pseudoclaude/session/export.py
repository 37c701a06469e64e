"""Export: a loaded session as JSON lines or as Markdown.  Pure: values in, text out.

The JSON lines are the messages in canonical form, one a line; they load as a log again.  The Markdown is for people: what was said, which
tools were called with what, and what came back, in fences longer than any in the text.
"""

from __future__ import annotations

import re

import msgspec

from pseudoclaude.messages import Message, ToolCall, ToolResult
from pseudoclaude.session.loader import LoadResult

_TICKS = re.compile("`+")
_TITLES = {"user": "User", "assistant": "Assistant"}


def to_jsonl(loaded: LoadResult) -> str:
    """One canonical message a line."""
    return "".join(msgspec.json.encode(message).decode() + "\n" for message in loaded.messages)


def to_markdown(loaded: LoadResult, title: str) -> str:
    """A readable transcript; what was lost is said at its end."""
    parts = [f"# {title}", f"Session `{loaded.id}`" + (f", model `{loaded.model}`" if loaded.model else "")]
    for message in loaded.messages:
        parts += _message(message)
    lost = [finding for finding in loaded.findings if not finding.settled]
    if lost:
        parts.append("## What is not here")
        parts.append("\n".join(f"- byte {finding.offset}: {finding.text}" for finding in lost))
    return "\n\n".join(parts) + "\n"


def _message(message: Message) -> list[str]:
    if message.tool_result is not None:
        return _result(message.tool_result)
    parts = [f"## {_TITLES[message.role]}"]
    if message.content:
        parts.append(message.content)
    if message.stop == "interrupted":
        parts.append("*(interrupted)*")
    return parts + [part for call in message.tool_calls for part in _call(call)]


def _call(call: ToolCall) -> list[str]:
    return [f"Calls `{call.name}`:", _fenced(call.arguments, "json")]


def _result(result: ToolResult) -> list[str]:
    what = "Error" if result.is_error else "Result"
    if result.origin == "interrupted":
        what = "No result"
    more = (
        f" (the first part; all of it, {result.spill.bytes:,} bytes, is in {result.spill.path})" if result.spill else ""
    )
    return [f"{what} of call `{result.call_id}`{more}:", _fenced(result.content)]


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}" if not text.endswith("\n") else f"{fence}{language}\n{text}{fence}"
