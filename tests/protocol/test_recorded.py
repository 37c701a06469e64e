"""Every recorded request body: what the provider answered with 200 passes ``firm``, what it called a wrong history is reported."""

from __future__ import annotations

import pytest

from tests.protocol.recorded import HISTORY_ERRORS, OTHER_ERRORS, recorded_bodies


def test_every_recorded_body_is_judged() -> None:
    """A guard for the two tests below: they see all recordings, of all three dialects."""
    recorded = recorded_bodies()
    assert len(recorded) >= 185
    assert {each.dialect for each in recorded} == {"anthropic", "openai-chat", "openai-responses"}


def test_what_was_answered_passes_firm() -> None:
    refused = {each.name: each.judged() for each in recorded_bodies() if each.status == 200}
    assert len(refused) >= 150
    assert {name: violations for name, violations in refused.items() if violations} == {}


def test_what_was_refused_for_its_history_is_reported() -> None:
    refused = [
        each
        for each in recorded_bodies()
        if each.status == 400 and any(words in each.answer for words in HISTORY_ERRORS)
    ]
    assert {each.name: sorted({violation.rule for violation in each.judged()}) for each in refused} == {
        "anthropic__messages__plain__err400__dd_trace_py__anthropic_completion_error[0]": ["A05"],
        "openai__chat__plain__err400__pydantic_ai__openai_o1_mini_system_role_developer[0]": ["C02"],
        "openai__responses__plain__err400-reasoning__pydantic_ai__openai_responses_thinking_with_modified_history[1]": [
            "R05"
        ],
    }


@pytest.mark.parametrize("words", list(OTHER_ERRORS))
def test_every_other_refusal_has_a_reason(words: str) -> None:
    """Each reason is needed, and together with the history errors they cover every recorded 400."""
    refused = [each for each in recorded_bodies() if each.status == 400]
    assert any(words in each.answer for each in refused)
    explained = (*OTHER_ERRORS, *HISTORY_ERRORS)
    assert [each.name for each in refused if not any(known in each.answer for known in explained)] == []
