"""Every recorded request body: what the provider answered with 200 passes ``firm``, what it called a wrong history is reported."""

from __future__ import annotations

import functools
import json
from typing import Any, NamedTuple

import pytest
import yaml

from pseudoclaude.protocol import Violation, check
from pseudoclaude.protocol.validate import context_of_body
from tests.shared import shared_file

DIALECTS = {
    "/v1/messages": "anthropic",
    "/v1/messages/count_tokens": "anthropic",
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/v1/responses/compact": "openai-responses",
    "/v1/responses/input_tokens": "openai-responses",
}

HISTORY_ERRORS = (
    "does not match the expected shape",
    "without its required following item",
    "does not support 'developer'",
)
"""Words of a 400 that says the history is wrong."""

OTHER_ERRORS = {
    "prompt is too long": "A64: counting tokens is Compact's part, and the recording holds a placeholder instead of the text",
    "maximum context length": "C16: likewise",
    "exceeds the context window": "R20: likewise",
    "Error while downloading": "an address that could not be fetched; nothing in the history says so",
    "'stop' is not supported": "a parameter of the request, not its history",
    "file type you uploaded is not supported": "the type of a file behind an address; nothing in the history says so",
}
"""Words of a 400 that no history decides, each with the reason."""

MODEL_ROLES = {"o1-mini": ["user", "assistant"]}
"""C02 is decided by a table of model abilities, which a caller brings."""


class Recorded(NamedTuple):
    name: str
    dialect: str
    status: int
    body: dict[str, Any]
    answer: str
    context: dict[str, Any]

    def judged(self) -> list[Violation]:
        return check(
            self.dialect, self.body.get("messages", self.body.get("input")), profile="firm", context=self.context
        )


@functools.cache
def _recorded() -> tuple[Recorded, ...]:
    found = []
    for path in sorted(shared_file("cassettes/real").glob("*.yaml")):
        loaded = yaml.load(path.read_bytes(), yaml.CSafeLoader)
        for number, interaction in enumerate(loaded["interactions"]):
            request, response = interaction["request"], interaction["response"]
            address = request["uri"].split("?")[0].split("//")[1].partition("/")[2]
            body = json.loads(request["body"])
            if isinstance(body.get("input"), str):
                body["input"] = [{"role": "user", "content": body["input"]}]
            dialect = next(
                DIALECTS[known] for known in sorted(DIALECTS, key=len, reverse=True) if f"/{address}".endswith(known)
            )
            context = context_of_body(dialect, body)
            if body.get("model") in MODEL_ROLES:
                context["roles"] = MODEL_ROLES[body["model"]]
            answer = str(response["body"].get("string", ""))
            found.append(Recorded(f"{path.stem}[{number}]", dialect, response["status"]["code"], body, answer, context))
    return tuple(found)


def test_every_recorded_body_is_judged() -> None:
    """A guard for the two tests below: they see all recordings, of all three dialects."""
    recorded = _recorded()
    assert len(recorded) >= 185
    assert {each.dialect for each in recorded} == {"anthropic", "openai-chat", "openai-responses"}


def test_what_was_answered_passes_firm() -> None:
    refused = {each.name: each.judged() for each in _recorded() if each.status == 200}
    assert len(refused) >= 150
    assert {name: violations for name, violations in refused.items() if violations} == {}


def test_what_was_refused_for_its_history_is_reported() -> None:
    refused = [
        each for each in _recorded() if each.status == 400 and any(words in each.answer for words in HISTORY_ERRORS)
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
    refused = [each for each in _recorded() if each.status == 400]
    assert any(words in each.answer for each in refused)
    explained = (*OTHER_ERRORS, *HISTORY_ERRORS)
    assert [each.name for each in refused if not any(known in each.answer for known in explained)] == []
