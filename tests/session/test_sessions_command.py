"""``pseudoclaude sessions`` and ``check`` as a user runs them."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
from typer.testing import CliRunner

from pseudoclaude.cli import app
from pseudoclaude.commands.sessions import Shelf, export
from pseudoclaude.errors import SessionMissing
from pseudoclaude.realworld import RealFileSystem
from pseudoclaude.session import SessionWriter
from pseudoclaude.session.catalog import session_folder
from tests.session.build import HEADER, assistant, calls, line, log_of, replaced, user


@pytest.fixture
def home(tmp_path) -> Path:
    """Two sessions of the project in ``tmp_path``."""
    for name, last in (("20251201-a", assistant("b")), ("20251202-b", calls("c"))):
        with SessionWriter.open(
            session_folder(str(tmp_path / "home"), str(tmp_path), name), cwd=str(tmp_path)
        ) as writer:
            writer.append_message(user(f"question \x1b[31m {name}"))
            writer.append_message(last)
    return tmp_path / "home"


def run(home: Path, *arguments: str, project: Path | None = None) -> tuple[int, str]:
    """The command, started in a project (``home``'s own by default): exit status and all that it printed."""
    with contextlib.chdir(project or home.parent):
        done = CliRunner().invoke(app, arguments, env={"PSEUDOCLAUDE_HOME": str(home)})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def test_list_show_fork_export_delete(home: Path):
    status, text = run(home, "sessions", "list")
    assert status == 0
    assert [row.split()[0] for row in text.splitlines()] == ["20251202-b", "20251201-a"]
    assert "REPAIRED" in text
    assert "\x1b" not in text
    assert [info["id"] for info in json.loads(run(home, "sessions", "list", "--json")[1])] == [
        "20251202-b",
        "20251201-a",
    ]
    assert "assistant b" in run(home, "sessions", "show", "20251201")[1]
    assert run(home, "sessions", "export", "20251201", "--format", "jsonl")[1].count("\n") == 2
    assert run(home, "sessions", "export", "latest")[1].startswith("# question")
    forked = run(home, "sessions", "fork", "20251201")[1].strip()
    assert "forked from 20251201-a" in run(home, "sessions", "show", forked)[1]
    assert run(home, "sessions", "delete", forked)[0] == 1
    assert "Nothing was removed" in run(home, "sessions", "delete", forked)[1]
    status, text = run(home, "sessions", "delete", forked, "--yes")
    assert status == 0
    assert "conversation.jsonl" in text
    assert forked not in run(home, "sessions", "list")[1]
    with pytest.raises(SessionMissing):
        run(home, "sessions", "show", forked)


def test_without_a_session_the_list_says_so(home: Path):
    assert run(home, "sessions", "list", project=home) == (
        0,
        "No session of this project yet. `pseudoclaude sessions list --all` shows those of other projects.\n",
    )
    assert len(run(home, "sessions", "list", "--all", project=home)[1].splitlines()) == 2


def test_check_exits_0_1_and_2(home: Path, tmp_path: Path):
    folders = sorted(home.glob("projects/*/sessions/*"))
    assert run(home, "check", str(folders[0]))[0] == 0
    assert run(home, "check", str(folders[1] / "conversation.jsonl"))[0] == 1
    assert run(home, "check", str(tmp_path / "none.jsonl"))[0] == 2
    (tmp_path / "new.jsonl").write_text('{"type":"session","version":7}\n')
    status, text = run(home, "check", str(tmp_path / "new.jsonl"))
    assert status == 2
    assert "version 7" in text
    assert run(home, "check", str(folders[0]), "--dialect", "latin")[0] == 2
    told = json.loads(run(home, "check", str(folders[1]), "--json", "--dialect", "openai-chat")[1])
    assert told["truncated"] == [{"id": "c", "name": "read", "arguments": "{}"}]
    assert [message["role"] for message in told["messages"]] == ["user"]
    answered = json.loads(run(home, "check", str(folders[1]), "--json", "--dangling", "answer")[1])
    assert [message["role"] for message in answered["messages"]] == ["user", "assistant", "user"]


def test_check_and_list_load_no_sdk():
    code = "import sys, pseudoclaude.cli; print([m for m in ('anthropic', 'openai', 'httpx2') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert done.stderr == ""


# --- check: what it says of a log ------------------------------------------------------------------------------


def told_of(home: Path, tmp_path: Path, data: bytes) -> str:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "conversation.jsonl").write_bytes(data)
    return run(home, "check", str(tmp_path / "x"))[1]


