"""Each oracle on evidence made by hand: held where its guarantee holds, broken where it does not, silent where it says nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pseudoclaude.messages import History, Message, Spill, ToolCall, ToolResult
from simulator.oracles import Evidence, applicable, bounds_at, excused_at, judge, settled
from simulator.values import (
    Disk,
    Loaded,
    Mark,
    Op,
    OracleName,
    Recording,
    Recovered,
    SessionRecord,
    SpillSeen,
)

U, A, B = Message("user", "u"), Message("assistant", "a"), Message("user", "b")
CALLS = Message("assistant", "two", (ToolCall("c1", "t", "{}"), ToolCall("c2", "t", "{}")))
RESULT = Message("tool", tool_result=ToolResult("c1", "r"))
HALF = Message("assistant", "two", (ToolCall("c1", "t", "{}"),))
SUMMARY = (Message("user", "summary"), B)
PROBE = Message("user", "probe")
HISTORIES: tuple[History, ...] = ((), (U,), (U, A), (U, A, B), SUMMARY)
SESSION = SessionRecord("/s", HISTORIES, frozenset({4}))
RECORDING = Recording("t/t", "0" * 8, 0, "product", Disk.empty(), (), (SESSION,), "anthropic", "always")


def evidence(
    messages: History, acked: int, issued: int, session: SessionRecord = SESSION, **changes: object
) -> Evidence:
    loaded = Loaded("/s", "clean", messages)
    recovered = Recovered(loaded, loaded, True, PROBE, Loaded("/s", "clean", (*messages, PROBE)))
    return Evidence(RECORDING, session, replace(recovered, **changes), acked, issued)


def outcome(name: OracleName, case: Evidence) -> str | None:
    verdict = judge(name, case)
    return None if verdict is None else verdict.outcome


@pytest.mark.parametrize(
    ("messages", "acked", "issued", "o3", "o4", "o5", "o6"),
    [
        ((U, A), 2, 3, "held", "held", "held", None),
        ((U, A, B), 2, 3, "held", "held", "held", None),
        ((U,), 2, 3, "broken", "held", "held", None),
        ((U, A, B), 2, 2, "held", "broken", "held", None),
        ((U, B), 2, 3, "broken", "held", "broken", None),
        ((A, U), 2, 3, "broken", "held", "broken", None),
        ((U, Message("user", "stranger")), 1, 3, "held", "broken", "broken", None),
        ((U, A, B), 3, 4, "held", "held", "held", "held"),
        (SUMMARY, 3, 4, "held", "held", "held", "held"),
        (SUMMARY[:1], 3, 4, "broken", "held", "broken", "broken"),
        ((), 3, 4, "broken", "held", "held", "broken"),
        ((U, A, *SUMMARY), 3, 4, "held", "held", "broken", "broken"),
        ((U, A, B), 4, 4, "broken", "held", "held", None),
    ],
)
def test_histories_against_the_bounds(
    messages: History, acked: int, issued: int, o3: str, o4: str, o5: str, o6: str | None
) -> None:
    case = evidence(messages, acked, issued)
    assert [outcome(name, case) for name in ("O3", "O4", "O5", "O6")] == [o3, o4, o5, o6]


def test_an_acknowledged_call_without_a_result_may_be_missing_only_if_it_is_listed_as_trimmed() -> None:
    session = SessionRecord("/s", ((), (U,), (U, CALLS), (U, CALLS, RESULT)))
    listed = evidence((U, HALF, RESULT), 3, 3, session, loaded=Loaded("/s", "repaired", (U, HALF, RESULT), ("c2",)))
    assert [outcome(name, listed) for name in ("O3", "O5")] == ["held", "held"]
    unlisted = evidence((U, HALF, RESULT), 3, 3, session)
    assert outcome("O5", unlisted) == "broken"
    wrongly = evidence((U, CALLS, RESULT), 3, 3, session, loaded=Loaded("/s", "repaired", (U, CALLS, RESULT), ("c2",)))
    assert outcome("O5", wrongly) == "broken"
    lost = evidence((U,), 3, 3, session, loaded=Loaded("/s", "repaired", (U,), ("c1", "c2")))
    assert outcome("O3", lost) == "broken", "the answered call is gone with its result"


def test_settled_keeps_text_and_answered_calls() -> None:
    assert settled((U, CALLS, RESULT)) == ((U, HALF, RESULT), ("c2",))
    bare = Message("assistant", "", (ToolCall("x", "t", "{}"),), stop="tool_use")
    assert settled((U, bare)) == ((U,), ("x",))
    assert settled((U, A)) == ((U, A), ())


def test_raising_and_protocol_violations() -> None:
    fine = evidence((U,), 1, 1)
    assert [outcome(name, fine) for name in ("O1", "O2")] == ["held", "held"]
    for field in ("loaded", "reopened", "usable"):
        assert outcome("O1", evidence((U,), 1, 1, **{field: Loaded("/s", raised="ValueError: x")})) == "broken"
        assert (
            outcome("O2", evidence((U,), 1, 1, **{field: Loaded("/s", messages=(U,), violations=("A20",))})) == "broken"
        )


@pytest.mark.parametrize(
    ("size", "digest", "expected"),
    [(5, "d", "held"), (-1, "", "broken"), (4, "d", "broken"), (5, "e", "broken")],
)
def test_spills(size: int, digest: str, expected: str) -> None:
    seen = SpillSeen("tool-results/x", 5, "d", size, digest)
    assert outcome("O7", evidence((U,), 1, 1, loaded=Loaded("/s", messages=(U,), spills=(seen,)))) == expected


def test_recovery_and_use() -> None:
    assert outcome("O9", evidence((U,), 1, 1)) == "held"
    assert outcome("O9", evidence((U,), 1, 1, untouched=False)) == "broken"
    assert outcome("O9", evidence((U,), 1, 1, reopened=Loaded("/s", "clean", ()))) == "broken"
    assert outcome("O11", evidence((U,), 1, 1)) == "held"
    assert outcome("O11", evidence((U,), 1, 1, usable=Loaded("/s", "clean", (U,)))) == "broken"
    assert outcome("O11", evidence((U,), 1, 1, usable=Loaded("/s", "clean", (PROBE,)))) == "broken"
    assert outcome("O11", evidence((U,), 1, 1, open_files=1)) == "broken"


def test_what_applies_follows_from_the_record() -> None:
    assert {"O6"} <= applicable(RECORDING, SESSION)
    assert "O7" not in applicable(RECORDING, SESSION)
    plain = SessionRecord("/s", HISTORIES[:4])
    assert "O6" not in applicable(RECORDING, plain)
    preview = Message("tool", tool_result=ToolResult("c1", "p", spill=Spill("tool-results/x", 5, "d")))
    assert "O7" in applicable(RECORDING, SessionRecord("/s", ((), (U, HALF, preview))))
    assert not {"O3", "O5"} & applicable(replace(RECORDING, durability="off"), SESSION)


def test_a_disk_that_lied_excuses_until_the_product_could_make_up_for_it() -> None:
    ops = (
        Op("write", inode=5, data=b"x"),
        Op("fsync", inode=5, error="LATE"),
        Op("ack", mark=Mark("/s", 1)),
        Op("fsync", inode=5, error="EIO"),
        Op("write", inode=5, data=b"y"),
        Op("fsync", inode=5),
        Op("ack", mark=Mark("/s", 2)),
        Op("fsync", inode=5, error="EIO"),
        Op("ack", mark=Mark("/s", 3)),
    )
    expected = [False, False, True, True, True, True, True, False, False, False]
    assert [excused_at(ops, point, power=True) for point in range(10)] == expected
    case = evidence((U,), 3, 3)
    case.excused = True
    assert [outcome(name, case) for name in ("O3", "O4", "O5")] == [None, "held", None]


def test_a_failed_sync_that_took_bytes_back_excuses_only_a_kill() -> None:
    ops = (Op("fsync", inode=5, error="EIO"), Op("truncate", inode=5), Op("ack", mark=Mark("/s", 1)))
    assert [excused_at(ops, point, power=False) for point in range(4)] == [False, True, True, False]
    assert not any(excused_at(ops, point, power=True) for point in range(4))


def test_opening_may_write_where_a_failed_sync_left_its_mark() -> None:
    assert outcome("O9", evidence((U,), 1, 1, untouched=False, marked=True)) == "held"


def test_bounds_follow_the_marks_before_the_crash() -> None:
    ops = (
        Op("issue", mark=Mark("/s", 1)),
        Op("ack", mark=Mark("/s", 1)),
        Op("issue", mark=Mark("/s", 2)),
        Op("issue", mark=Mark("/other", 7)),
        Op("ack", mark=Mark("/s", 2, durable=False)),
    )
    assert [bounds_at(ops, "/s", point, power=True) for point in range(6)] == [
        (0, 0),
        (0, 1),
        (1, 1),
        (1, 2),
        (1, 2),
        (1, 2),
    ]
    assert bounds_at(ops, "/s", 5, power=False) == (2, 2)
