"""The scenarios of compaction: each run goes as its facts say, every fault strikes, no crash breaks an oracle, and the next process decides
the same whatever a crash left.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from pseudoclaude.compact import Runtime, manage_context
from pseudoclaude.conversation import Conversation
from pseudoclaude.errors import PseudoClaudeError
from pseudoclaude.messages import History, Message, ToolResult, Usage
from pseudoclaude.ports import Reply, Request
from pseudoclaude.session import SessionWriter
from pseudoclaude.settings import Settings
from pseudoclaude.text import size
from simulator.build import DiskBuilder
from simulator.crash import MODELS, crash_states
from simulator.disk import DiskFault, SimFileSystem
from simulator.disk.faults import CallKind
from simulator.record import record
from simulator.run import run_scenario
from simulator.scenario import Scenario, find_scenarios, load_scenario
from simulator.values import Recording
from simulator.world import CheckedProvider, SimClock, SimIds, World
from tests.driving import FOLDER, Driven, Speaking, calls, said

ROOT = Path(__file__).resolve().parents[2] / "scenarios"
SCENARIOS = [load_scenario(path) for path in find_scenarios((str(ROOT / "offload"), str(ROOT / "summary_breaker")))]
BY_ID = {scenario.id: scenario for scenario in SCENARIOS}
SPILLING = [scenario for scenario in SCENARIOS if scenario.expect.facts.get("offloaded")]


def _ids(scenarios: list[Scenario]) -> list[str]:
    return [scenario.id for scenario in scenarios]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_ids(SCENARIOS))
def test_every_run_goes_as_its_facts_say_and_every_fault_strikes(scenario: Scenario) -> None:
    world = World(scenario, 0)
    recording = record(scenario, world=world)
    assert recording.violations == ()
    assert {name: recording.facts[name] for name in scenario.expect.facts} == scenario.expect.facts
    assert scenario.expect.facts
    fired = world.faults.fired if world.faults is not None else 0
    assert fired == len(scenario.faults.disk)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=_ids(SCENARIOS))
def test_no_crash_breaks_an_oracle_and_references_are_judged(scenario: Scenario) -> None:
    result = run_scenario(scenario)
    assert (result.verdict, result.sweep.broken, result.problem) == ("held", 0, "")
    assert ("O6" in result.sweep.oracles) == (result.replaces > 0)
    assert ("O7" in result.sweep.oracles) == (scenario in SPILLING)
    assert all(tally.held > 0 for tally in result.sweep.oracles.values())


def test_the_suites_hold_every_failure_the_breaker_is_for() -> None:
    stems = {scenario.id.partition("/")[2] for scenario in SCENARIOS}
    for named in (
        "provider_error", "timeout", "overload", "empty_summary", "cut_off_summary", "larger_than_input", "too_long_once", "too_long_twice",
        "too_long_three_times", "too_long_four_times", "tool_call", "refusal", "success_after_two_failures", "manual_failure_does_not_count",
        "open_then_closed_by_hand", "replace_crashed_at_every_point", "window_full", "window_full_drop_oldest",
        "crash_between_spill_and_replace",
    ):  # fmt: skip
        assert named in stems


# --- a crash between the spill and its replace -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["offload/both_limits", "offload/large_result", "offload/reused_call_ids"])
def test_after_any_crash_the_next_process_spills_the_same_results_to_the_same_files(name: str) -> None:
    scenario = BY_ID[name]
    recording = record(scenario)
    session = recording.sessions[0]
    wanted = _final_results(session.histories[-1])
    builder = DiskBuilder(recording)
    waiting = 0
    for model in MODELS:
        for state in crash_states(recording, model, tears="ends"):
            fs = SimFileSystem(builder.build(state))
            before, after = _resumed(fs, scenario.settings, session.folder)
            results = _final_results(after)
            complete = len(results) == len(wanted)  # a turn that is not complete yet may still be decided
            if complete:
                assert results == wanted
                waiting += before != after
            _assert_files(fs, session.folder, after, recording)
    assert waiting > 10


def _resumed(fs: SimFileSystem, settings: Settings, folder: str) -> tuple[History, History]:
    """What a new process loads, and what it has after the check before its first request."""
    with SessionWriter.open(folder, settings=settings, fs=fs, clock=SimClock(), ids=SimIds(0)) as writer:
        loaded = writer.loaded.messages
        conversation = Conversation(loaded, writer.hooks())
        runtime = Runtime(fs=fs, session_folder=folder, settings=settings)
        output = manage_context(conversation, runtime, _Silent(settings.dialect))
        assert output.error is None
    return loaded, conversation.messages()


def _final_results(history: History) -> list[ToolResult]:
    return [message.tool_result for message in history if message.tool_result is not None]


def _assert_files(fs: SimFileSystem, folder: str, history: History, recording: Recording) -> None:
    """Each preview's file holds a tool's own output; nothing is left over but what a shorter history may still name."""
    named = [result.spill for result in _final_results(history) if result.spill is not None]
    for spill in named:
        data = fs.peek(posixpath.join(folder, spill.path))
        assert data is not None
        assert (len(data), hashlib.sha256(data).hexdigest()) == (spill.bytes, spill.sha256)
        assert recording.originals[spill.sha256].encode() == data
    if named:
        assert fs.peek(posixpath.join(folder, "tool-results", "spill.tmp")) is None


class _Silent:
    """A model that nobody may ask."""

    model = "silent"

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        raise AssertionError("a request was made")


# --- one call that fails, anywhere in a turn that spills -------------------------------------------------------

SMALL = Settings(result_limit_bytes=1_000, turn_results_limit_bytes=4_000, preview_bytes=200)
LOG_TEXT = "héllo 世界 🙂\n" * 100


@pytest.mark.parametrize(
    ("error", "exception", "when"),
    [
        ("EIO", "", "before"),
        ("ENOSPC", "", "before"),
        ("", "KeyboardInterrupt", "before"),
        ("", "KeyboardInterrupt", "after"),
    ],
)
@pytest.mark.parametrize("call", ["mkdir", "open", "write", "fsync", "close", "stat", "rename", "unlink", "fsync_dir"])
def test_after_any_failing_call_the_same_process_goes_on_and_spills(
    call: CallKind, error: str, exception: str, when: Literal["before", "after"]
) -> None:
    spilled = 0
    for nth in range(1, 100):
        driven = Driven(calls("read_log"), said("Read."), tools=[Speaking("read_log", LOG_TEXT)], settings=SMALL)
        plan = driven.break_disk(DiskFault(call, nth=nth, error=error, exception=exception, when=when))
        try:
            driven.turn()
        except (PseudoClaudeError, KeyboardInterrupt):
            assert plan.fired == 1
        if not plan.fired:
            assert nth > 1, f"no {call} in the turn"
            assert spilled > 0 or call == "unlink"  # which comes only before the model is first asked
            return
        driven.break_disk()
        driven.provider.answers = [said("Gone on.")]
        driven.turn("Go on.")
        driven.assert_settled()
        for result in _final_results(driven.history):
            assert size(result.content) <= SMALL.result_limit_bytes
            if result.spill is not None:
                spilled += 1
                assert driven.fs.peek(posixpath.join(FOLDER, result.spill.path)) == LOG_TEXT.encode()
        assert driven.fs.peek(posixpath.join(FOLDER, "tool-results", "spill.tmp")) is None
    raise AssertionError("a turn has fewer calls than that")


# --- the window, as the harness sees it ------------------------------------------------------------------------


class _Counting:
    """A model that counts what it is told to."""

    dialect = "anthropic"
    model = "counting"

    def __init__(self, *counts: int) -> None:
        self._counts = list(counts)

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        return Reply(Message("assistant", "So be it.", stop="end_turn"), Usage(self._counts.pop(0), 0))


def _asked(history: History, *counts: int) -> list[str]:
    """What is found when the conversation that begins with ``history`` goes on for as many requests as there are counts."""
    checked = CheckedProvider(_Counting(*counts), Settings(context_window=50_000, max_output_tokens=1_000))
    for _ in counts:
        reply = checked.complete(Request(history, max_tokens=1_000))
        history = (*history, reply.message, Message("user", "Go on."))
    return checked.violations


def test_a_request_over_the_window_is_found_by_its_bytes() -> None:
    fits, over = (Message("user", "x" * int(tokens * 3.5)) for tokens in (48_900, 49_100))
    assert _asked((fits,), 10) == []
    assert "request 1 (turn) is over the window: about 49,1" in _asked((over,), 10)[0]


def test_a_request_over_the_window_is_found_by_the_provider_s_own_count() -> None:
    assert _asked((Message("user", "hi"),), 48_900, 10) == []
    assert "request 2 (turn) is over the window" in _asked((Message("user", "hi"),), 49_100, 10)[0]


def test_a_count_of_a_history_that_was_replaced_means_nothing() -> None:
    checked = CheckedProvider(_Counting(49_900, 10), Settings(context_window=50_000))
    checked.complete(Request((Message("user", "hi"),), max_tokens=1_000))
    checked.complete(Request((Message("user", "a summary"),), max_tokens=1_000))
    assert checked.violations == []
