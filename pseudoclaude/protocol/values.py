"""The values of this package: what a provider would reject, and what a repair did.

Both are plain frozen values: they can be compared, printed, stored and judged later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from pseudoclaude.messages import Message, Native, ToolCall

Profile = Literal["firm", "conservative"]
"""``firm``: what is well supported; to judge whether an input was really broken.  ``conservative``: also what is contradicted or
thinly supported; what a recovered history should pass."""

Dangling = Literal["trim", "answer"]

RepairAction = Literal[
    "insert_user",
    "drop_result",
    "move_result",
    "replace_result",
    "trim_call",
    "answer_call",
    "drop_message",
    "drop_native",
]


class Violation(msgspec.Struct, frozen=True):
    """One reason why a provider would refuse a request: the rule's id, the place (``messages[3].content[0]``), and words."""

    rule: str
    path: str
    message: str


class Repair(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that ``repair`` did.

    ``position`` is the index in the history as it was given.  ``removed`` holds whatever left the history with this step, whole,
    so that nothing disappears unnamed; a moved result is still there and is not in it.
    """

    rule: str
    position: int
    action: RepairAction
    detail: str
    removed: tuple[Message | ToolCall | Native, ...] = ()


Found = tuple[str, str]
"""Path and words of one violation; the rule's id is added by whoever asked the rule."""


class Check(NamedTuple):
    """One rule as a dialect asks it; one that is not firm is asked in the conservative profile only."""

    rule: str
    judge: Callable[[Any], Iterator[Found]]
    firm: bool = True


class Rule(NamedTuple):
    """What is known about one rule, as data; which dialects ask it in which profile stands with their checks.

    ``certainty`` is ``documented``, ``observed``, ``reported once``, ``contradicted`` or ``not verified``, with what limits it.
    ``unchecked`` says why no check asks it; it is empty for a rule that is checked.
    """

    id: str
    summary: str
    repair: str
    certainty: str
    evidence: str
    unchecked: str = ""
