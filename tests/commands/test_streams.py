"""Standard output that nobody reads, that lacks a character, or that is a terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pseudoclaude.commands.streams import CLOSED_PIPE, for_reader
from pseudoclaude.session import SessionWriter
from pseudoclaude.session.catalog import session_folder
from tests.session.build import user

ROOT = Path(__file__).resolve().parents[2]
CODE = "from {}.cli import main; main()"


def home_with(tmp_path: Path, text: str) -> dict[str, str]:
    """The environment of a home with one session of the project ``tmp_path``, in which ``text`` was said."""
    home = tmp_path / "home"
    with SessionWriter.open(session_folder(str(home), str(tmp_path), "20251201-a"), cwd=str(tmp_path)) as writer:
        writer.append_message(user(text))
    return {**os.environ, "PSEUDOCLAUDE_HOME": str(home), "PYTHONPATH": str(ROOT)}


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 200_000])  # less and more than a pipe and a buffer hold
@pytest.mark.parametrize(
    "command",
    [
        ("pseudoclaude", "sessions", "list"),
        ("pseudoclaude", "sessions", "export", "latest"),
        ("pseudoclaude", "--help"),
        ("simulator", "schema"),
        ("simulator", "run", "no-such-folder"),
    ],
)
def test_a_reader_that_went_away_ends_the_program_quietly(tmp_path: Path, command: tuple[str, ...], size: int) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as nobody:
        done = subprocess.run(
            [sys.executable, "-c", CODE.format(command[0]), *command[1:]],
            cwd=tmp_path,
            env=home_with(tmp_path, "x" * size),
            stdout=nobody,
            stderr=nobody if "no-such-folder" in command else subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == CLOSED_PIPE
    assert not done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("command", "shown"), [("show", "\\u65e5"), ("list", "\\u65e5"), ("export", "\\u65e5")])
def test_a_character_that_the_encoding_lacks_is_shown_as_its_escape(tmp_path: Path, command: str, shown: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            CODE.format("pseudoclaude"),
            "sessions",
            command,
            *(["latest"] if command != "list" else []),
        ],
        cwd=tmp_path,
        env=home_with(tmp_path, "日本") | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert shown in done.stdout


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_text_is_exact_for_a_file_and_visible_on_a_terminal() -> None:
    assert for_reader("\x1b[2J\x07é\n", io.StringIO()) == "\x1b[2J\x07é\n"
    assert for_reader("\x1b[2J\x07é\n", Terminal()) == "␛[2J␇é\n"
