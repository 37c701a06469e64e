from itertools import pairwise

import pytest

from pseudoclaude.compact.rounds import NOTE
from pseudoclaude.compact.summarize import BOUNDARY, SUMMARY_PROMPT, compact
from pseudoclaude.compact.tokens import estimate
from pseudoclaude.errors import (
    AuthenticationFailed,
    ContextOverflow,
    Overloaded,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    StreamInterrupted,
    SummaryFailed,
)
from pseudoclaude.messages import History, Message, Native, Stop, ToolCall
from pseudoclaude.settings import Settings
from tests.compact.build import (
    SUMMARY,
    TOOLS,
    ScriptedProvider,
    assert_pairs,
    assert_valid,
    calls,
    result,
    said,
    summary_reply,
    talk,
    user,
)

SETTINGS = Settings()


def _failure(answer: Message | ProviderError, history: History | None = None) -> SummaryFailed:
    with pytest.raises(SummaryFailed) as caught:
        compact(history or talk(30), ScriptedProvider([answer]), SETTINGS)
    assert "history is as it was" in str(caught.value)
    return caught.value


def test_the_new_history_is_reminder_summary_request_and_recent_messages():
    history = talk(30)
    provider = ScriptedProvider([summary_reply()])
    done = compact(history, provider, SETTINGS, system="sys", tools=TOOLS)
    first, request, *recent = done
    assert first == user(f"{BOUNDARY}\n\n{SUMMARY}")
    assert "read them again" in first.content
    assert request is history[0]
    assert tuple(recent) == history[len(history) - len(recent) :]
    assert 5_000 < estimate(recent) <= SETTINGS.keep_recent_tokens
    assert_pairs(done)
    assert_valid(done)
    sent = provider.requests[0]
    assert (sent.purpose, sent.system, sent.tools, sent.max_tokens) == ("summary", "sys", TOOLS, 8_192)
    assert sent.messages == (*history[: len(history) - len(recent)], user(SUMMARY_PROMPT))


def test_instructions_of_the_user_reach_the_model():
    provider = ScriptedProvider([summary_reply()])
    compact(talk(30), provider, SETTINGS, instructions="keep the port numbers")
    assert provider.requests[0].messages[-1].content.endswith("The user asks for this summary: keep the port numbers")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "<analysis>only scratch</analysis>",
        "<thinking>never closed",
        "<scratchpad>a</scratchpad>\n \n",
        "<reasoning>only scratch</reasoning>",
        "<thought>x</thought>",
        "<analysis>x</analysis>\n<summary>\n</summary>",
        "\u200b",
        "## Goal\n\n## Done\n",
        "```\n```",
        "— …",
    ],
)
def test_an_empty_summary_is_a_failure(text):
    assert _failure(summary_reply(text)).kind == "empty_summary"


def test_a_call_in_a_fence_is_a_call():
    assert _failure(summary_reply('```json\n{"name": "t", "arguments": {}}\n```')).kind == "tool_call"


def test_only_thinking_is_an_empty_summary():
    native = Native("anthropic", "messages", "m", [{"type": "thinking", "thinking": "t", "signature": "s"}])
    assert _failure(Message("assistant", "", native=native, stop="end_turn")).kind == "empty_summary"


@pytest.mark.parametrize(
    "text", ["", '<tool_call>{"name": "read"}</tool_call>', '{"name": "read", "arguments": {"path": "x"}}']
)
def test_a_call_in_place_of_a_summary_is_a_failure(text):
    made = () if text else (ToolCall("c", "read", "{}"),)
    assert _failure(Message("assistant", text, made, stop="tool_use")).kind == "tool_call"


def test_of_text_and_a_call_the_text_is_used_and_the_call_dropped():
    answer = Message("assistant", SUMMARY, (ToolCall("c", "read", "{}"),), stop="tool_use")
    done = compact(talk(30), ScriptedProvider([answer]), SETTINGS)
    assert done[0].content.endswith(SUMMARY)
    assert_pairs(done)


@pytest.mark.parametrize("stop", ["max_tokens", "pause_turn", "interrupted"])
def test_a_summary_that_is_cut_off_is_a_failure(stop: Stop):
    assert _failure(summary_reply("## Goal\nhalf a sent", stop)).kind == "cut_off"


def test_a_refusal_is_a_failure():
    assert _failure(summary_reply("I cannot help with that.", "refusal")).kind == "refusal"


def test_a_summary_that_saves_too_little_is_a_failure():
    history = talk(30)
    assert _failure(summary_reply("y" * 95_000), history).kind == "no_saving"
    assert _failure(summary_reply("y" * 500_000), history).kind == "no_saving"
    assert _failure(summary_reply(), (user("hi"), said("ho"))).kind == "no_saving"


def test_nothing_old_enough_asks_no_model():
    provider = ScriptedProvider([summary_reply()])
    for history in ((), (user("a"), calls("c"))[1:]):
        with pytest.raises(SummaryFailed, match="nothing old enough"):
            compact(history, provider, SETTINGS)
    assert provider.requests == []


@pytest.mark.parametrize(
    "error",
    [
        AuthenticationFailed("the key is not valid", status=401),
        RateLimited("too many requests", status=429, retryable=True),
        Overloaded("overloaded", status=529, retryable=True),
        ProviderUnavailable("the request timed out", retryable=True),
        ProviderUnavailable("connection reset by peer", retryable=True),
        StreamInterrupted("the stream was cut", partial=Message("assistant", "## Goal\nhalf", stop="interrupted")),
    ],
)
def test_a_provider_error_is_a_failure_that_names_it_and_is_not_tried_again(error):
    provider = ScriptedProvider([error])
    with pytest.raises(SummaryFailed) as caught:
        compact(talk(30), provider, SETTINGS)
    assert caught.value.kind == "provider"
    assert error.what in str(caught.value)
    assert caught.value.__cause__ is error
    assert len(provider.requests) == 1


