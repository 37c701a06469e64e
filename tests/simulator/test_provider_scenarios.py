"""Must show: each way a provider fails is a scenario, for each dialect where it differs; after each the next turn works, and every crash holds.

What a run shows by itself (facts, requests that keep the protocol) is checked for all; the crash states are swept where the test is slow.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from pseudoclaude.messages import History
from simulator.record import RunBroken, record
from simulator.replies.script import Fail, FailKind, StreamFault
from simulator.run import run_scenario
from simulator.scenario import Scenario, find_scenarios, load_scenario
from simulator.values import Recording
from tests.replies.build import DIALECTS

SUITE = Path(__file__).resolve().parents[2] / "scenarios" / "provider"
FILES = find_scenarios((str(SUITE),))
NAMED = [
    pytest.param(file, id=file.stem, marks=[pytest.mark.slow] if file.stem.startswith("disordered") else [])
    for file in FILES
]
"""Those with a cassette import an SDK, which takes a second."""
DIFFERING = {
    "quota",
    "too_large",
    "context_overflow",
    "empty",
    "refusal",
    "max_tokens",
    "cut",
    "error in a stream",
    "event twice",
    "events in the wrong order",
    "arguments that are no JSON",
}
"""What each API says in its own way."""
SAME = {
    "connection",
    "timeout",
    "status 429",
    "status 429 with retry-after",
    "status 500",
    "status 529",
    "bytes from a tool",
}


def _history(recording: Recording) -> History:
    (session,) = recording.sessions
    return session.histories[-1]


@pytest.mark.parametrize("file", NAMED)
def test_the_run_is_as_the_scenario_says_and_ends_with_a_turn_that_works(file: Path) -> None:
    scenario = load_scenario(file)
    assert len(scenario.why) > 40
    recording = record(scenario)
    assert recording.violations == ()
    assert {name: recording.facts[name] for name in scenario.expect.facts} == scenario.expect.facts
    assert scenario.expect.facts, "a scenario of this suite says what its failure costs"
    last = _history(recording)[-1]
    assert (last.role, last.stop) == ("assistant", "end_turn")
    assert last.content


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_every_crash_of_it_holds(file: Path) -> None:
    result = run_scenario(load_scenario(file))
    assert (result.verdict, result.problem, result.sweep.failures) == ("held", "", [])
    assert result.requests_checked == result.facts["requests"]
    assert result.sweep.oracles["O3"].held > 50


def test_no_failure_is_left_out() -> None:
    seen = {
        (failure, scenario.settings.dialect) for scenario in map(_with_script, FILES) for failure in _failures(scenario)
    }
    assert {(failure, dialect) for failure in DIFFERING for dialect in DIALECTS} <= seen
    assert {failure for failure, _ in seen} >= SAME
    assert {failure for failure, _ in seen} >= set(get_args(FailKind))


def _with_script(file: Path) -> Scenario:
    """The scenario, or the one that its cassette was recorded from."""
    scenario = load_scenario(file)
    cassette = scenario.provider.cassette
    return scenario if cassette is None else load_scenario(SUITE / cassette.replace(".yaml", ".script.yaml"))


def _failures(scenario: Scenario) -> set[str]:
    found = {"bytes from a tool" for tool in scenario.tools.values() if tool.hex}
    for entry in (*scenario.provider.script, *scenario.provider.summary):
        found |= {"arguments that are no JSON" for call in entry.tool_calls if isinstance(call.arguments, str)}
        if entry.fail is not None:
            found.add(_name(entry.fail))
    return found


def _name(fail: Fail) -> str:
    if fail.kind is not None:
        return fail.kind
    if fail.cut_after_events is not None:
        return "cut" if fail.status is None else "error in a stream"
    if fail.disorders:
        return "event twice" if fail.repeat_event is not None else "events in the wrong order"
    return f"status {fail.status}" + (" with retry-after" if fail.retry_after is not None else "")


# --- what is in the history afterwards -------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_a_cut_reply_the_text_that_arrived_is_kept_and_its_call_is_not(dialect: str) -> None:
    history = _history(record(load_scenario(SUITE / f"stream_cut_{dialect.replace('-', '_')}.yaml")))
    kept = [message for message in history if message.stop == "interrupted"]
    assert {message.content for message in kept} == {"Hello, wörld", "Hello, wörld 🙂"}
    assert all(not message.tool_calls for message in history)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_tool_runs_only_with_whole_arguments(dialect: str) -> None:
    history = _history(record(load_scenario(SUITE / f"malformed_arguments_{dialect.replace('-', '_')}.yaml")))
    results = {message.tool_result.call_id: message.tool_result for message in history if message.tool_result}
    assert [result.content for result in results.values() if not result.is_error] == ["seen", "seen"]
    assert not results["c3"].is_error, "no arguments at all are none"
    assert "not JSON" in results["c1"].content
    assert "must be a JSON object" in results["c2"].content
    assert "no tool" in results["c4"].content


def test_bytes_of_a_tool_are_replaced_once_and_also_when_spilled() -> None:
    history = _history(record(load_scenario(SUITE / "invalid_utf8_from_tool.yaml")))
    short, long = [message.tool_result for message in history if message.tool_result]
    assert short.content.startswith("hé\ufffd\ufffd\ufffd\ufffd(")
    assert long.spill is not None
    assert long.spill.bytes == 200 * len("世\ufffd\n".encode())


def test_a_call_that_timed_out_is_not_run_twice() -> None:
    history = _history(record(load_scenario(SUITE / "timeout.yaml")))
    assert [message.tool_result.content for message in history if message.tool_result] == ["deployed ✓"]


# --- the scenarios can fail ------------------------------------------------------------------------------------


def test_without_a_retry_the_run_goes_against_the_scenario() -> None:
    scenario = load_scenario(SUITE / "connection.yaml")
    once = replace(scenario, settings=replace(scenario.settings, request_attempts=1))
    with pytest.raises(RunBroken, match="step 0 raised ProviderUnavailable"):
        record(once)


def test_a_wait_shorter_than_retry_after_shows() -> None:
    scenario = load_scenario(SUITE / "rate_limited.yaml")
    shorter = [
        replace(entry, fail=replace(entry.fail, retry_after=4))
        if entry.fail and entry.fail.retry_after == 41
        else entry
        for entry in scenario.provider.script
    ]
    recording = record(replace(scenario, provider=replace(scenario.provider, script=tuple(shorter))))
    assert recording.facts["waited_seconds"] < scenario.expect.facts["waited_seconds"]


@pytest.mark.slow
def test_a_scenario_may_break_its_cassette() -> None:
    scenario = load_scenario(SUITE.parent / "cassettes" / "anthropic_tool_loop.yaml")
    once = replace(scenario, settings=replace(scenario.settings, request_attempts=1))
    for request, words in ((0, "ProviderUnavailable"), (1, "StreamInterrupted")):
        fault = StreamFault(4 * request, request)
        with pytest.raises(RunBroken, match=f"step 0 raised {words}"):
            record(replace(once, provider=replace(scenario.provider, fault=fault)))
