"""The README cannot fall behind: its Python runs, its scenario loads and holds, its commands exist, its figures are the ones printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.run import run_scenario
from simulator.scenario import load_scenario

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_python_runs_as_it_stands() -> None:
    (code,) = blocks("python")
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr


def test_the_scenario_holds(tmp_path: Path) -> None:
    text = next(block for block in blocks("yaml") if "steps:" in block)
    path = tmp_path / "readme" / "example.yaml"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    result = run_scenario(load_scenario(path))
    assert result.verdict == "held", result.problem
    assert result.sweep.trees > 100


@pytest.mark.slow
def test_the_script_to_try_writes_its_file_only_when_it_is_allowed_to(tmp_path: Path) -> None:
    script = next(block for block in blocks("yaml") if "steps:" not in block)
    (tmp_path / "try.yaml").write_text(script, encoding="utf-8")
    environment = {**os.environ, "PSEUDOCLAUDE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    for allow in ([], ["--allow"]):
        arguments = ["run", "Greet", "--provider", "script:try.yaml", *allow]
        command = [sys.executable, "-c", "from pseudoclaude.cli import main; main()", *arguments]
        run = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert run.returncode == 0, run.stderr
        assert "hello.txt says hello." in run.stdout
        assert (tmp_path / "hello.txt").exists() == bool(allow)


def test_the_figures_shown_are_those_of_the_run() -> None:
    result = run_scenario(load_scenario(ROOT / "scenarios/append_replace/spilled_result.yaml")).sweep
    line = f"held     append_replace/spilled_result: {result.states:,} states, {result.trees:,} disks, {result.checks:,} verdicts, 0 broken"
    assert line in README


@pytest.mark.slow
@pytest.mark.parametrize("program", ["pseudoclaude", "pseudosim"])
def test_every_command_named_exists(program: str) -> None:
    package = "pseudoclaude" if program == "pseudoclaude" else "simulator"
    named = sorted(
        set(re.findall(rf"\.venv/bin/{program} (\w+)", README)) | set(re.findall(rf"`{program} (\w+)", README))
    )
    assert named
    for command in named:
        arguments = [sys.executable, "-c", f"from {package}.cli import main; main()", command, "--help"]
        run = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
        assert run.returncode == 0, f"{program} {command}: {run.stderr}"


def test_the_files_and_make_targets_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)$", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
    for path in ("pseudoclaude/session/records.py", "requirements.lock", ".ci/run", "scenarios/session"):
        assert path in README
        assert (ROOT / path).exists(), path
