from pseudoclaude.compact.ledger import Ledger, ResultTurn, result_turns
from tests.compact.build import calls, result, said, user


def test_turns_are_runs_of_results_and_the_last_may_still_grow():
    history = (
        user("q"),
        calls("a", "b"),
        result("a", "1"),
        result("b", "2"),
        said("x"),
        user("q"),
        calls("c", "d"),
        result("c", "3"),
    )
    assert list(result_turns(history, 0)) == [ResultTurn(2, 4, True), ResultTurn(7, 8, False)]


def test_a_settled_history_has_nothing_to_decide_until_something_is_appended():
    ledger = Ledger()
    history = (user("q"), calls("a"), result("a", "1"))
    assert not ledger.nothing_to_decide(history)
    ledger.settle(history, [])
    assert ledger.nothing_to_decide(history)
    longer = (*history, calls("a"), result("a", "2"))
    assert ledger.open_turns(longer) == [ResultTurn(4, 5, True)]


def test_a_turn_that_may_grow_is_not_frozen():
    ledger = Ledger()
    history = (user("q"), calls("a", "b"), result("a", "1"))
    ledger.settle(history, [])
    assert ledger.decided == 2
    assert ledger.open_turns((*history, result("b", "2"))) == [ResultTurn(2, 4, True)]


def test_a_failed_turn_comes_back_until_it_is_settled():
    ledger = Ledger()
    history = (user("q"), calls("a"), result("a", "1"), said("x"))
    turn = ResultTurn(2, 3, True)
    ledger.settle(history, [turn])
    assert not ledger.nothing_to_decide(history)
    assert ledger.open_turns(history) == [turn]
    ledger.settle(history, [])
    assert ledger.nothing_to_decide(history)


def test_another_history_starts_over():
    ledger = Ledger()
    history = (user("q"), calls("a"), result("a", "1"))
    ledger.settle(history, [ResultTurn(2, 3, True)])
    other = (user("new"), calls("b"), result("b", "1"))
    assert ledger.open_turns(other) == [ResultTurn(2, 3, True)]
    assert ledger.decided == 0
