"""Judging a document: a request body or a bare list of wire messages, as bytes, into a report for people and programs.

The document's own bytes decide as much as they can: declared tools, thinking mode, the model's abilities.  A document that cannot be
read is an answer too, never an exception.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from pseudoclaude.protocol.check import DIALECTS, check
from pseudoclaude.protocol.rules import RULES
from pseudoclaude.protocol.values import Profile

_PREFILL = re.compile(
    r"claude-(?:instant|2|3)|claude-[a-z]+-4(?:-[0-5])?(?:-\d{8})?(?:@|$)|claude-[a-z]+-4-[0-5](?:\D|$)"
)
"""Claude models up to 4.5, which continue a final assistant turn (A12)."""

_LISTS = ("messages", "input", "contents")


class ReportedViolation(msgspec.Struct, frozen=True):
    """A violation with what the rule means and how such a history is mended."""

    rule: str
    path: str
    message: str
    meaning: str
    repair: str


class Report(msgspec.Struct, frozen=True):
    """``unreadable`` is the reason why nothing could be judged, or empty; ``messages`` is how many were judged."""

    dialect: str
    profile: Profile
    messages: int
    violations: tuple[ReportedViolation, ...] = ()
    unreadable: str = ""

    @property
    def exit_code(self) -> int:
        """0 valid, 1 violations, 2 unreadable."""
        if self.unreadable:
            return 2
        return 1 if self.violations else 0


def validate_document(text: bytes, dialect: str, profile: Profile = "conservative") -> Report:
    """Judge ``text``: a JSON object with ``messages``, ``input`` or ``contents``, or a JSON list of wire messages.

    Raises ``ValueError`` for an unknown dialect.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"unknown dialect {dialect!r}; known are {', '.join(DIALECTS)}")
    try:
        # json.loads and not msgspec: an escaped lone surrogate is something to report (S01), not something unreadable.
        document = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return Report(dialect, profile, 0, unreadable=f"not JSON in UTF-8: {error}")
    body = document if isinstance(document, dict) else {"messages": document}
    listed = next((body[key] for key in _LISTS if key in body), None)
    if isinstance(listed, str) and dialect == "openai-responses":
        listed = [{"role": "user", "content": listed}]
    if not isinstance(listed, list):
        return Report(
            dialect, profile, 0, unreadable=f"neither a list nor an object with a list under {', '.join(_LISTS)}"
        )
    try:
        found = check(dialect, listed, profile=profile, context=context_of_body(dialect, body))
    except RecursionError:  # what just could be decoded may be too deep to be compared or shown
        return Report(dialect, profile, 0, unreadable="JSON that is nested too deeply to be judged")
    violations = tuple(
        ReportedViolation(
            each.rule, _shown(each.path), _shown(each.message), RULES[each.rule].summary, RULES[each.rule].repair
        )
        for each in found
    )
    return Report(dialect, profile, len(listed), violations)


def _shown(text: str) -> str:
    """Text that can be encoded: a lone surrogate of the document, quoted in a path or in words, as its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def context_of_body(dialect: str, body: dict[str, Any]) -> dict[str, Any]:
    """What a request body itself says about the context of its history."""
    context: dict[str, Any] = {}
    if isinstance(body.get("tools"), list):
        context["tools"] = body["tools"]
    model = body.get("model")
    if isinstance(model, str):
        context["model"] = model
    if isinstance(body.get("store"), bool):
        context["store"] = body["store"]
    if body.get("previous_response_id") is not None or body.get("conversation") is not None:
        context["previous_response"] = {}
    if dialect == "anthropic":
        context |= _anthropic_context(body, model)
    return context


def _anthropic_context(body: dict[str, Any], model: Any) -> dict[str, Any]:
    context: dict[str, Any] = {"prefill": isinstance(model, str) and _PREFILL.match(model) is not None}
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") in ("enabled", "adaptive"):
        context["thinking"] = thinking["type"]
    if _ends_paused(body.get("messages")):
        context["last_stop_reason"] = "pause_turn"
    return context


def _ends_paused(messages: Any) -> bool:
    """A final assistant turn that ends on an unanswered server call can only be a paused one, sent back as it is (A37)."""
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) and last.get("role") == "assistant" else None
    block = content[-1] if isinstance(content, list) and content else None
    return isinstance(block, dict) and block.get("type") == "server_tool_use"