def _too_long(times: int) -> ScriptedProvider:
    return ScriptedProvider([*[ContextOverflow("prompt is too long", status=400)] * times, summary_reply()])


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_request_that_is_too_long_is_tried_with_fewer_whole_rounds(times):
    provider = _too_long(times)
    history = talk(150)
    done = compact(history, provider, SETTINGS, tools=TOOLS)
    assert_pairs(done)
    sizes = [estimate(request.messages) for request in provider.requests]
    assert len(sizes) == times + 1
    margin = SETTINGS.auto_margin_tokens
    for attempt, (longer, shorter) in enumerate(pairwise(sizes)):
        cut = min(margin << attempt, longer // 2)
        assert cut - 1_000 < longer - shorter < cut + 2_000
    assert "left out of this request" in provider.requests[-1].messages[0].content


def test_a_request_beyond_the_window_by_estimate_is_never_sent():
    provider = _too_long(1)
    compact(talk(400), provider, SETTINGS)
    room = SETTINGS.context_window - SETTINGS.max_output_tokens
    first, second = (estimate(request.messages) for request in provider.requests)
    assert room - SETTINGS.auto_margin_tokens - 2_000 < first <= room - SETTINGS.auto_margin_tokens
    assert second <= first - SETTINGS.auto_margin_tokens + 1_000


def test_too_long_four_times_is_a_failure():
    provider = _too_long(4)
    with pytest.raises(SummaryFailed) as caught:
        compact(talk(150), provider, SETTINGS)
    assert caught.value.kind == "too_long"
    assert len(provider.requests) == 4


def test_an_earlier_summary_is_never_the_round_that_is_dropped():
    first = compact(talk(150), ScriptedProvider([summary_reply()]), SETTINGS)
    provider = _too_long(2)
    compact((*first, *talk(150)), provider, SETTINGS)
    for request in provider.requests:
        assert request.messages[0] is first[0]
    assert provider.requests[1].messages[1].content.startswith(NOTE)


def test_one_single_round_that_is_too_long_is_a_failure():
    for characters, requests in ((900_000, 0), (300_000, 1)):
        provider = _too_long(9)
        with pytest.raises(SummaryFailed) as caught:
            compact((user("x" * characters), said("y")), provider, SETTINGS)
        assert caught.value.kind == "too_long"
        assert len(provider.requests) == requests


def test_signed_thinking_goes_with_the_edit_before_it_and_stays_in_the_request():
    native = Native("anthropic", "messages", "m", [{"type": "thinking", "thinking": "x ", "signature": "s"}])
    history = list(talk(30))
    for position in (1, len(history) - 2):
        old = history[position]
        history[position] = Message("assistant", old.content, old.tool_calls, native=native, stop="tool_use")
    provider = ScriptedProvider([summary_reply()])
    done = compact(tuple(history), provider, SETTINGS)
    assert provider.requests[0].messages[1].native == native
    assert all(message.native is None for message in done)
    assert done[-2].tool_calls == history[-2].tool_calls


def test_an_open_call_and_all_after_it_stays_outside():
    history = (*talk(30), said("b"), user("c"), calls("open", "other"), result("open", "x"))
    done = compact(history, ScriptedProvider([summary_reply()]), SETTINGS)
    assert done[-2:] == history[-2:]
    assert_pairs(done[:-2])


def test_signed_thinking_of_an_open_call_goes_too_since_its_prefix_changed():
    native = Native("anthropic", "messages", "m", [{"type": "thinking", "thinking": "x ", "signature": "s"}])
    opened = Message("assistant", "why", (ToolCall("open", "read", "{}"),), native=native, stop="tool_use")
    done = compact((*talk(30), opened), ScriptedProvider([summary_reply()]), SETTINGS)
    assert done[-1] == Message("assistant", "why", opened.tool_calls, stop="tool_use")


def test_a_paused_turn_stays_whole_or_loses_all_its_blocks():
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    thinking = {"type": "thinking", "thinking": "x", "signature": "s"}
    rest = Message("assistant", "found", native=Native("anthropic", "messages", "m", [found]), stop="end_turn")
    for blocks in ([use], [thinking, use]):
        paused = Message("assistant", "", native=Native("anthropic", "messages", "m", blocks), stop="pause_turn")
        done = compact((*talk(30), user("q"), paused, rest), ScriptedProvider([summary_reply()]), SETTINGS)
        assert (done[-1].native is None) == (done[-2].native is None) == (thinking in blocks)
        assert_valid(done)
        open_end = compact((*talk(30), user("q"), paused), ScriptedProvider([summary_reply()]), SETTINGS)
        assert open_end[-2] == user("q")
        assert (open_end[-1].native is None) == (thinking in blocks)


def test_compacting_again_and_again_stays_valid():
    tight = Settings(keep_recent_tokens=60)
    history: History = talk(3, 100)
    for number in range(6):
        history = (*history, user(f"d{number}"), calls("c2"), result("c2", "y" * 600), said("e" * 90))
        history = compact(history, ScriptedProvider([summary_reply("s")]), tight)
        assert_pairs(history)
        assert_valid(history)
        assert sum(1 for message in history if message.content.startswith(NOTE)) == 1
        assert any(message.content == f"d{number}" for message in history)
