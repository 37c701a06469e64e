import threading
import timeit

import pytest

from pseudoclaude.compact import Runtime, force_compact, manage_context
from pseudoclaude.compact.manager import PROGRESS
from pseudoclaude.compact.rounds import NOTE
from pseudoclaude.conversation import Conversation, Hooks
from pseudoclaude.errors import (
    ContextWindowExceeded,
    InvalidSettings,
    NotDurable,
    ProviderUnavailable,
    SpillFailed,
    SummaryFailed,
)
from pseudoclaude.messages import History, Usage
from pseudoclaude.ports import ToolSpec
from pseudoclaude.settings import Settings
from simulator.disk import DiskFault, FaultPlan, SimFileSystem
from tests.compact.build import (
    SUMMARY,
    TOOLS,
    ScriptedProvider,
    assert_pairs,
    assert_valid,
    calls,
    result,
    runtime,
    said,
    summary_reply,
    talk,
    user,
)

GOOD = [summary_reply()]
DOWN = [ProviderUnavailable("the request timed out", retryable=True)]


def _texts(conversation: Conversation) -> list[str]:
    return [message.content for message in conversation.messages()]


@pytest.mark.parametrize(
    ("dialect", "threshold"), [("openai-chat", 95_000), ("openai-responses", 95_000), ("anthropic", 167_000)]
)
def test_a_summary_is_made_exactly_from_the_threshold_on(tmp_path, dialect, threshold):
    for tokens, expected in ((threshold - 1, False), (threshold, True)):
        conversation = Conversation(talk(30))
        state = runtime(tmp_path, Settings(dialect=dialect))
        state.record_usage(conversation.messages(), Usage(tokens, 0))
        output = manage_context(conversation, state, ScriptedProvider(GOOD))
        assert (output.before_tokens, output.triggered_layer2, output.error) == (tokens, expected, None)
        assert (output.after_tokens < 15_000) is expected


def test_layer_one_runs_first_and_may_be_enough(tmp_path):
    replaced: list[tuple[str, History]] = []
    hooks = Hooks(on_replace=lambda reason, messages: replaced.append((reason, messages)))
    conversation = Conversation((user("q"), calls("c"), result("c", "x" * 700_000)), hooks)
    provider = ScriptedProvider(GOOD)
    output = manage_context(conversation, runtime(tmp_path), provider)
    assert output.before_tokens > 195_000
    assert output.after_tokens < 1_000
    assert (output.triggered_layer1, output.offloaded_count, output.triggered_layer2) == (True, 1, False)
    assert provider.requests == []
    assert [(reason, messages) for reason, messages in replaced] == [("snapshot", conversation.messages())]


def test_both_layers_in_one_check_and_progress_is_told_before_the_request(tmp_path):
    told: list[str] = []
    conversation = Conversation((*talk(200), calls("c"), result("c", "x" * 60_000)))
    provider = ScriptedProvider(GOOD, before=lambda: told.append("request"))
    output = manage_context(conversation, runtime(tmp_path), provider, tools=TOOLS, system="s", on_progress=told.append)
    assert (output.triggered_layer1, output.offloaded_count, output.triggered_layer2, output.error) == (
        True,
        1,
        True,
        None,
    )
    assert told == [PROGRESS, "request"]
    assert output.after_tokens < output.before_tokens / 5
    assert_pairs(conversation.messages())


def test_an_error_of_layer_one_is_carried_also_when_layer_two_ran():
    fs = SimFileSystem(faults=FaultPlan((DiskFault("write", error="ENOSPC", sticky=True),)))
    fs.mkdir("/s")
    conversation = Conversation((*talk(200), calls("c"), result("c", "x" * 60_000)))
    output = manage_context(conversation, runtime("/s", fs=fs), ScriptedProvider(GOOD))
    assert isinstance(output.error, SpillFailed)
    assert output.must_stop
    assert output.triggered_layer2
    assert conversation.messages()[-1].tool_result == result("c", "x" * 60_000).tool_result


def test_usage_from_before_a_replace_is_void_also_after_a_reload(tmp_path):
    conversation = Conversation(talk(60))
    state = runtime(tmp_path)
    state.record_usage(conversation.messages(), Usage(170_000, 0))
    provider = ScriptedProvider(GOOD)
    assert manage_context(conversation, state, provider).triggered_layer2
    for again in (state, runtime(tmp_path)):
        output = manage_context(Conversation(conversation.messages()), again, provider)
        assert not output.triggered_layer2
        assert output.before_tokens < 15_000
    assert len(provider.requests) == 1


