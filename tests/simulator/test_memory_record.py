"""Memory in a recorded run: what the scenario may say, and what the record holds of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator.record import record
from simulator.run import run_scenario
from simulator.scenario import Scenario, ScenarioError, load_scenario, schema
from simulator.values import MEMORY, TURNS, Recording
from simulator.world import PROJECT_STORE, USER_STORE

ROOT = Path(__file__).resolve().parents[2] / "scenarios"
MEMORIES = ROOT / "memory"

GOOD = """
why: a turn is remembered
memory: {user: {MEMORY.md: "Call me Ann.\\n"}}
provider:
  script: [{text: "Noted."}, {text: "Yes."}]
  memory: [{text: '[{"action": "create", "level": "project", "slug": "tea", "name": "Tea", "body": "Tea."}]'}, {text: "[]"}]
steps: [{user: "Tea, please."}, {new_session: {}}, {user: "And now?"}]
faults: {crash: {models: [kill]}}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "suite" / "name.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def loaded(folder: Path, text: str) -> Scenario:
    return load_scenario(written(folder, text))


def of(name: str) -> Recording:
    return record(load_scenario(MEMORIES / f"{name}.yaml"))


# --- the file --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("memory: {user:", "memory: {users:"), "users"),
        (("MEMORY.md:", "../MEMORY.md:"), "no name for a file in a store"),
        (("MEMORY.md:", "MEMORY.txt:"), "no name for a file in a store"),
        (('"Call me Ann.\\n"', "null"), "null removes a file"),
        (('{user: "Tea, please."}', '{user: "x", memory: {kill: {call: teleport}}}'), "$.steps[0].memory.kill"),
        (('{user: "Tea, please."}', '{user: "x", memory: {later: true, kill: {}}}'), "later"),
        (('{user: "Tea, please."}', '{user: "x", memory: {when: never}}'), "when"),
        (('{user: "Tea, please."}', "{edit: {projects: {}}}"), "$.steps[0].edit"),
        (("faults:", "expect: {oracles: [M9]}\nfaults:"), "M9"),
    ],
)
def test_a_mistake_is_one_line_that_says_where(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(ScenarioError) as caught:
        loaded(tmp_path, GOOD.replace(*change))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_schema_speaks_of_memory() -> None:
    text = json.dumps(schema())
    assert all(name in text for name in ("StoreFiles", "UpdateMeanwhile", "KillAt", "EditStep"))


def test_a_kill_needs_a_restart(tmp_path: Path) -> None:
    result = run_scenario(loaded(tmp_path, GOOD.replace('{user: "Tea, please."}', '{user: "x", memory: {kill: {}}}')))
    assert result.verdict == "not_run"
    assert "a restart with kill: true" in result.problem


@pytest.mark.slow
def test_a_note_by_hand_without_a_line_gets_one_at_the_next_start(tmp_path: Path) -> None:
    result = run_scenario(loaded(tmp_path, GOOD.replace("[{user:", "[{edit: {project: {by-hand.md: x}}}, {user:")))
    assert (result.verdict, result.problem) == ("held", "")


def test_an_edit_needs_memory(tmp_path: Path) -> None:
    text = 'why: x\nprovider: {script: [{text: "hi"}]}\nsteps: [{edit: {user: {a.md: x}}}, {user: "go"}]\n'
    result = run_scenario(loaded(tmp_path, text))
    assert result.verdict == "not_run"
    assert "$.steps[0]" in result.problem


# --- the record ------------------------------------------------------------------------------------------------


def test_a_run_without_memory_makes_no_call_for_it() -> None:
    recording = record(load_scenario(ROOT / "append_replace" / "summary.yaml"))
    assert recording.memory is None
    assert not any("memory" in op.site or "prompt" in op.site for op in recording.ops)
    assert not any(op.mark is not None and op.mark.folder in (MEMORY, TURNS) for op in recording.ops)


def test_two_recordings_are_equal() -> None:
    assert of("edited_before_restart") == of("edited_before_restart")


def test_the_states_are_those_before_and_after_the_update() -> None:
    memory = of("both_stores").memory
    assert memory is not None
    before, started, after, again, last = memory.states
    assert before == started
    assert after == again == last != before
    assert [turn.step for turn in memory.turns] == [2, 4]
    assert b"make -j2" in after[f"{PROJECT_STORE}/build.md"]
    assert after[f"{USER_STORE}/MEMORY.md"].startswith(b"Call me Ann.\n- [Short answers](short-answers.md)")


def test_every_change_is_issued_before_it_and_acknowledged_after_it() -> None:
    recording = of("both_stores")
    marks = [(op.kind, op.mark.step) for op in recording.ops if op.mark is not None and op.mark.folder == MEMORY]
    assert marks == [(kind, step) for step in (1, 2, 3, 4) for kind in ("issue", "ack")]
    begun = next(i for i, op in enumerate(recording.ops) if op.mark is not None and op.mark.step == 2)
    journal = next(i for i, op in enumerate(recording.ops) if op.target_name.startswith("journal-"))
    assert begun < journal


def test_the_index_is_in_the_next_session_s_prompt_and_in_no_message_and_no_log() -> None:
    recording = of("both_stores")
    line = "- [Short answers](short-answers.md): prefers short answers"
    turns = [request for request in recording.requests if request.purpose == "turn"]
    assert [line in request.system for request in turns] == [False, True]
    assert not any(line in message.content for request in turns for message in request.messages)
    log = next(op.inode for op in recording.ops if op.name == "conversation.jsonl")
    assert not any(line.encode() in op.data for op in recording.ops if op.inode == log)


def test_a_turn_whose_process_died_while_the_model_was_asked_is_asked_about_again_once() -> None:
    recording = of("killed_while_asked")
    asked = [request.messages[0].content for request in recording.requests if request.purpose == "memory"]
    assert sum("We deploy by tag" in text.partition("<turn>")[2] for text in asked) == 1, "the first was killed"
    assert recording.facts["memory_waiting"] == 0


def test_turns_that_were_left_are_taken_up_in_their_order() -> None:
    memory = of("two_turns_wait").memory
    assert memory is not None
    assert b"make -j4" in memory.states[-1][f"{PROJECT_STORE}/jobs.md"]
    assert [turn.step for turn in memory.turns] == sorted(turn.step for turn in memory.turns)


def test_turns_that_did_not_end_normally_teach_nothing() -> None:
    recording = of("not_handed_over")
    asked = [request.messages[0].content for request in recording.requests if request.purpose == "memory"]
    assert asked
    assert not any("forbidden" in text or "Say it" in text or "Half an ans" in text for text in asked)


def test_what_is_malformed_points_outside_or_is_secret_is_dropped_and_said() -> None:
    recording = of("malformed")
    memory = recording.memory
    assert memory is not None
    names = sorted(path.removeprefix("/home/user/") for path in memory.states[-1])
    assert names == [
        ".pseudoclaude/memory/MEMORY.md",
        ".pseudoclaude/memory/good.md",
        "project/.pseudoclaude/memory/MEMORY.md",
        "project/.pseudoclaude/memory/wrapper.md",
    ]
    for word in ("outside the store", "reserved", "AWS", "'invent'", "'galaxy'", "no JSON", "no such note"):
        assert sum(word in sentence for sentence in memory.reports) == 1, word
    assert recording.prompts[1].system.count("</memory>") == 1


def test_over_the_limit_the_newest_is_in_and_the_user_hears_what_is_not() -> None:
    recording = of("over_limit")
    assert recording.memory is not None
    assert "the port is 9090" in recording.prompts[1].system
    (told,) = recording.memory.reports
    assert "3 lines do not reach new sessions" in told
