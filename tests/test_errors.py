"""Errors say what happened, where, what is still true and what to do next, and say it again in another process."""

from __future__ import annotations

import inspect
import pickle

import pytest

from pseudoclaude import errors
from pseudoclaude.errors import (
    ContextOverflow,
    InvalidOperation,
    MemoryFailed,
    NotDurable,
    ProviderError,
    PseudoClaudeError,
    StreamInterrupted,
    SummaryFailed,
    listing,
)
from pseudoclaude.messages import Message, Native

WHAT, WHERE, TRUE, NEXT = "the disk is full", "/s/log", "Nothing was written", "Free some space"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "the disk is full."),
        ({"where": WHERE}, "the disk is full (/s/log)."),
        ({"still_true": TRUE}, "the disk is full. Nothing was written."),
        ({"do_next": NEXT}, "the disk is full. Free some space."),
        (
            {"do_next": NEXT, "still_true": TRUE, "where": WHERE},
            "the disk is full (/s/log). Nothing was written. Free some space.",
        ),
        ({"still_true": TRUE + ".", "do_next": NEXT + "."}, "the disk is full. Nothing was written. Free some space."),
    ],
)
def test_the_four_parts_stand_in_order_and_only_those_that_say_something(parts: dict[str, str], text: str) -> None:
    error = PseudoClaudeError(WHAT, **parts)
    assert str(error) == text
    assert error.what == WHAT
    for name in ("where", "still_true", "do_next"):
        assert getattr(error, name) == parts.get(name, "")


PARTIAL = Message("assistant", "half", native=Native("p", "a", "m", [{"x": 1}]), stop="interrupted")
WITH_FACTS: list[tuple[PseudoClaudeError, dict[str, object]]] = [
    (NotDurable(WHAT, unsaved=3, where=WHERE, still_true=TRUE, do_next=NEXT), {"unsaved": 3}),
    (SummaryFailed(WHAT, kind="cut_off", where=WHERE, still_true=TRUE, do_next=NEXT), {"kind": "cut_off"}),
    (
        ProviderError(WHAT, status=529, retryable=True, retry_after=1.5, where=WHERE, still_true=TRUE, do_next=NEXT),
        {"status": 529, "retryable": True, "retry_after": 1.5},
    ),
    (
        ContextOverflow(WHAT, where=WHERE, still_true=TRUE, do_next=NEXT),
        {"status": None, "retryable": False, "retry_after": None},
    ),
]


@pytest.mark.parametrize(("error", "facts"), WITH_FACTS)
def test_an_error_with_facts_keeps_them_beside_the_four_parts(
    error: PseudoClaudeError, facts: dict[str, object]
) -> None:
    assert str(error) == "the disk is full (/s/log). Nothing was written. Free some space."
    assert {name: getattr(error, name) for name in facts} == facts


def test_an_interrupted_stream_keeps_what_arrived() -> None:
    error = StreamInterrupted("the stream stopped", partial=PARTIAL, where="messages", cause="The connection was reset")
    assert error.partial is PARTIAL
    assert error.retryable
    assert str(error) == (
        "the stream stopped (messages). The text that arrived is kept and marked interrupted. The connection was reset."
    )


@pytest.mark.parametrize(
    "error",
    [
        PseudoClaudeError(WHAT, where=WHERE),
        *(error for error, _ in WITH_FACTS),
        StreamInterrupted("the stream stopped", partial=PARTIAL, cause="reset"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_whole_from_another_process(error: PseudoClaudeError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]


def test_there_is_one_tree_and_each_class_says_what_is_true_in_words_of_its_own() -> None:
    assert len(CLASSES) > 20
    assert [kind for kind in CLASSES if not issubclass(kind, PseudoClaudeError)] == []
    assert [kind for kind in CLASSES if not kind.__dict__.get("__doc__")] == []


def test_a_wrong_value_is_a_value_error_and_the_world_failing_is_none() -> None:
    wrong_values = {kind.__name__ for kind in CLASSES if issubclass(kind, ValueError)}
    assert wrong_values == {"InvalidMessage", "InvalidSettings", "InvalidOperation"}
    assert issubclass(InvalidOperation, MemoryFailed)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b", "c", "d", "e"], "a, b, c, d, e"),
        (["a", "b", "c", "d", "e", "f", "g"], "a, b, c, d, e and 2 more"),
    ],
)
def test_a_listing_does_not_run_away(names: list[str], text: str) -> None:
    assert listing(names) == text
