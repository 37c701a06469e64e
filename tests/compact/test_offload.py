import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.compact import Runtime, offload_tool_results
from pseudoclaude.errors import SpillFailed
from pseudoclaude.messages import History, Message, Native, ToolCall, ToolResult
from pseudoclaude.settings import Settings
from pseudoclaude.text import size
from simulator.disk import DiskFault, FaultPlan, SimFileSystem
from tests.compact.build import calls, content_of, result, runtime, said, user

SMALL = Settings(result_limit_bytes=5_000, turn_results_limit_bytes=20_000, preview_bytes=200, durability="off")


def _disk() -> SimFileSystem:
    fs = SimFileSystem()
    fs.mkdir("/s")
    return fs


def _read(fs: SimFileSystem, path: str) -> bytes:
    fd = fs.open(f"/s/{path}", "read")
    try:
        return fs.pread(fd, 1 << 24, 0)
    finally:
        fs.close(fd)


def _turn(sizes: list[int]) -> History:
    ids = [f"call_{number}" for number in range(len(sizes))]
    return (user("q"), calls(*ids), *(result(one, "x" * count) for one, count in zip(ids, sizes, strict=True)))


def _spilled(messages: History) -> list[int]:
    return [
        i - 2 for i, one in enumerate(messages) if one.tool_result is not None and one.tool_result.spill is not None
    ]


def test_a_result_over_the_limit_leaves_and_one_at_the_limit_stays(tmp_path):
    done = offload_tool_results(_turn([50_000, 50_001]), runtime(tmp_path))
    assert (done.changed, done.offloaded_count, done.error) == (True, 1, None)
    assert _spilled(done.messages) == [1]


def test_the_preview_names_size_path_and_digest_and_begins_like_the_text(tmp_path):
    text = "".join(f"line {number} é\n" for number in range(9_000))
    history = (user("q"), calls("c"), Message("tool", tool_result=ToolResult("c", text, is_error=True)))
    done = offload_tool_results(history, runtime(tmp_path))
    preview = done.messages[2].tool_result
    assert preview is not None
    assert preview.spill is not None
    assert (tmp_path / preview.spill.path).read_text() == text
    assert preview.spill.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert preview.is_error
    notice, head = preview.content.split("It begins:]\n")
    for part in (f"{size(text):,} bytes", str(tmp_path / preview.spill.path), preview.spill.sha256):
        assert part in notice
    assert text.startswith(head)
    assert head.endswith("\n")
    assert 1_900 < size(head) <= 2_000


