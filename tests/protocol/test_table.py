"""The generated page is up to date and lists every rule once."""

from __future__ import annotations

from pseudoclaude.protocol.rules import RULES
from tests.protocol.table import PAGE, page
from tests.shared import shared_file


def test_the_page_is_up_to_date() -> None:
    shared_file("protocol-cases.json")
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.protocol.table"


def test_every_rule_has_its_row() -> None:
    rows = [line.split(" | ")[0].removeprefix("| ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    assert [row for row in rows if row in RULES] == list(RULES)
    assert len(RULES) == 121