def test_a_message_that_arrives_while_the_summary_is_written_stays_once_and_last(tmp_path):
    on_disk: list[History] = []
    conversation = Conversation(talk(60), Hooks(on_replace=lambda _, messages: on_disk.append(messages)))
    late = [threading.Thread(target=conversation.append, args=(user("late"),))]

    def arrive() -> None:
        late[0].start()
        late[0].join()

    output = force_compact(conversation, runtime(tmp_path), ScriptedProvider(GOOD, before=arrive))
    assert output.error is None
    assert _texts(conversation)[-1] == "late"
    assert _texts(conversation).count("late") == 1
    assert on_disk[-1] == conversation.messages()


def test_a_result_that_arrives_while_its_call_was_open_stays_with_its_call(tmp_path):
    conversation = Conversation((*talk(60), calls("c1")))
    provider = ScriptedProvider(GOOD, before=lambda: conversation.append(result("c1", "x")))
    assert force_compact(conversation, runtime(tmp_path), provider).error is None
    assert conversation.messages()[-2:] == (calls("c1"), result("c1", "x"))
    assert_pairs(conversation.messages())


def test_a_history_replaced_by_someone_else_meanwhile_stands(tmp_path):
    conversation = Conversation(talk(60))
    provider = ScriptedProvider(GOOD, before=lambda: conversation.replace_messages("recover", [user("other")]))
    output = force_compact(conversation, runtime(tmp_path), provider)
    assert isinstance(output.error, SummaryFailed)
    assert _texts(conversation) == ["other"]


def test_a_long_tool_loop_in_one_turn_compacts_between_rounds_and_keeps_the_request(tmp_path):
    settings = Settings(context_window=100_000)
    conversation = Conversation([user("Fix bug 44, please.")])
    state, provider, times = runtime(tmp_path, settings), ScriptedProvider(GOOD), 0
    for number in range(50):
        conversation.append(calls(f"c{number}"))
        conversation.append(result(f"c{number}", "x" * 14_000))
        output = manage_context(conversation, state, provider, tools=TOOLS)
        assert output.error is None
        assert output.after_tokens < settings.compact_at_tokens
        assert "Fix bug 44, please." in _texts(conversation)
        assert_pairs(conversation.messages())
        times += output.triggered_layer2
    assert 2 <= times <= 6


def test_fixed_overhead_over_the_threshold_opens_the_breaker_after_three_and_then_asks_no_more(tmp_path):
    settings = Settings(
        context_window=32_000,
        summary_reserve_tokens=4_000,
        auto_margin_tokens=2_400,
        max_output_tokens=2_000,
        keep_recent_tokens=2_000,
    )
    overhead = (ToolSpec("huge", "x" * 100_000, {}),)
    conversation = Conversation(talk(2))
    state, provider, notices = runtime(tmp_path, settings), ScriptedProvider(GOOD), []
    for number in range(10):
        conversation.append(user(f"go on {number}" + "z" * 1_000))
        output = manage_context(conversation, state, provider, tools=overhead)
        notices.append(output.notice)
        conversation.append(said("done" + "w" * 1_000))
    assert 1 <= len(provider.requests) <= 3
    assert state.breaker_open
    assert [bool(notice) for notice in notices] == [False, False, True, *[False] * 7]
    assert isinstance(output.error, ContextWindowExceeded)


def _full(settings: Settings, tmp_path, size: int = 195_000) -> tuple[Conversation, Runtime]:
    conversation = Conversation((*talk(40), user("latest request"), *talk(140)[1:]))
    state = runtime(tmp_path, settings)
    state.record_usage(conversation.messages(), Usage(size, 0))
    return conversation, state


def test_a_full_window_that_cannot_be_compacted_is_an_error_with_the_numbers(tmp_path):
    conversation, state = _full(Settings(), tmp_path)
    before = conversation.messages()
    output = manage_context(conversation, state, ScriptedProvider(DOWN))
    assert isinstance(output.error, ContextWindowExceeded)
    assert output.must_stop
    for part in ("195,000", "8,192", "200,000", "Compact by hand"):
        assert part in str(output.error)
    assert output.error.__cause__ is output.summary_error
    assert conversation.messages() is before


def test_a_failed_summary_with_room_left_is_told_and_does_not_stop(tmp_path):
    conversation, state = _full(Settings(), tmp_path, 170_000)
    output = manage_context(conversation, state, ScriptedProvider(DOWN))
    assert isinstance(output.error, SummaryFailed)
    assert not output.must_stop
    assert state.failures == 1


