"""``python -m tests.session.cases_table``: every reported fault of a session log, and what must hold for every damage."""

from __future__ import annotations

import sys

from tests.session.cases import REPORTED
from tests.session.damage_cases import MUST

CASES = REPORTED + MUST


def main() -> int:
    """Print the table; 1 when a row does not hold."""
    wrong = 0
    for case in CASES:
        got = case.run()
        holds = got == case.expected
        wrong += not holds
        sys.stdout.write(
            f"{'ok   ' if holds else 'WRONG'} {case.source:<4} {case.given}\n        expected {case.expected}\n"
        )
        sys.stdout.write(f"        got      {got}\n")
    sys.stdout.write(
        f"\n{len(CASES) - wrong} of {len(CASES)} hold; each damaged log was resumed twice with a turn in between\n"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
