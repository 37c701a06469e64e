"""``pseudoclaude sessions`` and ``check`` as a user runs them."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pseudoclaude.cli import app
from pseudoclaude.errors import SessionMissing
from pseudoclaude.session import SessionWriter
from pseudoclaude.session.catalog import session_folder
from tests.session.build import assistant, calls, user


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
    assert run(home, "sessions", "list", project=home) == (0, "No session of this project yet.\n")
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
