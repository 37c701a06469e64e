"""Each oracle of memory on hand-made evidence: what it lets pass, and what it must not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pseudoclaude.messages import Message
from simulator.index_oracles import index_arrives, index_is_clean, prompts_and_logs
from simulator.memory_oracles import MemoryEvidence, judge_memory, memory_applicable
from simulator.values import (
    Disk,
    HandEdit,
    MemoryRecord,
    MemoryTurn,
    Notes,
    Op,
    OracleName,
    Prompt,
    Recording,
    Remembered,
    RequestSeen,
)

P, U = "/p/memory", "/u/memory"
OLD: Notes = {f"{P}/MEMORY.md": b"Ours.\n- [A](a.md): old\n", f"{P}/a.md": b"old", f"{U}/MEMORY.md": b"Ann.\n"}
NEW: Notes = {
    f"{P}/MEMORY.md": b"Ours.\n- [A](a.md): new\n",
    f"{P}/a.md": b"new",
    f"{U}/MEMORY.md": b"Ann.\n- [B](b.md): tea\n",
    f"{U}/b.md": b"tea",
}
BY_HAND = (HandEdit(0, f"{P}/MEMORY.md", b"Ours.\n- [A](a.md): old\n"), HandEdit(0, f"{U}/MEMORY.md", b"Ann.\n"))
TURN = MemoryTurn("turn one", "[]", 1)
RECORD = MemoryRecord((P, U), (OLD, NEW), BY_HAND, (TURN,), (), 200, 1_000)


def section(*lines: str) -> str:
    return "\n".join(["<memory>", *lines, "</memory>"])


def told(name: OracleName, seen: Remembered, *, record: MemoryRecord = RECORD, acked: int = 0, issued: int = 1) -> str:
    """What the oracle says against it; ``-`` when it says nothing at all."""
    case = MemoryEvidence(record, seen, acked, issued, turns_acked=acked, turns_issued=issued)
    verdict = judge_memory(name, case)
    if verdict is None:
        return "-"
    assert (verdict.outcome == "broken") == bool(verdict.message)
    return verdict.message


def without(notes: Notes, *names: str) -> Notes:
    return {path: data for path, data in notes.items() if not path.endswith(names)}


# --- M1


@pytest.mark.parametrize("notes", [OLD, NEW])
def test_both_old_and_both_new_hold(notes: Notes) -> None:
    assert told("M1", Remembered(notes)) == ""


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (Remembered({**OLD, **{path: NEW[path] for path in NEW if path.startswith(U)}}), "after change 0, the user's"),
        (Remembered(without(NEW, "b.md")), "after no change"),
        (Remembered(OLD, left=(f"{U}/journal-000001.json",)), "journal-000001.json is still there"),
        (Remembered(OLD, open_files=2), "2 files"),
        (Remembered({}, raised="OSError: EIO"), "raised OSError"),
    ],
)
def test_mixtures_and_leftovers_break_m1(seen: Remembered, words: str) -> None:
    assert words in told("M1", seen)


def test_what_was_promised_must_be_there_and_what_was_not_begun_must_not() -> None:
    assert "promised was change 1" in told("M1", Remembered(OLD), acked=1)
    assert "begun 0" in told("M1", Remembered(NEW), issued=0)


# --- M2


def test_lines_and_notes_that_agree_hold() -> None:
    assert told("M2", Remembered(NEW, section=section("## Project Memory", "- [A](a.md): new"))) == ""


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        (without(NEW, "b.md"), "a line names b"),
        ({**NEW, f"{P}/c.md": b"c"}, "the note c has no line"),
        ({**NEW, f"{U}/MEMORY.md": NEW[f"{U}/MEMORY.md"] * 2}, "the note b has 2 lines"),
    ],
)
def test_a_line_without_its_note_breaks_m2_and_so_on(notes: Notes, words: str) -> None:
    assert words in told("M2", Remembered(notes))


def test_lines_that_a_person_left_alone_or_doubled_are_theirs() -> None:
    doubled = {**OLD, f"{P}/MEMORY.md": b"- [A](a.md): x\n- [A](a.md): y\n- [C](c.md): gone\n"}
    edits = (*BY_HAND, HandEdit(1, f"{P}/MEMORY.md", doubled[f"{P}/MEMORY.md"]))
    assert told("M2", Remembered(doubled), record=replace(RECORD, edits=edits)) == ""
    assert "has 2 lines" in told("M2", Remembered(doubled)), "not when nobody but the product wrote them"
    shown = Remembered(doubled, section=section("- [C](c.md): gone"))
    assert "the prompt names c" in told("M2", shown, record=replace(RECORD, edits=edits))


def test_names_are_compared_as_people_read_them() -> None:
    notes = {f"{P}/MEMORY.md": "- [x](Cafe\u0301%20x.md)\n".encode(), f"{P}/caf\u00e9 x.md": b"x"}
    assert told("M2", Remembered(notes)) == ""


# --- M3


@pytest.mark.parametrize(
    ("index", "holds"),
    [
        (b"Ours.\n- [A](a.md): new\n", True),
        (b"- [A](a.md): new\nOurs.\nMore.\n", True),
        (b"- [A](a.md): new\n", False),
        (b"ours.\n- [A](a.md): new\n", False),
        (b"Ours.\r\n- [A](a.md): new\n", False),
    ],
)
def test_a_person_s_line_is_there_byte_for_byte(index: bytes, holds: bool) -> None:
    message = told("M3", Remembered({**NEW, f"{P}/MEMORY.md": index}))
    assert (message == "") is holds
    assert holds or "a line that a person wrote is gone" in message


def test_an_edit_that_is_under_way_may_be_there_or_not() -> None:
    edit = HandEdit(1, f"{U}/MEMORY.md", b"Dr. Ann.\n")
    record = replace(RECORD, edits=(*BY_HAND, edit))
    for data, holds in ((b"Ann.\n", True), (b"Dr. Ann.\n", True), (b"", False)):
        assert (told("M3", Remembered({**OLD, edit.path: data}), record=record) == "") is holds
    assert told("M3", Remembered(OLD), record=record, acked=1) != ""


def test_a_note_edited_while_an_update_was_under_way_is_as_edited() -> None:
    record = replace(RECORD, edits=(*BY_HAND, HandEdit(1, f"{P}/a.md", b"mine", meanwhile=True)))
    assert told("M3", Remembered({**OLD, f"{P}/a.md": b"mine"}), record=record, acked=1, issued=2) == ""
    assert "the edit is gone" in told("M3", Remembered(NEW), record=record, acked=1, issued=2)
    assert told("M3", Remembered(NEW), record=record, acked=1, issued=3) == "", "a later update may change it"


# --- M4


def test_all_lines_arrive_when_they_fit_and_the_newest_when_they_do_not() -> None:
    whole = section("## Project Memory", "Ours.", "- [A](a.md): old", "", "## User Memory", "Ann.")
    assert index_arrives(whole, OLD, 200, 1_000) == ""
    assert "'Ours.'" in index_arrives(section("- [A](a.md): old", "Ann."), OLD, 200, 1_000)
    assert index_arrives(section("- [A](a.md): old", "Ann."), OLD, 200, 80) == ""
    assert "'- [A](a.md): old'" in index_arrives(section("Ours.", "Ann."), OLD, 200, 80)
    assert "'Ours.'" in index_arrives("", OLD, 200, 1_000)


def test_a_line_without_its_note_need_not_arrive() -> None:
    notes = {f"{P}/MEMORY.md": b"- [Gone](gone.md): x\nOurs.\n"}
    assert index_arrives(section("Ours."), notes, 200, 1_000) == ""


def run_of(
    *messages: Message, system: str = "base", log: bytes = b"", spoken: tuple[str, ...] = (), later: str = "base"
) -> Recording:
    """One session of two requests; the log holds ``log``."""
    return Recording(
        scenario="x/y",
        content_hash="",
        seed=0,
        variant="product",
        base=Disk.empty(),
        ops=(Op("create", inode=7, parent=1, name="conversation.jsonl"), Op("write", inode=7, data=log)),
        sessions=(),
        dialect="anthropic",
        durability="always",
        requests=(RequestSeen("turn", system, messages), RequestSeen("turn", later, messages)),
        prompts=(Prompt("/s", 0, system, {}),),
        spoken=spoken,
    )


def test_a_run_whose_index_stays_in_the_prompt_holds() -> None:
    assert prompts_and_logs(run_of(Message("user", "hello"), log=b'{"content":"hello"}')) == ""


@pytest.mark.parametrize(
    ("recording", "words"),
    [
        (run_of(Message("user", "## User Memory\nAnn.")), "stands in a message of a turn request"),
        (run_of(log=b'{"content":"## Project Memory\\nx"}'), "stands in a session's log"),
        (run_of(later="another"), "another system prompt"),
    ],
)
def test_an_index_in_a_message_or_a_log_breaks_m4(recording: Recording, words: str) -> None:
    assert words in prompts_and_logs(recording)


def test_what_the_user_said_themselves_is_no_leak() -> None:
    said = "What does ## User Memory mean?"
    assert prompts_and_logs(run_of(Message("user", said), spoken=(said,))) == ""


def test_a_prompt_that_changed_at_a_restart_breaks_m4() -> None:
    recording = run_of()
    prompts = (*recording.prompts, Prompt("/s", 1, "changed", None))
    assert "resumed with another system prompt" in prompts_and_logs(replace(recording, prompts=prompts))


def test_without_memory_only_m4_applies() -> None:
    assert memory_applicable(run_of()) == {"M4"}


# --- M5

LONG = "世" * 60
LONG_FLAGS = "🇩🇪" * 30


@pytest.mark.parametrize(
    ("index", "limits", "words"),
    [
        ("## Project Memory\nOurs.\n- [A](a.md): old", (200, 1_000), ""),
        ("## Project Memory\n- [A](a.md): old\n[1 of 2 lines left out, oldest first: Ours.]", (200, 1_000), ""),
        ("## Project Memory\nOurs.\n- [A](a.md): old", (2, 1_000), "has 3 lines"),
        ("## Project Memory\nOurs.\n- [A](a.md): old", (200, 20), "allowed are 200 and 20"),
        ("## Project Memory\nOur", (200, 1_000), "would have fitted"),
        ("## Project Memory\nTheirs.", (200, 1_000), "stands in no index"),
        ("## Project Memory\nOurs.\ufffd", (200, 1_000), "replacement character"),
        ("## Project Memory\nOurs.\ud83d", (200, 1_000), "not UTF-8"),
        ("## Project Memory\n</memory>\nOurs.", (200, 1_000), "wrapper"),
        (LONG[:40], (200, 200), ""),
        (LONG_FLAGS[:20], (200, 200), ""),
        (LONG_FLAGS[:21], (200, 200), "inside a character"),
    ],
)
def test_the_index_of_a_prompt(index: str, limits: tuple[int, int], words: str) -> None:
    notes = {**OLD, f"{U}/MEMORY.md": f"{LONG}\n{LONG_FLAGS}\n".encode()}
    found = index_is_clean(section(index), notes, *limits)
    assert words in found
    assert bool(words) == bool(found)


def test_no_index_is_clean() -> None:
    assert index_is_clean("", {}, 200, 1_000) == ""


# --- M6


def test_a_turn_that_was_handed_over_is_finished_once() -> None:
    assert told("M6", Remembered(OLD, finished=NEW, taken=1), acked=0) == ""
    assert "taken up a second time" in told("M6", Remembered(OLD, finished=NEW, taken=1, again=1))
    assert "still wait" in told("M6", Remembered(OLD, finished=OLD, taken=1, waiting=1))


def test_a_promised_turn_that_is_not_taken_up_breaks_m6() -> None:
    case = MemoryEvidence(RECORD, Remembered(OLD, finished=OLD), 0, 0, turns_acked=1, turns_issued=1)
    verdict = judge_memory("M6", case)
    assert verdict is not None
    assert "not as after turn 1" in verdict.message
    begun = judge_memory("M6", replace(case, turns_acked=0))
    assert begun is not None
    assert begun.outcome == "held", "it was not promised yet"


@pytest.mark.parametrize("turn", [MemoryTurn("turn one"), MemoryTurn("turn one", "[]")])
def test_a_turn_that_the_run_itself_did_not_finish_is_not_compared(turn: MemoryTurn) -> None:
    assert told("M6", Remembered(OLD, finished=OLD), record=replace(RECORD, turns=(turn,))) == "-"


def test_times_in_notes_may_differ_between_the_run_and_its_finishing() -> None:
    dated = {**NEW, f"{P}/a.md": b"updated: '2025'\nnew"}
    record = replace(RECORD, states=(OLD, {**NEW, f"{P}/a.md": b"updated: '2026'\nnew"}))
    assert told("M6", Remembered(OLD, finished=dated, taken=1), record=record) == ""
