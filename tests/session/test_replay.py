"""Replay: what numbers, replaces, older markers and batch marks mean."""

import pytest

from pseudoclaude.session.findings import EACH_MAX
from tests.session.build import HEADER, assistant, calls, kinds, line, lines, loaded, log_of, replaced, result, user

A, B, C = user("a"), assistant("b"), user("c")


def batch(n: int, s: int) -> bytes:
    return line(user(f"m{n}"), n, synced=s)


def said(data: bytes) -> list[str]:
    return [message.content for message in loaded(data).messages]


def test_file_order_is_the_truth():
    got = loaded(HEADER + line(user("two"), 2) + line(user("one"), 1))
    assert [message.content for message in got.messages] == ["two", "one"]
    assert kinds(got) == ["gap", "conflict"]
    assert got.next_n == 3


@pytest.mark.parametrize(
    ("data", "wanted", "found"),
    [
        (line(A, 1) + line(A, 1), ["a"], ["duplicate"]),
        (line(A, 1) + line(B, 2) + line(A, 1), ["a", "b"], ["duplicate"]),
        (line(A, 1) + line(B, 1), ["a", "b"], ["conflict"]),
        (line(A, 1) + line(C, 3), ["a", "c"], ["gap"]),
        (line(A, 1) + b'{"type":"future","n":2}\n' + line(C, 3), ["a", "c"], ["unknown_entry"]),
        (line(A, 1) + b'{"type":"future","n":2}\n' * 2 + line(C, 3), ["a", "c"], ["unknown_entry", "duplicate"]),
        (line(A, 1) + b'{"role":"user","content":"free"}\n' + line(C, 2), ["a", "free", "c"], []),
        (line(A, 1) + replaced([B, C], 2) * 2, ["b", "c"], ["repair", "duplicate"]),
    ],
)
def test_numbers_tell_what_is_missing_or_doubled(data: bytes, wanted: list[str], found: list[str]):
    got = loaded(HEADER + data)
    assert [message.content for message in got.messages if "missing" not in message.content] == wanted
    assert sorted(kinds(got)) == sorted(found)


def test_numbers_are_compared_only_since_the_last_replace():
    data = HEADER + b"".join(lines([A, B, C])) + replaced([user("s")], 9) + line(B, 10)
    got = loaded(data)
    assert got.unsettled == ()
    assert [finding.kind for finding in got.findings] == ["gap"]
    lower = loaded(HEADER + b"".join(lines([A, B, C])) + replaced([user("s")], 2) + line(B, 3))
    assert said_of(lower) == ["s", "b"]
    assert [(finding.kind, finding.settled) for finding in lower.findings] == [("conflict", False)]


def said_of(got) -> list[str]:
    return [message.content for message in got.messages]


def test_a_gap_before_a_recover_is_none():
    got = loaded(HEADER + line(A, 1) + replaced([A], 5, "recover"))
    assert got.findings == ()
    assert got.state == "clean"


def test_a_bad_line_is_a_settled_note_without_a_gap_and_damage_with_one():
    tear = line(B, 2)[:20] + b"\n"
    ended = loaded(HEADER + line(A, 1) + tear + line(B, 2))
    assert [(finding.kind, finding.settled) for finding in ended.findings] == [("torn", True)]
    assert ended.state == "clean"
    lost = loaded(HEADER + line(A, 1) + tear + line(C, 3))
    assert [(finding.kind, finding.settled) for finding in lost.findings] == [("torn", False), ("gap", False)]
    assert lost.state == "damaged"


def test_before_a_line_without_a_number_nothing_says_that_a_bad_line_was_a_tear():
    got = loaded(b"garbage\n" + b'{"role":"user","content":"a"}\n')
    assert [(finding.kind, finding.settled) for finding in got.findings] == [("json", False)]


def test_a_whole_replace_settles_everything_before_it():
    got = loaded(HEADER + line(A, 1) + b"garbage\n" + line(C, 5) + line(A, 2) + replaced([user("s")], 6))
    assert got.unsettled == ()
    assert len(got.findings) == 3
    assert got.state == "clean"


def test_a_whole_record_that_is_no_message_is_damage_even_where_no_number_is_missing():
    raw = b'{"type":"message","n":2,"role":"user","tool_calls":[{"id":"c","name":"t","arguments":"{}"}]}\n'
    got = loaded(HEADER + line(A, 1) + raw + line(B, 3))
    assert [(finding.kind, finding.settled) for finding in got.findings] == [("schema", False)]
    assert got.state == "damaged"


