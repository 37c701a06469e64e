"""The pipeline from record to token: planted bugs are caught, tokens rebuild the same disk, a crash within a crash is judged."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from simulator.again import second_recording
from simulator.build import build_disk
from simulator.crash import MODELS, crash_states
from simulator.disk import OpLog
from simulator.hunt import hunt
from simulator.planted import PLANTED, Planted, product_of
from simulator.record import RunBroken, record
from simulator.recover import Recoverer
from simulator.replay import ReplayError, replay_token
from simulator.run import run_scenario
from simulator.scenario import Crash, Scenario, find_scenarios, load_scenario
from simulator.sweep import Sweep, TreeDigest
from simulator.token import TokenError, decode_state, parse_token, token_of, token_of_recovery

SUITE = Path(__file__).resolve().parents[2] / "scenarios" / "append_replace"
SPILLED = load_scenario(SUITE / "spilled_result.yaml")


def test_two_recordings_of_one_scenario_are_equal() -> None:
    assert record(SPILLED) == record(SPILLED)


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED.values(), ids=lambda planted: planted.name)
def test_every_planted_bug_is_caught_by_the_oracles_that_must(planted: Planted) -> None:
    root = SUITE.parent
    suites = [load_scenario(path) for path in find_scenarios((str(root),))]
    caught = hunt(planted, suites)
    assert caught.complete, caught.words


def test_tokens_rebuild_the_same_disk() -> None:
    recording = record(SPILLED)
    digest = TreeDigest()
    tried = 0
    for model in MODELS:
        for state in islice(crash_states(recording, model), 0, None, 17):
            token = parse_token(token_of(recording, state))
            again = decode_state(record(SPILLED).ops, token.first)
            assert again == state
            assert digest.of(build_disk(recording, again)) == digest.of(build_disk(recording, state))
            tried += 1
    assert tried > 50


@pytest.mark.parametrize(
    "text",
    ["", "cs1:a/b", "cs1:a/b:12345678:s0:product:kill", "cs2:a/b:12345678:s0:product:kill:c1:k1"],
)
def test_what_is_no_token_says_so(text: str) -> None:
    with pytest.raises(TokenError):
        decode_state((), parse_token(text).first)


def test_the_log_of_calls_names_the_product_s_lines_and_no_path_of_the_machine() -> None:
    sites = {op.site for op in record(SPILLED).ops if op.kind in ("write", "fsync", "rename")}
    assert sites
    assert all(site.startswith(("pseudoclaude/session/", "pseudoclaude/compact/")) for site in sites)


def test_a_crash_within_the_recovery_is_judged() -> None:
    scenario = load_scenario(SUITE / "crash_resume_crash.yaml")
    recording = record(scenario)
    assert scenario.faults.crash is not None
    result = Sweep(recording, product_of("product"), scenario).run(scenario.faults.crash)
    assert result.failures == []
    assert result.model_states["again"] > 1_000
    assert result.oracles["O10"].held > 300


def test_every_byte_of_a_small_run() -> None:
    scenario = load_scenario(SUITE / "crash_resume_crash.yaml")
    result = Sweep(record(scenario), product_of("product"), scenario, tears="every_byte").run(Crash(models=("kill",)))
    assert result.failures == []
    assert result.trees > 1_000


def test_an_error_nobody_expected_breaks_the_run(tmp_path: Path) -> None:
    def scenario(steps: str, script: str) -> Scenario:
        path = tmp_path / "s" / "x.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"why: x\nprovider: {{script: [{script}]}}\nsteps: [{steps}]\nfaults: {{}}\n")
        return load_scenario(path)

    broken = scenario('{user: "go"}', "{fail: {status: 401}}")
    with pytest.raises(RunBroken, match="AuthenticationFailed"):
        record(broken)
    assert run_scenario(broken).verdict == "broken"
    expected = scenario('{user: "go", fails: AuthenticationFailed}', "{fail: {status: 401}}")
    assert record(expected).facts["failed_steps"] == 1
    never = scenario('{user: "go", fails: AuthenticationFailed}', "{text: hi}")
    with pytest.raises(RunBroken, match="should fail"):
        record(never)


def test_a_token_says_of_which_session_the_recovery_is_crashed() -> None:
    scenario = load_scenario(SUITE.parent / "session" / "two_sessions_recovered_again.yaml")
    recording = record(scenario)
    state = next(islice(crash_states(recording, "kill"), 40, None))
    recoverer = Recoverer(product_of("product"), scenario.settings)
    folders = []
    for session in recording.sessions:
        log, disk = OpLog(), build_disk(recording, state)
        recovered = recoverer.recover(disk, session.folder, log)
        second = second_recording(recording, state, session, disk, recovered, log)
        assert second is not None
        later = next(crash_states(second[0], "posix-min", first_point=second[1]))
        text = token_of_recovery(recording, state, session.folder, second[0].ops, later)
        shown = [line for line, _ in replay_token(text, scenarios=SUITE.parent, keep=None)]
        assert any(line.startswith(f"{session.folder}:") for line in shown)
        folders.append(session.folder)
    assert len(folders) == 2
    with pytest.raises(ReplayError, match="the token names number 3"):
        list(replay_token(text.replace("+2.", "+3."), scenarios=SUITE.parent, keep=None))
