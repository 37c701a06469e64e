"""Every recorded request body, as ``check`` judges it.  ``python -m tests.protocol.recorded`` prints what the provider refused, and the rule or the
reason for each.
"""

from __future__ import annotations

import functools
import json
from typing import Any, NamedTuple

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
    "maximum context length": "C16: counting tokens is Compact's part, as for A64",
    "exceeds the context window": "R20: counting tokens is Compact's part, as for A64",
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
def recorded_bodies() -> tuple[Recorded, ...]:
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


def main() -> None:
    """Print the table."""
    everything = recorded_bodies()
    answered = [each for each in everything if each.status == 200]
    broken = sum(bool(each.judged()) for each in answered)
    print(f"{len(everything)} recorded bodies; {len(answered)} answered with 200, {broken} of them reported in firm")
    for each in everything:
        if each.status != 400:
            continue
        rules = sorted({violation.rule for violation in each.judged()})
        reason = next((why for words, why in OTHER_ERRORS.items() if words in each.answer), "")
        print(f"400  {', '.join(rules) or 'no rule: ' + reason}\n     {each.name}")


if __name__ == "__main__":
    main()
