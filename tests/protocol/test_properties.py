"""Whatever happened to a history: repaired and projected, every dialect accepts it, and nothing left it unnamed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.messages import History, Message, Native
from pseudoclaude.protocol import check, repair
from pseudoclaude.protocol.check import DIALECTS, judge
from pseudoclaude.protocol.context import DEFAULT
from pseudoclaude.protocol.values import Dangling, Repair
from pseudoclaude.providers import to_wire
from pseudoclaude.providers.wire import PROJECTIONS
from tests.protocol.histories import ANY_HISTORY, DERANDOMIZED, damaged_histories, sound_histories

pytestmark = pytest.mark.slow

DANGLING = st.sampled_from(["trim", "answer"])
NEXT = Message("user", "next")


@pytest.mark.parametrize("dialect", list(PROJECTIONS))
@settings(DERANDOMIZED)
@given(ANY_HISTORY, DANGLING)
def test_what_is_repaired_and_projected_passes_conservative(dialect: str, history: History, dangling: Dangling) -> None:
    repaired, _ = repair(history, dangling=dangling)
    assert check(dialect, to_wire(dialect, (*repaired, NEXT))) == []


@settings(DERANDOMIZED, max_examples=400)
@given(ANY_HISTORY, DANGLING)
def test_no_payload_makes_repair_projection_or_judging_raise(history: History, dangling: Dangling) -> None:
    """Raw histories too: what a log holds is read before anything mended it."""
    repaired, _ = repair(history, dangling=dangling)
    for dialect in PROJECTIONS:
        for each in (history, repaired):
            assert isinstance(check(dialect, to_wire(dialect, each)), list)


@settings(DERANDOMIZED)
@given(ANY_HISTORY, DANGLING)
def test_repairing_twice_equals_once(history: History, dangling: Dangling) -> None:
    once, _ = repair(history, dangling=dangling)
    assert repair(once, dangling=dangling) == (once, ())


@settings(DERANDOMIZED)
@given(sound_histories(), DANGLING)
def test_a_sound_history_comes_back_as_the_same_object(history: History, dangling: Dangling) -> None:
    repaired, repairs = repair(history, dangling=dangling)
    assert repaired is history
    assert repairs == ()


def _texts(messages: tuple[object, ...] | list[object]) -> Counter[tuple[str, str]]:
    found = Counter[tuple[str, str]]()
    for message in messages:
        if isinstance(message, Message):
            text = message.content if message.tool_result is None else message.tool_result.content
            found[message.role, text] += 1
    return found


@settings(DERANDOMIZED)
@given(ANY_HISTORY, DANGLING)
def test_no_text_disappears_unless_a_repair_names_it(history: History, dangling: Dangling) -> None:
    repaired, repairs = repair(history, dangling=dangling)
    removed = [message for step in repairs if step.action != "replace_result" for message in step.removed]
    replaced = [message for step in repairs if step.action == "replace_result" for message in step.removed]
    left = _texts([*repaired, *removed, *replaced])
    assert not _texts(list(history)) - left


@settings(DERANDOMIZED)
@given(ANY_HISTORY, DANGLING)
def test_no_call_and_no_native_disappears_unless_a_repair_names_it(history: History, dangling: Dangling) -> None:
    repaired, repairs = repair(history, dangling=dangling)
    removed = [each for step in repairs for each in step.removed]
    calls = Counter(call.id for message in history for call in message.tool_calls)
    kept = Counter(call.id for message in repaired for call in message.tool_calls)
    named = Counter(
        call.id
        for step in repairs
        if step.action == "trim_call"
        for call in step.removed
        if not isinstance(call, (Message, Native))
    )
    assert calls == kept + named
    natives = sum(message.native is not None for message in history)
    named_natives = sum(
        isinstance(each, Native) or (isinstance(each, Message) and each.native is not None) for each in removed
    )
    assert natives == sum(message.native is not None for message in repaired) + named_natives


def _edited(repairs: tuple[Repair, ...]) -> bool:
    return any(step.action != "drop_native" for step in repairs)


@settings(DERANDOMIZED)
@given(ANY_HISTORY, DANGLING)
def test_natives_go_only_after_an_edit(history: History, dangling: Dangling) -> None:
    repaired, repairs = repair(history, dangling=dangling)
    assert _edited(repairs) or repaired == history


@settings(DERANDOMIZED)
@given(sound_histories(), st.data())
def test_a_tail_that_was_cut_off_costs_no_earlier_native(history: History, data: st.DataObject) -> None:
    """Repair appends where it can: a crash in the last round leaves signed thinking before it valid."""
    cut = history[: data.draw(st.integers(1, len(history)))]
    repaired, _ = repair(cut, dangling="answer")
    assert repaired[: len(cut)] == cut


@pytest.mark.parametrize("dialect", list(PROJECTIONS))
@settings(DERANDOMIZED)
@given(ANY_HISTORY)
def test_the_screen_is_not_wider_than_the_rules(dialect: str, history: History) -> None:
    """On raw projections too, not only on repaired histories."""
    wire = to_wire(dialect, history)
    if DIALECTS[dialect].is_plain(wire):
        assert judge(DIALECTS[dialect], wire, "conservative", DEFAULT) == []


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses"])
@settings(DERANDOMIZED)
@given(sound_histories(), sound_histories())
def test_what_was_sent_does_not_change_when_the_history_grows(dialect: str, history: History, more: History) -> None:
    """Signed thinking is bound to what was sent before it (A45).  Only the last user turn may get longer."""
    before = to_wire(dialect, (*history, NEXT))
    after = to_wire(dialect, (*history, NEXT, *more))
    assert after[: len(before) - 1] == before[:-1]


@settings(DERANDOMIZED)
@given(damaged_histories(), st.sampled_from(["anthropic", "openai-chat", "openai-responses"]))
def test_every_text_that_says_something_reaches_the_wire(history: History, dialect: str) -> None:
    repaired, _ = repair(history)
    wire = repr(to_wire(dialect, repaired))
    for message in repaired:
        text = message.content if message.tool_result is None else message.tool_result.content
        assert not text.strip() or repr(text)[1:-1] in wire
