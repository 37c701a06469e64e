"""A small real task in a real folder, the scripts of a model that does it, and the command line as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pseudoclaude.session import LoadResult, load
from pseudoclaude.session.catalog import project_folder
from simulator.replies.script import ProviderSpec

COMMAND = [sys.executable, "-c", "from pseudoclaude.cli import main; main()"]
WAIT_SECONDS = 30.0
TASK = "The greeting is misspelt. Repair it and run check.sh."

READ = {
    "text": "I read it first.",
    "tool_calls": [{"id": "c1", "name": "read_file", "arguments": {"path": "greeting.txt"}}],
}
EDIT = {
    "text": "I repair it.",
    "tool_calls": [
        {"id": "c2", "name": "edit_file", "arguments": {"path": "greeting.txt", "old": "Helo", "new": "Hello"}}
    ],
}
CHECK = {
    "text": "I check it.",
    "tool_calls": [{"id": "c3", "name": "run_command", "arguments": {"command": "sh check.sh"}}],
}
DONE = {"text": "The greeting is repaired and checked."}
HANG = {
    "text": "I check it, slowly.",
    "tool_calls": [
        {"id": "c3", "name": "run_command", "arguments": {"command": "echo $$ > running; exec sleep 60"}},
        {"id": "c4", "name": "list_files", "arguments": {}},
    ],
}
NOTHING_TO_REMEMBER = {"text": "[]"}


def spec(*script: dict[str, Any]) -> ProviderSpec:
    memory = [NOTHING_TO_REMEMBER] * len(script)
    return msgspec.convert({"script": list(script), "memory": memory}, ProviderSpec)


class Desk:
    """A project folder, a home, and the command line in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.home = folder / "home"
        self.project.mkdir()
        (self.project / "greeting.txt").write_text("Helo, world!\n")
        (self.project / "check.sh").write_text("grep -q Hello greeting.txt && echo checked > checked\n")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            "HOME": str(self.folder),
            "PSEUDOCLAUDE_HOME": str(self.home),
            "ANTHROPIC_API_KEY": "no-key",
            "OPENAI_API_KEY": "no-key",
            "TERM": "xterm",
            "LANG": "C.UTF-8",
        }

    def script(self, name: str, *entries: Mapping[str, Any]) -> str:
        """A script file; returns what ``--provider`` takes."""
        file = self.folder / f"{name}.yaml"
        file.write_bytes(msgspec.yaml.encode({"script": list(entries)}))
        return f"script:{file}"

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.project,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Exit status, standard output, standard error."""
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=WAIT_SECONDS)
        return process.returncode, out, err

    def python(self, code: str) -> tuple[int, str, str]:
        """The same of a piece of Python."""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def sessions(self) -> list[str]:
        folder = Path(project_folder(str(self.home), str(self.project))) / "sessions"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def loaded(self, session: str = "") -> LoadResult:
        folder = Path(project_folder(str(self.home), str(self.project))) / "sessions"
        return load(folder / (session or self.sessions()[-1]))

    def text(self, name: str) -> str:
        return (self.project / name).read_text()

    def wait_for(self, name: str) -> str:
        """The content of a file of the project, once it has some."""
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            if (self.project / name).exists() and self.text(name):
                return self.text(name)
            time.sleep(0.01)
        raise TimeoutError(f"{name} did not come")


def kill(process: subprocess.Popen[str], *others: int) -> None:
    """SIGKILL, as a crash of the program; and what it had started, which nobody else ends now."""
    process.kill()
    process.communicate()
    for pid in others:
        os.kill(pid, signal.SIGKILL)