def flipped(record: bytes) -> bytes:
    return record.replace(b"first", b"fjrst")


RECOVER = replaced([user("b")], 3, "recover")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (log_of(user("first"), assistant("b")), "No finding speaks of a lost record."),
        (HEADER + b'{"type":"mess\n' + line(user("a"), 1), "No finding speaks of a lost record."),
        (HEADER + b" \n" + line(user("a"), 1), "No finding speaks of a lost record."),
        (
            HEADER + flipped(line(user("first"), 1)) + line(user("b"), 2) + RECOVER,
            "Nothing is to be done, but 2 settled findings speak of lost records: what is named there is not in the history.",
        ),
        (
            HEADER + line(user("a"), 2) + RECOVER,
            "Nothing is to be done, but 1 settled finding speaks of lost records: what is named there is not in the history.",
        ),
        (HEADER + flipped(line(user("first"), 1)) + line(user("b"), 1), "1 settled finding speaks of lost records"),
    ],
)
def test_a_clean_log_is_not_said_to_be_whole_when_a_settled_finding_names_a_loss(
    home: Path, tmp_path: Path, data: bytes, words: str
):
    text = told_of(home, tmp_path, data)
    assert "conversation.jsonl" not in text
    assert ": clean. " in text.splitlines()[0]
    assert words in text.splitlines()[0]


def test_what_a_resume_settled_is_still_told_as_lost(home: Path, tmp_path: Path):
    folder = tmp_path / "flipped"
    with SessionWriter.open(folder) as writer:
        writer.append_message(user("first"))
        writer.append_message(assistant("b"))
    log = folder / "conversation.jsonl"
    log.write_bytes(flipped(log.read_bytes()))
    assert run(home, "check", str(folder))[0] == 1
    with SessionWriter.open(folder) as writer:
        writer.append_message(user("again"))
    status, text = run(home, "check", str(folder))
    assert status == 0
    assert "2 settled findings speak of lost records" in text


def test_a_file_that_is_no_log_is_said_to_be_none(home: Path, tmp_path: Path):
    (tmp_path / "a.txt").write_text("Dear diary\nyesterday\n")
    status, text = run(home, "check", str(tmp_path / "a.txt"))
    assert status == 1
    assert "a.txt: holds no record of a session log" in text
    assert "Going on" not in text
    assert "Dear diary" in text


# --- export to a terminal --------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
def test_an_export_is_exact_for_a_file_and_cannot_steer_a_terminal(home: Path, form: Literal["jsonl", "markdown"]):
    shelf = Shelf(str(home), str(home.parent), RealFileSystem())
    kept, seen = io.StringIO(), Terminal()
    assert export(shelf, "20251201", form, kept) == export(shelf, "20251201", form, seen) == 0
    assert ("\x1b[31m" in kept.getvalue()) == (form == "markdown")  # JSON escapes it
    assert "\x1b" not in seen.getvalue()
    assert ("␛[31m" in seen.getvalue()) == (form == "markdown")


def test_one_of_a_thing_is_not_said_in_the_plural(home: Path, tmp_path: Path):
    with SessionWriter.open(session_folder(str(home), str(tmp_path), "20251203-c"), cwd=str(tmp_path)) as writer:
        writer.append_message(user("one"))
    assert "  1 message, " in run(home, "sessions", "list")[1]
