"""Every case gets its verdict, in both profiles, through the front door; every rule has a case or a line why not."""

from __future__ import annotations

import pytest

from pseudoclaude.protocol import check
from pseudoclaude.protocol.rules import RULES
from tests.protocol.cases import OWN_CASES, Case, read_cases
from tests.protocol.mutation import PROFILES, all_cases, checked_rules, fails, matrix
from tests.shared import shared_file, shared_folder

LARGE = 1_000_000
"""Cases with so many characters or messages are slow to judge."""


def _marked(cases: list[Case]) -> list[object]:
    large = [pytest.mark.slow]
    return [pytest.param(case, id=case.id, marks=large if _size(case) > LARGE else []) for case in cases]


def _size(case: Case) -> int:
    return 20 * len(case.messages) + sum(len(str(message)) for message in case.messages[:100])


@pytest.mark.parametrize("case", _marked(all_cases()))
def test_every_case_gets_its_verdict(case: Case) -> None:
    for profile in PROFILES:
        reported = {
            violation.rule for violation in check(case.provider, case.messages, profile=profile, context=case.context)
        }
        assert (case.rule in reported) == case.expected(profile), (profile, reported)
        assert reported == set() or not case.valid


def test_the_shared_cases_are_all_there() -> None:
    cases = read_cases(shared_file("protocol-cases.json"))
    assert (len(cases), sum(case.valid for case in cases)) == (125, 33)


def test_every_rule_is_checked_or_says_why_not() -> None:
    checked = set(checked_rules())
    assert {rule.id for rule in RULES.values() if not rule.unchecked} == checked


@pytest.mark.slow
@pytest.mark.skipif(shared_folder() is None, reason="most rules have their case in the shared folder")
def test_each_rule_disabled_in_turn_makes_a_case_fail() -> None:
    assert [rule for rule, noticed in matrix(all_cases()).items() if not noticed] == []


def test_the_mutation_check_itself_can_tell() -> None:
    """No case fails with all rules on, and an own case fails when its rule is off."""
    case = next(case for case in read_cases(OWN_CASES) if case.id == "own-an-12")
    assert not fails(case)
    assert fails(case, {"A33"})