def test_a_bare_marker_of_an_older_log_clears_at_once_and_what_follows_is_the_snapshot():
    older = b'{"role":"user","content":"old","model":"m1"}\n{"type":"replace","reason":"compact"}\n'
    assert said(older + b'{"role":"user","content":"new"}\n') == ["new"]
    assert loaded(older + b'{"role":"user","content":"new"}\n').findings == ()
    bare = loaded(older)
    assert bare.messages == ()
    assert kinds(bare) == ["incomplete_replace"]
    assert "cleared 1 messages" in bare.findings[0].text


def test_a_torn_replace_is_not_applied():
    step = replaced([user("s")], 3)
    for cut in range(1, len(step) - 1):
        assert said(log_of(A, B) + step[:cut]) == ["a", "b"]


@pytest.mark.parametrize(
    ("records", "wanted", "cut"),
    [
        ([(1, 0), (2, 0), (4, 0)], ["m1", "m2"], True),
        ([(1, 0), (2, 0), (4, 0), (5, 4)], ["m1", "m2", "m4", "m5"], False),
        ([(1, 0), (3, 0), (4, 2), (6, 2)], ["m1", "m3", "m4"], True),
        ([(1, 0), (3, 0), (5, 0), (6, 3)], ["m1", "m3"], True),
        ([(1, 0), (3, 2)], ["m1", "m3"], False),
    ],
)
def test_a_hole_above_every_later_mark_was_never_acknowledged_and_ends_the_history(records, wanted, cut):
    got = loaded(HEADER + b"".join(batch(n, s) for n, s in records))
    assert said_of(got) == wanted
    assert got.cut == cut
    assert got.state == ("repaired" if cut and (3, 0) not in records else "damaged")


def test_a_hole_that_nobody_acknowledged_is_no_damage_though_nul_bytes_lie_in_it():
    got = loaded(HEADER + batch(1, 0) + bytes(90) + batch(3, 0))
    assert (said_of(got), got.state) == (["m1"], "repaired")
    assert "1 of the messages" in got.findings[-1].text


def test_the_model_is_the_last_one_named_and_a_replace_names_its_own():
    assert loaded(HEADER + line(A, 1, model="m1") + line(B, 2)).model == "m1"
    assert loaded(HEADER + line(A, 1, model="m1") + line(B, 2, model="m2")).model == "m2"
    assert loaded(HEADER + line(A, 1, model="m1") + replaced([A], 2, model="m3")).model == "m3"
    assert loaded(HEADER + line(A, 1, model="m1") + replaced([A], 2)).model == ""


def test_findings_stay_few_whatever_the_log_holds():
    garbage = loaded(b"garbage\n" * 5_000)
    assert len(garbage.findings) == EACH_MAX + 1
    assert "4,900 more of this kind" in garbage.findings[-1].text
    assert garbage.bad_lines == 5_000
    assert garbage.state == "damaged"
    doubled = loaded(HEADER + line(A, 1) * 3_000)
    assert len(doubled.findings) == EACH_MAX + 1
    assert doubled.state == "clean"
    tears = loaded(HEADER + b"".join(line(user("x"), n)[:9] + b"\n" + line(user("x"), n) for n in range(1, 500)))
    assert tears.unsettled == ()
    replaced_all = loaded(b"garbage\n" * 500 + HEADER + replaced([A], 1))
    assert replaced_all.unsettled == ()


def test_a_long_run_of_plain_records_gives_what_one_by_one_gives():
    history = [user(f"é {n}") if n % 2 else assistant(f"\n{n}") for n in range(1, 1_500)]
    whole = b"".join(lines(history))
    assert loaded(HEADER + whole).messages == tuple(history)
    broken = whole.replace(b'"content":"\\n700"', b'"content":"\\n70X"')
    got = loaded(HEADER + broken)
    assert kinds(got) == ["crc", "gap"]
    assert len(got.messages) == len(history) - 1
    spaced = b"".join(raw[:-1] + b" \r\n" for raw in lines(history))
    assert loaded(HEADER + spaced).messages == tuple(history)
    assert loaded(HEADER + spaced).findings == ()


def test_where_repair_findings_point_to():
    data = HEADER + b"".join(lines([A, calls("c"), B, result("d", "lost text")]))
    got = loaded(data)
    repairs = {finding.text.split(";")[0]: finding for finding in got.findings}
    assert data[repairs["call 'c' of 'read' has no result"].offset :].startswith(lines([A, calls("c")])[1][:-1])
    orphan = repairs["no call 'd' stands before this result"]
    assert data[orphan.offset : orphan.offset + orphan.length] == lines([A, A, A, result("d", "lost text")])[3][:-1]
    assert "'lost text'" in orphan.text
