from pseudoclaude.compact.tokens import Anchor, Prefix, estimate, estimate_with_anchor, message_bytes, overhead
from pseudoclaude.messages import Message, Native, Usage
from tests.compact.build import TOOLS, calls, result, runtime, said, user


def test_counts_utf8_bytes_of_every_part_that_is_sent():
    assert message_bytes(user("é")) == len("user") + 2
    assert message_bytes(calls("id1", text="ab", arguments='{"x":1}')) == len("assistant") + 2 + 3 + len("read") + 7
    assert message_bytes(result("id1", "日本")) == len("tool") + 3 + 6
    assert estimate([user("x" * 31)], 3.5) == 10


def test_a_native_payload_larger_than_the_text_counts_instead_of_it():
    native = Native("anthropic", "messages", "m", [{"type": "thinking", "thinking": "t" * 1_000, "signature": "s"}])
    assert message_bytes(Message("assistant", "x", native=native)) > 1_000


def test_anchor_plus_the_messages_after_it():
    history = (user("a" * 350), said("b" * 350), user("c" * 31))
    anchor = Anchor(5_000, Prefix.of(history, 2))
    assert estimate_with_anchor(history, anchor) == 5_000 + 10
    assert estimate_with_anchor(history[:2], anchor) == 5_000


def test_an_anchor_of_another_history_does_not_count():
    history = (user("a"), said("b"))
    anchor = Anchor(170_000, Prefix.of(history, 2))
    equal_but_other = (user("a"), said("b"))
    assert estimate_with_anchor(equal_but_other, anchor) < 10
    assert estimate_with_anchor(history[:1], anchor) < 10


def test_overhead_of_system_prompt_and_tools_counts_only_without_an_anchor(tmp_path):
    fixed = overhead("s" * 700, TOOLS)
    assert fixed > 200
    history = (user("a"), said("b"))
    state = runtime(tmp_path)
    assert state.estimate(history, "s" * 700, TOOLS) == fixed + estimate(history)
    state.record_usage(history, Usage(100, 11))
    assert state.estimate(history, "s" * 700, TOOLS) == 111


def test_usage_without_a_count_leaves_the_anchor(tmp_path):
    history = (user("a"), said("b"))
    state = runtime(tmp_path)
    state.record_usage(history, Usage(100, 11))
    state.record_usage(history, Usage(0, 0))
    state.record_usage(history, None)
    assert state.estimate(history) == 111


def test_cached_tokens_occupy_the_window_too(tmp_path):
    history = (user("a"), said("b"))
    state = runtime(tmp_path)
    state.record_usage(history, Usage(3, 10, cache_read_tokens=2_000, cache_write_tokens=500))
    assert state.estimate(history) == 2_513
