"""What repair does, one behaviour each."""

from __future__ import annotations

import pytest

from pseudoclaude.messages import Message, Native, ToolCall, ToolResult
from pseudoclaude.protocol import Repair, repair
from pseudoclaude.protocol.repair import MISSING_BEGINNING, OUTCOME_UNKNOWN
from tests.protocol.build import answer, asks, calls, says, signed


def _actions(repairs: tuple[Repair, ...]) -> list[tuple[str, int, str]]:
    return [(step.rule, step.position, step.action) for step in repairs]


def test_a_valid_history_is_returned_as_it_is() -> None:
    history = (asks("a"), calls("c1", "c2"), answer("c1", "x"), answer("c2", "y"), says("b"), asks("d"))
    repaired, repairs = repair(history)
    assert repaired is history
    assert repairs == ()


def test_results_in_another_order_than_the_calls_are_left_alone() -> None:
    history = (asks("a"), calls("c1", "c2"), answer("c2", "y"), answer("c1", "x"), asks("d"))
    repaired, repairs = repair(history)
    assert repaired is history
    assert repairs == ()


def test_a_list_comes_back_as_a_tuple() -> None:
    assert repair([asks("a")]) == ((asks("a"),), ())


def test_an_empty_history_stays_empty() -> None:
    assert repair(()) == ((), ())


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="'trim' or 'answer', not 'drop'"):
        repair((asks("a"),), dangling="drop")  # type: ignore[arg-type]


def test_trim_removes_the_call_and_keeps_text_and_answered_calls() -> None:
    history = (asks("a"), calls("c1", "c2", text="look"), answer("c2", "ok"))
    repaired, repairs = repair(history)
    assert repaired == (asks("a"), calls("c2", text="look"), answer("c2", "ok"))
    assert _actions(repairs) == [("A20", 1, "trim_call")]
    assert repairs[0].removed == (history[1].tool_calls[0],)


def test_trim_drops_a_message_of_which_nothing_is_left() -> None:
    history = (asks("a"), calls("c1"))
    repaired, repairs = repair(history)
    assert repaired == (asks("a"),)
    assert _actions(repairs) == [("A20", 1, "trim_call"), ("A20", 1, "drop_message")]
    assert repairs[1].removed == (history[1],)


def test_trim_ends_the_wait_for_a_tool() -> None:
    repaired, _ = repair((asks("a"), calls("c1", text="look")))
    assert repaired == (asks("a"), says("look"))


def test_answer_keeps_the_call_and_says_that_the_outcome_is_unknown() -> None:
    history = (asks("a"), calls("c1", "c2"), answer("c2", "ok"))
    repaired, repairs = repair(history, dangling="answer")
    stand_in = Message("tool", tool_result=ToolResult("c1", OUTCOME_UNKNOWN, is_error=True, origin="interrupted"))
    assert repaired == (*history[:2], stand_in, history[2])
    assert _actions(repairs) == [("A20", 1, "answer_call")]
    assert repairs[0].removed == ()


def test_a_late_result_moves_behind_its_call() -> None:
    history = (asks("a"), calls("c1", "c2"), answer("c2", "y"), asks("b"), answer("c1", "x"), says("d"))
    repaired, repairs = repair(history)
    assert repaired == (asks("a"), calls("c1", "c2"), answer("c1", "x"), answer("c2", "y"), asks("b"), says("d"))
    assert _actions(repairs) == [("A21", 4, "move_result")]


def test_an_orphan_result_is_dropped_and_named_whole() -> None:
    orphan = answer("c9", "x" * 1000)
    repaired, repairs = repair((asks("a"), orphan, says("b")))
    assert repaired == (asks("a"), says("b"))
    assert _actions(repairs) == [("A21", 1, "drop_result")]
    assert repairs[0].removed == (orphan,)


def test_a_result_before_its_call_is_an_orphan() -> None:
    repaired, repairs = repair((asks("a"), answer("c1", "x"), calls("c1")))
    assert repaired == (asks("a"),)
    assert [step.action for step in repairs] == ["drop_result", "trim_call", "drop_message"]


def test_the_first_of_two_real_results_stays() -> None:
    history = (asks("a"), calls("c1"), answer("c1", "x"), answer("c1", "y"))
    repaired, repairs = repair(history)
    assert repaired == history[:3]
    assert _actions(repairs) == [("A23", 3, "drop_result")]
    assert repairs[0].removed == (history[3],)


