"""Must show: a real task on a real folder, with and without ``--allow``, killed half-way and resumed; from a script and over real HTTP."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from pseudoclaude.protocol.repair import OUTCOME_UNKNOWN
from simulator.replies.emulator import running_emulator
from tests.commands.real_task import CHECK, DONE, EDIT, HANG, READ, TASK, Desk, kill, spec

pytestmark = pytest.mark.slow
DIALECTS = ("anthropic", "openai-chat", "openai-responses")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def _results(desk: Desk) -> list[tuple[str, bool]]:
    messages = desk.loaded().messages
    return [(found.content, found.is_error) for message in messages if (found := message.tool_result) is not None]


def test_with_permission_the_task_is_done(desk: Desk) -> None:
    status, out, err = desk.run("run", TASK, "--allow", "--provider", desk.script("all", READ, EDIT, CHECK, DONE))
    assert (status, out) == (0, "The greeting is repaired and checked.\n")
    assert desk.text("greeting.txt") == "Hello, world!\n"
    assert desk.text("checked") == "checked\n"
    assert "● edit_file" in err
    assert f"--resume {desk.sessions()[0]}" in err
    assert [is_error for _, is_error in _results(desk)] == [False, False, False]


def test_without_permission_reading_works_and_changes_are_refused(desk: Desk) -> None:
    status, out, err = desk.run("run", TASK, "--provider", desk.script("all", READ, EDIT, CHECK, DONE))
    assert (status, out) == (0, "The greeting is repaired and checked.\n")
    assert desk.text("greeting.txt") == "Helo, world!\n"
    assert not (desk.project / "checked").exists()
    read, edit, check = _results(desk)
    assert read == ("Helo, world!\n", False)
    for name, (content, is_error) in [("edit_file", edit), ("run_command", check)]:
        assert content == f"Refused: {name} changes something, and the user did not allow it. It was not run."
        assert is_error
        assert content in err
    assert err.count("--allow lets it") == 1
    assert "I repair it." in err  # text before a call is progress, not result


def test_killed_half_way_it_resumes_with_the_interrupted_call_unknown(desk: Desk) -> None:
    process = desk.start("run", TASK, "--allow", "--provider", desk.script("first", READ, EDIT, HANG))
    running = int(desk.wait_for("running"))
    kill(process, running)
    [session] = desk.sessions()
    status, out, err = desk.run(
        "run", "Go on.", "--allow", "--provider", desk.script("second", CHECK, DONE), "--resume", session
    )
    assert (status, out) == (0, "The greeting is repaired and checked.\n")
    assert "2 calls were interrupted; their outcomes are unknown." in err
    assert "The log is" not in err
    assert desk.sessions() == [session]
    messages = desk.loaded().messages
    unknown = [found for message in messages if (found := message.tool_result) and found.origin == "interrupted"]
    assert [(found.call_id, found.content) for found in unknown] == [("c3", OUTCOME_UNKNOWN), ("c4", OUTCOME_UNKNOWN)]
    assert [message.content for message in messages if message.role == "user"] == [TASK, "Go on."]
    assert desk.text("checked") == "checked\n"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_over_real_http(desk: Desk, dialect: str) -> None:
    with running_emulator(spec(READ, EDIT, HANG)) as served:
        options = ("--allow", "--provider", f"{dialect}:some-model", "--base-url", served.url(dialect))
        process = desk.start("run", TASK, *options)
        kill(process, int(desk.wait_for("running")))
        assert served.emulator.violations == []
        assert served.emulator.requests_checked == 3
    [session] = desk.sessions()
    with running_emulator(spec(CHECK, DONE)) as served:
        options = ("--allow", "--provider", f"{dialect}:some-model", "--base-url", served.url(dialect))
        status, out, _ = desk.run("run", "Go on.", *options, "--resume", session)
        assert (status, out) == (0, "The greeting is repaired and checked.\n")
        assert served.emulator.violations == served.emulator.failures == served.emulator.exhausted == []
        assert served.emulator.requests_checked >= 2
    assert [error for _, error in _results(desk)] == [False, False, True, True, False]
    assert desk.loaded().model == "some-model"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_stops_the_turn_saves_it_and_ends_what_was_running(desk: Desk, number: int, status: int) -> None:
    process = desk.start("run", TASK, "--allow", "--provider", desk.script("first", READ, EDIT, HANG))
    running = int(desk.wait_for("running"))
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    assert process.returncode == status
    assert "what was done so far is saved" in err
    assert not Path(f"/proc/{running}/cmdline").exists() or Path(f"/proc/{running}/cmdline").read_bytes() == b""
    assert next(content for content, is_error in _results(desk) if is_error) == OUTCOME_UNKNOWN
    assert desk.loaded().state == "clean"


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("anthropic", "ANTHROPIC_API_KEY"), ("openai-chat:m", "OPENAI_API_KEY"), ("openai-responses", "OPENAI_API_KEY")],
)
@pytest.mark.parametrize("command", [("run", TASK), ("chat",)])
def test_a_missing_key_is_one_line_and_leaves_nothing_behind(
    desk: Desk, command: tuple[str, ...], provider: str, variable: str
) -> None:
    status, out, err = desk.run(*command, "--provider", provider, ANTHROPIC_API_KEY="", OPENAI_API_KEY=" ")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert f"Set {variable}; --provider script:FILE works without a key" in err
    assert not desk.home.exists()


@pytest.mark.parametrize("task", ["", " \n\t"])
def test_a_task_without_words_is_refused(desk: Desk, task: str) -> None:
    status, out, err = desk.run("run", task, "--provider", desk.script("all", DONE))
    assert (status, out) == (2, "")
    assert "it is empty" in err
    assert not desk.home.exists()


def test_the_result_that_nobody_reads_is_saved_all_the_same(desk: Desk) -> None:
    process = desk.start("run", TASK, "--provider", desk.script("all", READ, DONE))
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=30)
    assert process.returncode == 141
    assert "Exception" not in err
    assert "Traceback" not in err
    assert desk.loaded().messages[-1].content == DONE["text"]
    assert desk.loaded().state == "clean"


def test_an_unknown_model_is_one_line(desk: Desk) -> None:
    unknown = {"fail": {"status": 404, "message": "model: no-such-model"}}
    with running_emulator(spec(unknown)) as served:
        status, _, err = desk.run(
            "run", TASK, "--provider", "anthropic:no-such-model", "--base-url", served.url("anthropic")
        )
    assert status == 1
    assert "no-such-model" in err.split("\n")[0]
    assert "Traceback" not in err


def test_no_network_is_one_line_after_the_retries(desk: Desk) -> None:
    status, _, err = desk.run("run", TASK, "--provider", "anthropic:m", "--base-url", "http://127.0.0.1:9")
    *tries, error, _ = err.strip().split("\n")
    assert status == 1
    assert len(tries) == 4
    assert all("Trying again in" in line for line in tries)
    assert error.startswith("pseudoclaude: The connection to the provider failed")
    assert "Check the network" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", TASK, "--provider", "nobody"), "there is no provider 'nobody'"),
        (("run", TASK, "--provider", "script"), "needs a file"),
        (("run", TASK, "--provider", "script:missing.yaml"), "cannot be opened"),
        (("run", TASK, "--provider", "script:greeting.txt"), "cannot be used"),
        (("run", TASK, "--provider", "script:x", "--base-url", "http://x"), "does not take --base-url"),
        (("run", TASK, "--provider", "script:../all.yaml", "--resume", "nothing"), "there is no session 'nothing'"),
        (("run", TASK, "--provider", "script:../all.yaml", "--resume", "../x"), "there is no session '../x'"),
        (("run",), "Missing argument"),
        (("run", TASK, "--no-such-option"), "No such option"),
    ],
)
def test_a_usage_error_is_told_and_starts_nothing(desk: Desk, arguments: tuple[str, ...], words: str) -> None:
    desk.script("all", DONE)
    status, out, err = desk.run(*arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert "Traceback" not in err
    assert desk.sessions() == []


@pytest.mark.parametrize("reply", [{"text": "No.", "stop": "refusal"}, {"text": "Half a", "stop": "max_tokens"}])
def test_a_turn_that_did_not_end_by_itself_exits_1(desk: Desk, reply: dict[str, str]) -> None:
    status, out, _ = desk.run("run", TASK, "--provider", desk.script("odd", reply))
    assert (status, out) == (1, reply["text"] + "\n")


def test_a_session_in_use_is_refused(desk: Desk) -> None:
    process = desk.start("run", TASK, "--allow", "--provider", desk.script("first", HANG))
    running = int(desk.wait_for("running"))
    [session] = desk.sessions()
    status, _, err = desk.run("run", "Go on.", "--provider", desk.script("second", DONE), "--resume", session)
    kill(process, running)
    assert status == 2
    assert f"pid {process.pid}" in err


def test_no_sdk_is_imported_before_a_provider_needs_it(desk: Desk) -> None:
    code = "import sys, pseudoclaude.cli; print([n for n in ('anthropic', 'openai', 'simulator') if n in sys.modules])"
    status, out, _ = desk.python(code)
    assert (status, out) == (0, "[]\n")
