"""The rules as a page for people.  Pure: whoever has the cases hands them in, whoever has a disk writes the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pseudoclaude.protocol.check import DIALECTS
from pseudoclaude.protocol.rules import RULES
from pseudoclaude.protocol.values import Rule

HEAD = """# What providers reject

Generated from `rules_*.py`, the checks and the cases by `python -m tests.protocol.table`; do not edit.

Status: `firm` is asked in both profiles, `conservative` only in that one; a rule that no check asks says why. Certainty says how well
the rule is supported. Cases are files of requests with a verdict, the invalid ones first, then the valid ones after a slash;
those named `own-` lie in `tests/protocol/extra_cases.json`, those named `s-` in a shared file beside the checkout.

| rule | status | dialects | certainty | what must hold | how a history is mended | cases |
|---|---|---|---|---|---|---|
"""


def render(cases: Mapping[str, Sequence[tuple[str, bool]]]) -> str:
    """The page; ``cases`` maps a rule's id to its cases as (id, whether the request is valid)."""
    return HEAD + "".join(_row(rule, cases.get(rule.id, ())) for rule in RULES.values())


def _row(rule: Rule, cases: Sequence[tuple[str, bool]]) -> str:
    asked = [
        (name, check.firm) for name, dialect in DIALECTS.items() for check in dialect.checks if check.rule == rule.id
    ]
    status = "firm" if all(firm for _, firm in asked) else "conservative"
    status = f"not checked: {rule.unchecked}" if rule.unchecked else status
    names = "all" if len(asked) == len(DIALECTS) else ", ".join(name for name, _ in asked)
    invalid = " ".join(name for name, valid in cases if not valid)
    valid = " ".join(name for name, valid in cases if valid)
    listed = f"{invalid} / {valid}" if valid else invalid
    cells = (rule.id, status, names or "-", rule.certainty, rule.summary, rule.repair, listed or "none")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
