from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.compact import force_compact, manage_context, select_recent
from pseudoclaude.compact.rounds import (
    NOTE,
    SUMMARY_NOTE,
    carried_request,
    is_note,
    latest_request,
    newest_rounds,
    settled_length,
)
from pseudoclaude.compact.summarize import BOUNDARY
from pseudoclaude.compact.tokens import estimate
from pseudoclaude.conversation import Conversation
from pseudoclaude.errors import ProviderUnavailable
from pseudoclaude.messages import History, Message
from pseudoclaude.settings import Settings
from pseudoclaude.text import size
from tests.compact.build import SUMMARY, ScriptedProvider, calls, result, runtime, said, summary_reply, talk, user


def test_an_open_round_is_not_settled():
    assert settled_length((user("a"), calls("c"))) == 1
    assert settled_length((user("a"), calls("c", "d"), result("c", "x"))) == 1
    assert settled_length((user("a"), calls("c"), user("late"))) == 1
    assert settled_length((user("a"), calls("c"), result("c", "x"))) == 3
    assert settled_length((user("a"), calls("c"), result("c", "x"), said("b"))) == 4
    assert settled_length(()) == 0


def test_a_paused_turn_and_its_continuation_are_one_round():
    paused = Message("assistant", "searching", stop="pause_turn")
    history = (user("a"), paused, said("x" * 350), user("b"))
    assert select_recent(history, keep_tokens=109) == history[3:]
    assert select_recent(history, keep_tokens=110) == history[1:]
    assert newest_rounds(history, 109, 3.5) == 3
    assert settled_length(history[:2]) == 1


def test_recent_never_parts_a_result_from_its_call():
    history = (user("a"), calls("c"), result("c", "x" * 3_500), said("b"))
    assert select_recent(history, keep_tokens=500) == history[3:]
    assert select_recent(history, keep_tokens=2_000) == history


def test_the_last_round_may_be_larger_than_the_rest():
    history = (user("a"), said("b"), calls("c"), result("c", "x" * 3_500))
    assert select_recent(history, keep_tokens=100) == ()
    assert select_recent(history, keep_tokens=100, round_tokens_max=2_000) == history[2:]


ROUNDS = st.lists(st.one_of(st.just(0), st.integers(-2, 3)), max_size=14)


def _history(shape: list[int], open_results: int) -> History:
    """0 is a user message, -n an assistant text, n an assistant with n calls and their results; the last may be open."""
    messages: list[Message] = [user("start")]
    for number, kind in enumerate(shape):
        if kind == 0:
            messages.append(user("u" * 40))
        elif kind < 0:
            messages.append(said("a" * 40 * -kind))
        else:
            ids = [f"c{number}_{i}" for i in range(kind)]
            messages += [calls(*ids), *(result(one, "r" * 60) for one in ids)]
    if open_results:
        messages += [calls("x1", "x2", "x3"), *(result(f"x{i}", "r" * 30) for i in range(1, open_results))]
    return tuple(messages)


@settings(derandomize=True, deadline=None, max_examples=70, database=None)
@given(shape=ROUNDS, open_results=st.integers(0, 3), keep=st.integers(0, 400), at_least=st.integers(0, 400))
def test_recent_is_a_run_of_whole_rounds_for_any_history(shape, open_results, keep, at_least):
    history = _history(shape, open_results)
    recent = select_recent(history, keep_tokens=keep, round_tokens_max=at_least)
    settled = history[: settled_length(history)]
    assert recent == settled[len(settled) - len(recent) :]
    assert not recent or recent[0].role != "tool"
    assert settled_length(recent) == len(recent)
    assert estimate(recent) <= max(keep, at_least)


@settings(derandomize=True, deadline=None, max_examples=70, database=None)
@given(shape=ROUNDS, budget=st.integers(0, 400), dropped=st.integers(0, 20))
def test_dropping_falls_between_rounds_and_always_goes_on(shape, budget, dropped):
    history = _history(shape, 0)
    start = newest_rounds(history, budget, 3.5, drop_at_least=dropped)
    assert start > dropped or start == len(history)
    if start < len(history):
        assert history[start].role != "tool"
        is_last_round = all(message.role == "tool" for message in history[start + 1 :])
        forced = start == min(i for i in range(dropped + 1, len(history)) if history[i].role != "tool")
        assert estimate(history[start:]) <= budget or is_last_round or forced


