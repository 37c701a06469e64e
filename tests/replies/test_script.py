"""The ``provider:`` part of a scenario: what is accepted, and how a mistake in it is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from simulator.replies.script import Fail, ProviderSpec, in_disorder
from tests.replies.build import spec

MISTAKES = [
    ({"script": [{"txt": "a"}]}, "unknown field `txt` - at `$.script[0]`"),
    ({"script": [{"text": 1}]}, "at `$.script[0].text`"),
    ({"script": [{"usage": {"input_tokens": 1, "output_tokens": 1, "cached": 1}}]}, "at `$.script[0].usage`"),
    ({"script": [{"tool_calls": [{"id": "a"}]}]}, "missing required field `name` - at `$.script[0].tool_calls[0]`"),
    ({"script": [{"fail": {}}]}, "not none - at `$.script[0].fail`"),
    ({"script": [{"fail": {"status": 529, "kind": "quota"}}]}, "not status and kind"),
    ({"script": [{"fail": {"status": 200}}]}, "a failure has a status from 400 to 599"),
    ({"script": [{"fail": {"kind": "tired"}}]}, "at `$.script[0].fail.kind`"),
    ({"script": [{"fail": {"cut_after_events": -1}}]}, "cannot be negative"),
    ({"script": [{"fail": {"repeat_event": -1}}]}, "fail.repeat_event is -1; it cannot be negative"),
    ({"script": [{"fail": {"repeat_event": 1, "swap_events": 1}}]}, "not repeat_event and swap_events"),
    ({"script": [{}], "fault": {"after_events": 1}}, "fault is for a cassette"),
    ({"cassette": "a.yaml", "fault": {"after_events": -1}}, "after_events and request cannot be negative"),
    ({"script": [{}], "cassette": "a.yaml"}, "a script or a cassette, not both"),
]


@pytest.mark.parametrize(("value", "sentence"), MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_a_mistake_is_one_line_with_its_path(value: dict[str, Any], sentence: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, ProviderSpec)
    assert sentence in str(caught.value)


def test_arguments_are_an_object_or_any_text() -> None:
    calls = [
        {"id": "a", "name": "t", "arguments": {"p": "é"}},
        {"id": "b", "name": "t", "arguments": '{"half'},
        {"id": "c", "name": "t"},
    ]
    entry = spec({"tool_calls": calls}).script[0]
    assert [call.arguments for call in entry.calls] == ['{"p":"é"}', '{"half', "{}"]
    assert entry.ending == "tool_use"


def test_what_an_entry_leaves_out() -> None:
    entry = spec({}).script[0]
    assert (entry.spoken, entry.calls, entry.count, entry.ending) == ("", (), None, "end_turn")


def test_an_empty_reply_says_nothing_whatever_else_stands_there() -> None:
    entry = spec({"text": "a", "tool_calls": [{"id": "a", "name": "t"}], "fail": {"kind": "empty"}}).script[0]
    assert (entry.spoken, entry.calls, entry.ending) == ("", (), "end_turn")


@pytest.mark.parametrize(
    ("fail", "sent"),
    [
        ({"repeat_event": 0}, "aabc"),
        ({"repeat_event": 2}, "abcc"),
        ({"swap_events": 0}, "bac"),
        ({"swap_events": 1}, "acb"),
    ],
)
def test_events_in_disorder(fail: dict[str, int], sent: str) -> None:
    assert "".join(in_disorder(msgspec.convert(fail, Fail), "abc")) == sent