def test_a_head_is_cut_at_a_grapheme_where_lines_do_not_fill_it(tmp_path):
    family = "👩‍👩‍👧"
    text = "ok\n" + family * 5_000
    preview = content_of(
        offload_tool_results((user("q"), calls("c"), result("c", text)), runtime(tmp_path)).messages[2]
    )
    head = preview.split("It begins:]\n")[1]
    assert head == "ok\n" + family * ((2_000 - 3) // size(family))


def test_sums_of_a_turn_largest_first(tmp_path):
    done = offload_tool_results(_turn([40_000, 49_000, 45_000, 30_000, 48_000]), runtime(tmp_path))
    assert _spilled(done.messages) == [1]
    done = offload_tool_results(_turn([49_000, 49_000, 49_000, 49_000, 49_000, 1_000]), runtime(tmp_path))
    assert _spilled(done.messages) == [0]


def test_turns_are_summed_apart(tmp_path):
    history = (*_turn([45_000] * 4), said("x"), *_turn([45_000] * 4))
    assert not offload_tool_results(history, runtime(tmp_path)).changed


def test_the_sum_of_a_turn_waits_for_its_last_result(tmp_path):
    state = runtime(tmp_path)
    whole = _turn([49_000] * 5)
    assert not offload_tool_results(whole[:-1], state).changed
    assert _spilled(offload_tool_results(whole, state).messages) == [0]


def test_many_results_share_the_room_with_shorter_heads(tmp_path):
    done = offload_tool_results(_turn([2_400] * 400), runtime(tmp_path, Settings(durability="off")))
    contents = [content_of(message) for message in done.messages[2:]]
    assert sum(map(size, contents)) <= 200_000
    assert all(content.split("It begins:]\n")[1] for content in contents if "It begins:]" in content)


def test_results_that_would_not_get_smaller_stay(tmp_path):
    tight = Settings(result_limit_bytes=100, preview_bytes=50, durability="off")
    assert not offload_tool_results(_turn([150]), runtime(tmp_path, tight)).changed


def _fewest(sizes: list[int], preview: int, limit: int, turn_limit: int) -> int:
    """How many results must leave at least: those over the limit, then, however chosen, as many as it takes."""
    total = sum(preview if one > limit else one for one in sizes)
    count = sum(1 for one in sizes if one > limit)
    for one in sorted((one for one in sizes if preview < one <= limit), reverse=True):
        if total <= turn_limit:
            break
        total, count = total - one + preview, count + 1
    return count


@settings(derandomize=True, deadline=None, max_examples=30, database=None)
@given(sizes=st.lists(st.integers(0, 9_000), min_size=1, max_size=12))
def test_any_sizes_end_within_both_limits_with_the_fewest_and_largest_spills(sizes):
    fs = _disk()
    state = runtime("/s", SMALL, fs)
    history = _turn(sizes)
    done = offload_tool_results(history, state)
    after = [size(content_of(message)) for message in done.messages[2:]]
    assert max(after) <= 5_000
    assert sum(after) <= 20_000
    spilled = _spilled(done.messages)
    kept = [one for i, one in enumerate(sizes) if i not in spilled]
    preview = max([after[i] for i in spilled], default=0)
    assert len(spilled) == _fewest(sizes, preview, 5_000, 20_000)
    assert not spilled or min(sizes[i] for i in spilled) >= max(kept, default=0)
    for i in spilled:
        spill = done.messages[i + 2].tool_result.spill
        assert spill is not None
        assert _read(fs, spill.path) == b"x" * sizes[i]
    again = offload_tool_results(done.messages, Runtime(fs=fs, session_folder="/s", settings=SMALL))
    assert not again.changed


def test_a_failed_spill_keeps_the_text_and_is_tried_again_while_others_are_made():
    fs = _disk()
    state = runtime("/s", SMALL, fs)
    history = (*_turn([6_000, 7_000]), said("x"), user("q"))
    fs.faults = FaultPlan((DiskFault("write", error="ENOSPC", partial=10),))
    first = offload_tool_results(history, state)
    assert isinstance(first.error, SpillFailed)
    assert "ENOSPC" in str(first.error)
    assert (first.offloaded_count, _spilled(first.messages)) == (1, [1])
    assert first.messages[2] is history[2]
    state.ledger.settle(first.messages, first.failed)
    second = offload_tool_results(first.messages, state)
    assert (second.error, _spilled(second.messages)) == (None, [0, 1])
    state.ledger.settle(second.messages, second.failed)
    assert not offload_tool_results(second.messages, state).changed


def test_what_was_kept_stays_kept_when_its_id_comes_again(tmp_path):
    state = runtime(tmp_path)
    first = (user("q"), calls("call_0"), result("call_0", "x"))
    done = offload_tool_results(first, state)
    state.ledger.settle(done.messages, done.failed)
    second = (*first, calls("call_0"), result("call_0", "y" * 60_000))
    after = offload_tool_results(second, state).messages
    assert content_of(after[2]) == "x"
    assert after[4].tool_result is not None
    assert after[4].tool_result.spill is not None


def test_a_resumed_session_decides_the_same():
    fs = _disk()
    history = (*_turn([6_000, 100, 4_900]), said("x"), *_turn([4_900] * 5))
    straight = offload_tool_results(history, runtime("/s", SMALL, fs)).messages
    before_crash = offload_tool_results(history[:5], runtime("/s", SMALL, fs)).messages
    resumed = offload_tool_results((*before_crash, *history[5:]), runtime("/s", SMALL, fs)).messages
    assert resumed == straight


def test_results_only_are_changed_and_the_arguments_of_calls_never(tmp_path):
    arguments = '{"text": "' + "é" * 100_000 + '"}'
    history = (user("q"), calls("c1", arguments=arguments), result("c1", "ok"))
    assert not offload_tool_results(history, runtime(tmp_path)).changed
    history = (user("q"), calls("c1", arguments=arguments), result("c1", "x" * 60_000))
    after = offload_tool_results(history, runtime(tmp_path)).messages
    assert after[1] == history[1]


def test_signed_thinking_after_an_edit_goes_and_before_it_stays(tmp_path):
    native = Native("anthropic", "messages", "m", [{"type": "thinking", "thinking": "t", "signature": "s"}])
    thinking = Message("assistant", "why", (ToolCall("a", "read", "{}"),), native=native, stop="tool_use")
    history = (user("q"), thinking, result("a", "x" * 60_000), thinking, result("a", "y"))
    after = offload_tool_results(history, runtime(tmp_path)).messages
    assert after[1].native == native
    assert after[3].native is None
    assert after[3].tool_calls == thinking.tool_calls


def test_interrupted_and_empty_results_stay(tmp_path):
    history = (
        user("q"),
        calls("a", "b"),
        Message("tool", tool_result=ToolResult("a", "", origin="interrupted")),
        result("b", ""),
    )
    assert not offload_tool_results(history, runtime(tmp_path)).changed
