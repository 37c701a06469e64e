"""Which argument text is a JSON object that every server reads."""

from __future__ import annotations

import pytest

from pseudoclaude.protocol.arguments import DEPTH_MAX, parse_object


@pytest.mark.parametrize(
    "text", ["{}", ' {"a": [1, null, {"b": "c"}]} ', '{"a":1,"a":2}', '{"s":"[[[' + "[" * 500 + '"}']
)
def test_objects(text: str) -> None:
    assert parse_object(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "null",
        "[1]",
        '"x"',
        "{",
        '{"a": ',
        '{"a":NaN}',
        '{"a":1e999}',
        '{"a":"\\ud83d"}',
        '{"a":"\ud83d"}',
        '{"a":' + "9" * 5000 + "}",
    ],
)
def test_everything_else(text: str) -> None:
    assert parse_object(text) is None


def test_the_answer_on_deep_nesting_does_not_depend_on_the_callers_stack() -> None:
    def nested(depth: int) -> str:
        return '{"a":' * depth + "1" + "}" * depth

    assert parse_object(nested(DEPTH_MAX)) is not None
    assert parse_object(nested(DEPTH_MAX + 1)) is None
    assert parse_object(nested(100_000)) is None
