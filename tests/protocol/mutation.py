"""Each rule disabled in turn: which cases notice?  ``python -m tests.protocol.mutation`` prints the matrix."""

from __future__ import annotations

from collections.abc import Collection

from pseudoclaude.protocol.check import DIALECTS, judge
from pseudoclaude.protocol.context import context_of
from pseudoclaude.protocol.values import Profile
from tests.protocol.cases import OWN_CASES, Case, read_cases
from tests.shared import shared_folder

PROFILES: tuple[Profile, ...] = ("firm", "conservative")


def checked_rules() -> list[str]:
    """Every rule that some dialect asks, in the order of the ids."""
    rules = {check.rule for dialect in DIALECTS.values() for check in dialect.checks}
    return sorted(rules, key=lambda rule: ("ACRXS".index(rule[0]), rule))


def all_cases() -> list[Case]:
    """The project's own cases, and the shared ones where they are present."""
    folder = shared_folder()
    return read_cases(OWN_CASES) + (read_cases(folder / "protocol-cases.json") if folder is not None else [])


def fails(case: Case, without: Collection[str] = ()) -> bool:
    """Whether the verdict on a case is wrong in a profile."""
    dialect, context = DIALECTS[case.provider], context_of(case.context)
    for profile in PROFILES:
        reported = {violation.rule for violation in judge(dialect, case.messages, profile, context, without)}
        if (case.valid and reported) or (case.rule in reported) != case.expected(profile):
            return True
    return False


def matrix(cases: list[Case]) -> dict[str, list[str]]:
    """For each checked rule the cases that fail without it; only cases of that rule can."""
    return {rule: [case.id for case in cases if case.rule == rule and fails(case, {rule})] for rule in checked_rules()}


def main() -> None:
    found = matrix(all_cases())
    for rule, noticed in found.items():
        print(f"{rule}  {'caught by ' + ', '.join(noticed) if noticed else 'NOT CAUGHT'}")
    caught = sum(bool(noticed) for noticed in found.values())
    print(f"{caught} of {len(found)} disabled rules are caught")


if __name__ == "__main__":
    main()