def test_a_real_result_takes_the_place_of_a_stand_in() -> None:
    stand_in = answer("c1", OUTCOME_UNKNOWN, origin="interrupted")
    history = (asks("a"), calls("c1"), stand_in, asks("b"), answer("c1", "real"))
    repaired, repairs = repair(history)
    assert repaired == (asks("a"), calls("c1"), answer("c1", "real"), asks("b"))
    assert _actions(repairs) == [("A23", 4, "replace_result")]
    assert repairs[0].removed == (stand_in,)


def test_a_stand_in_never_takes_the_place_of_a_real_result() -> None:
    history = (asks("a"), calls("c1"), answer("c1", "real"), answer("c1", OUTCOME_UNKNOWN, origin="interrupted"))
    assert repair(history)[0] == history[:3]


def test_a_doubled_result_is_not_the_late_answer_of_an_older_call() -> None:
    history = (asks("a"), calls("call_0"), asks("b"), calls("call_0"), answer("call_0", "y"), answer("call_0", "y"))
    repaired, repairs = repair(history)
    assert repaired == (asks("a"), asks("b"), calls("call_0"), answer("call_0", "y"))
    assert [step.action for step in repairs] == ["trim_call", "drop_message", "drop_result"]


def test_another_result_goes_to_the_older_open_call_of_that_id() -> None:
    history = (asks("a"), calls("call_0"), asks("b"), calls("call_0"), answer("call_0", "y"), answer("call_0", "x"))
    repaired, _ = repair(history)
    assert repaired == (
        asks("a"),
        calls("call_0"),
        answer("call_0", "x"),
        asks("b"),
        calls("call_0"),
        answer("call_0", "y"),
    )


def test_a_missing_beginning_is_said() -> None:
    repaired, repairs = repair((says("b"), asks("c")))
    assert repaired == (asks(MISSING_BEGINNING), says("b"), asks("c"))
    assert _actions(repairs) == [("A02", 0, "insert_user")]


def test_a_history_that_lost_its_beginning_inside_a_round() -> None:
    repaired, repairs = repair((answer("c1", "x"), says("b")))
    assert repaired == (asks(MISSING_BEGINNING), says("b"))
    assert [step.action for step in repairs] == ["drop_result", "insert_user"]


def test_a_compaction_block_of_the_provider_is_the_beginning() -> None:
    first = Message(
        "assistant", native=Native("anthropic", "messages", "m", [{"type": "compaction", "content": "sum"}])
    )
    history = (first, asks("go"))
    assert repair(history) == (history, ())


def test_signed_payloads_after_an_edit_leave_and_those_before_stay() -> None:
    before, after, unsigned = signed("b"), signed("d"), says("f", [{"type": "text", "text": "f", "citations": []}])
    history = (asks("a"), before, answer("c9", "orphan"), asks("c"), after, asks("e"), unsigned)
    repaired, repairs = repair(history)
    assert repaired == (asks("a"), before, asks("c"), says("d"), asks("e"), unsigned)
    assert _actions(repairs) == [("A21", 2, "drop_result"), ("A45", 4, "drop_native")]
    assert repairs[1].removed == (after.native,)


@pytest.mark.parametrize("odd", [["odd"], {"odd": 1}, 5, None], ids=repr)
def test_a_payload_of_no_type_is_not_signed_and_stays(odd: object) -> None:
    own = Message("assistant", "x", native=Native("openai", "responses", "m", [{"type": odd}]))
    assert repair((own,)) == ((asks(MISSING_BEGINNING), own), repair((own,))[1])
    assert _actions(repair((own,))[1]) == [("A02", 0, "insert_user")]


def test_a_repair_at_the_tail_costs_no_signature() -> None:
    caller = signed("look", ToolCall("c1", "f", "{}"))
    history = (asks("a"), signed("b"), asks("c"), caller)
    repaired, _ = repair(history, dangling="answer")
    assert repaired[:4] == history


def test_an_edited_message_loses_its_own_form() -> None:
    caller = signed("look", ToolCall("c1", "f", "{}"))
    repaired, repairs = repair((asks("a"), caller))
    assert repaired == (asks("a"), says("look"))
    assert [(step.action, step.removed) for step in repairs][1] == ("drop_native", (caller.native,))


def test_empty_texts_ids_and_arguments_stay_as_they_are() -> None:
    odd = Message("assistant", "", (ToolCall("functions.Bash:0", "fs.read", '{"cmd": "'),))
    history = (asks(""), says("  \n"), says(""), asks("a"), odd, answer("functions.Bash:0", ""), asks("b"))
    repaired, repairs = repair(history)
    assert repaired is history
    assert repairs == ()
