"""Every row of the table of cases holds; ``python -m tests.session.cases_table`` prints it."""

import pytest

from tests.session.cases import Case
from tests.session.cases_table import CASES


@pytest.mark.parametrize("case", CASES, ids=[f"{case.source} {case.given}" for case in CASES])
def test_every_row_holds(case: Case):
    assert case.run() == case.expected


def test_every_reported_fault_of_a_log_and_every_row_for_damage_is_there():
    sources = [case.source for case in CASES]
    assert {*sources} == {f"A{n}" for n in (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20)} | {"must"}
    assert sources.count("must") >= 14
