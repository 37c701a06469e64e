"""``python -m tests.protocol.table`` writes the page of rules and cases into the package."""

from __future__ import annotations

from pathlib import Path

import pseudoclaude.protocol
from pseudoclaude.protocol.table import render
from tests.protocol.mutation import all_cases

PAGE = Path(pseudoclaude.protocol.__file__).with_name("RULES.md")


def page() -> str:
    cases: dict[str, list[tuple[str, bool]]] = {}
    for case in sorted(all_cases(), key=lambda case: case.id):
        cases.setdefault(case.rule, []).append((case.id, case.valid))
    return render(cases)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