def dropping(folder, *, request="Please repair the parser.", times=1):
    """A conversation on a full window whose oldest rounds are dropped because no summary comes."""
    conversation = Conversation((user(request), *talk(200)[1:]))
    state = runtime(folder, Settings(when_full="drop_oldest"))
    for number in range(times):
        output = manage_context(conversation, state, ScriptedProvider([ProviderUnavailable("the request timed out")]))
        assert output.dropped_count
        for message in talk(200)[1:] if number + 1 < times else ():
            conversation.append(message)
    return conversation


def test_what_compact_writes_is_known_word_for_word(tmp_path):
    assert BOUNDARY == SUMMARY_NOTE
    summarized = Conversation(talk(60))
    force_compact(summarized, runtime(tmp_path), ScriptedProvider([summary_reply()]))
    for conversation in (summarized, dropping(tmp_path)):
        first, second, *_ = conversation.messages()
        assert first.content.startswith(NOTE)
        assert is_note(first)
        assert not is_note(second)


LOOKALIKES = [
    f"{NOTE}repair the parser",
    f"{NOTE}12 messages were dropped here because the context window was full; read again what you need.] Repair it.",
    f"{NOTE}many messages were dropped here because the context window was full; read again what you need.]",
    f"{SUMMARY_NOTE} Repair the parser.",
    f"> {SUMMARY_NOTE}\n\nquoted",
]
COPIES = [
    f"{NOTE}1,200 messages were dropped here because the context window was full; read again what you need.]",
    f"{SUMMARY_NOTE}\n\nRepair the parser.",
]


@pytest.mark.parametrize("text", LOOKALIKES)
def test_what_the_user_writes_is_no_note_however_it_begins(text):
    assert not is_note(user(text))
    assert not is_note(said(COPIES[1]))


@pytest.mark.parametrize("request_text", [*LOOKALIKES, *COPIES])
@pytest.mark.parametrize("before", [(), (user("old"), said("x" * 9_000))], ids=["first", "later"])
def test_a_request_is_kept_word_for_word_through_every_compaction_whatever_it_says(tmp_path, request_text, before):
    rounds = [(calls(f"c{i}"), result(f"c{i}", "r" * 9_000)) for i in range(6)]
    conversation = Conversation((*before, user(request_text), *chain(*rounds)))
    for number in range(3):
        output = force_compact(conversation, runtime(tmp_path), ScriptedProvider([summary_reply()]))
        assert output.error is None
        assert [message.content for message in conversation.messages()[:2]] == [
            f"{BOUNDARY}\n\n{SUMMARY}",
            request_text,
        ]
        for i in range(6):
            conversation.append(calls(f"d{number}{i}"))
            conversation.append(result(f"d{number}{i}", "r" * 9_000))


@pytest.mark.parametrize("request_text", [*LOOKALIKES, *COPIES])
def test_a_request_is_kept_when_the_oldest_rounds_are_dropped_again_and_again(tmp_path, request_text):
    conversation = dropping(tmp_path, request=request_text, times=3)
    assert request_text in [message.content for message in conversation.messages()[:3]]


def test_a_summary_has_the_request_behind_it_so_the_request_is_the_last_user_message():
    history = (user(f"{BOUNDARY}\n\nsummary"), user("first"), said("x"))
    assert latest_request(history) == 1
    assert latest_request((said("x"),)) is None


def test_a_request_larger_than_its_room_is_cut_and_says_so():
    assert carried_request(user("é" * 10), 20) == user("é" * 10)
    carried = carried_request(user("é" * 1_000), 21).content
    assert carried.startswith("é" * 10 + "\n[… 1,980 more bytes of this request were left out")
    assert size(carried) < 150