def test_by_setting_a_full_window_costs_the_oldest_whole_rounds(tmp_path):
    conversation, state = _full(Settings(when_full="drop_oldest"), tmp_path)
    before = conversation.messages()
    output = manage_context(conversation, state, ScriptedProvider(DOWN))
    after = conversation.messages()
    assert isinstance(output.error, SummaryFailed)
    assert not output.must_stop
    assert 0 < output.dropped_count < 120
    assert f"{output.dropped_count:,} oldest messages were dropped" in output.notice
    assert after[0].content.startswith(NOTE)
    assert after[-50:] == before[-50:]
    assert "latest request" in [message.content for message in after]
    assert output.after_tokens < 167_000
    assert_pairs(after)
    assert_valid(after)


def test_what_the_provider_calls_too_long_is_taken_as_a_full_window(tmp_path):
    conversation = Conversation(talk(60))
    state = runtime(tmp_path)
    assert not manage_context(conversation, state, ScriptedProvider(GOOD)).triggered_layer2
    state.record_overflow(conversation.messages())
    assert manage_context(conversation, state, ScriptedProvider(GOOD)).triggered_layer2


def test_a_large_output_limit_brings_the_threshold_forward(tmp_path):
    assert runtime(tmp_path, Settings(max_output_tokens=64_000)).threshold_tokens == 136_000
    assert runtime(tmp_path, Settings(max_output_tokens=500_000)).threshold_tokens == 167_000


def test_a_manual_success_closes_the_breaker_and_a_manual_failure_does_not_count(tmp_path):
    conversation, state = _full(Settings(), tmp_path, 170_000)
    for _ in range(3):
        manage_context(conversation, state, ScriptedProvider(DOWN))
    assert state.breaker_open
    assert force_compact(conversation, state, ScriptedProvider(DOWN)).breaker_open
    assert state.failures == 3
    output = force_compact(conversation, state, ScriptedProvider(GOOD))
    assert (output.error, output.breaker_open, output.triggered_layer2) == (None, False, True)
    assert state.failures == 0


def test_a_success_after_two_failures_starts_the_count_again(tmp_path):
    conversation, state = _full(Settings(), tmp_path, 170_000)
    provider = ScriptedProvider([*DOWN, *DOWN, *GOOD])
    errors = [manage_context(conversation, state, provider).error for _ in range(3)]
    assert [error is None for error in errors] == [False, False, True]
    assert state.failures == 0


def test_text_of_an_error_never_enters_the_history(tmp_path):
    conversation, state = _full(Settings(), tmp_path, 170_000)
    before = conversation.messages()
    manage_context(conversation, state, ScriptedProvider(DOWN))
    force_compact(conversation, state, ScriptedProvider(DOWN))
    assert conversation.messages() is before


def test_a_hook_that_fails_reaches_the_caller_and_the_next_check_goes_on(tmp_path):
    broken = [True]

    def save(reason: str, messages: History) -> None:
        if broken[0]:
            raise NotDurable("the disk is full", unsaved=1)

    conversation = Conversation((user("q"), calls("c"), result("c", "x" * 60_000)), Hooks(on_replace=save))
    state = runtime(tmp_path)
    with pytest.raises(NotDurable):
        manage_context(conversation, state, ScriptedProvider(GOOD))
    broken[0] = False
    output = manage_context(conversation, state, ScriptedProvider(GOOD))
    assert (output.error, output.triggered_layer1) == (None, False)
    assert conversation.messages()[2].tool_result.spill is not None


def test_the_summary_is_what_the_next_request_starts_with(tmp_path):
    conversation, state = _full(Settings(), tmp_path, 170_000)
    manage_context(conversation, state, ScriptedProvider(GOOD))
    assert SUMMARY in conversation.messages()[0].content


def test_a_window_smaller_than_the_reserves_is_refused_at_start_with_the_numbers():
    with pytest.raises(InvalidSettings) as caught:
        Settings(context_window=30_000)
    for number in ("30,000", "20,000", "13,000", "33,000"):
        assert number in str(caught.value)


def test_a_check_with_nothing_to_do_costs_the_same_for_any_length(tmp_path):
    def seconds(count: int) -> float:
        conversation = Conversation(user("x" * 500) if i % 2 == 0 else said("y" * 500) for i in range(count))
        state = runtime(tmp_path, Settings(context_window=10_000_000))
        provider = ScriptedProvider(GOOD)
        manage_context(conversation, state, provider)
        return min(timeit.repeat(lambda: manage_context(conversation, state, provider), number=50, repeat=5)) / 50

    assert seconds(10_000) < 20 * seconds(10)
