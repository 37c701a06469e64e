"""``pseudosim`` as a user runs it: a process, its status, its output, its files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITE = "scenarios/append_replace"

FAST = """
why: a small replace
settings: {result_limit_bytes: 800, preview_bytes: 60}
tools: {look: {text: "é ", repeat: 400}}
provider:
  script:
    - {text: "L", tool_calls: [{id: c1, name: look, arguments: {}}]}
    - {text: "D"}
steps: [{user: "go"}]
"""


def pseudosim(*arguments: str, hash_seed: str = "0", cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", "from simulator.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "mini" / "replace.yaml"
    path.parent.mkdir()
    path.write_text(FAST, encoding="utf-8")
    return path


@pytest.mark.slow
def test_the_suite_holds_and_gives_the_same_bytes_under_two_hash_seeds(tmp_path: Path) -> None:
    reports = []
    for seed in ("1", "4242"):
        folder = tmp_path / seed
        run = pseudosim("run", SUITE, "--report-dir", str(folder), hash_seed=seed)
        assert run.returncode == 0, run.stdout + run.stderr
        reports.append((folder / "report.json").read_bytes())
    assert reports[0] == reports[1]
    report = json.loads(reports[0])
    assert report["schema"] == 1
    assert report["summary"]["broken"] == report["summary"]["not_run"] == 0
    for row in report["scenarios"]:
        assert row["verdict"] == "held"
        assert row["states"] > row["trees"] > 100 < row["checks"]
    for row in report["comparison"]:
        assert row["product"]["mixtures"] == row["product"]["lost_acknowledged"] == 0
        older = row["older_log_protocol"]
        assert older["mixtures"] > 0
        assert older["raised"] == older["protocol_invalid"] == 0, "the older protocol keeps its own promise"


@pytest.mark.slow
def test_the_older_protocol_is_caught_and_one_of_its_disks_can_be_rebuilt(scenario: Path, tmp_path: Path) -> None:
    report_dir = tmp_path / "report"
    run = pseudosim("run", str(scenario), "--planted", "older_log_protocol", "--report-dir", str(report_dir))
    assert run.returncode == 1, run.stderr
    report = json.loads((report_dir / "report.json").read_bytes())
    failures = report["scenarios"][0]["failures"]
    torn = next(f for f in failures if f["oracle"] == "O6" and f["message"].startswith("1 of the 3"))
    assert any("pseudoclaude/session/" in site for site in torn["call_sites"])

    disk = tmp_path / "disk"
    again = pseudosim("replay", torn["token"], "--keep", str(disk), "--scenarios", str(tmp_path))
    assert again.returncode == 1
    assert "O6   broken" in again.stdout
    log = next(disk.rglob("conversation.jsonl")).read_text(encoding="utf-8")
    marker = re.search(r'^\{"type":"replace".*"reason":"snapshot".*$', log, re.MULTILINE)
    assert marker is not None
    assert "messages" not in marker.group()
    assert log[marker.end() :].count('"type":"message"') == 1, (
        "one of the three messages of the snapshot reached the disk"
    )

    twice = pseudosim("replay", torn["token"], "--keep", str(disk), "--scenarios", str(tmp_path))
    assert twice.returncode == 2
    assert "not empty" in twice.stderr


def test_a_small_scenario_holds_and_its_report_says_so(scenario: Path, tmp_path: Path) -> None:
    run = pseudosim("run", str(scenario), "--report-dir", str(tmp_path / "r"))
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"Speed: [\d,]+ deep checks in [\d.]+ s on one core", run.stdout)
    summary = (tmp_path / "r" / "summary.md").read_text(encoding="utf-8")
    assert "mini/replace | held" in summary
    assert b'"seconds"' not in (tmp_path / "r" / "report.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (("why: a small replace", "why: x\nunknown_key: 1"), 2, "unknown_key"),
        (("why: a small replace", "why: 12"), 2, "$.why"),
        (
            (
                'script:\n    - {text: "L", tool_calls: [{id: c1, name: look, arguments: {}}]}\n    - {text: "D"}',
                "cassette: nowhere.yaml",
            ),
            3,
            "nowhere.yaml",
        ),
        (('    - {text: "D"}\n', ""), 3, "provider.script"),
    ],
    ids=["unknown key", "wrong type", "missing cassette", "script too short"],
)
def test_bad_input_is_one_clear_line_and_nothing_is_written(
    scenario: Path, tmp_path: Path, change: tuple[str, str], status: int, words: str
) -> None:
    text = scenario.read_text(encoding="utf-8")
    assert change[0] in text
    scenario.write_text(text.replace(*change), encoding="utf-8")
    report = tmp_path / "report"
    run = pseudosim("run", str(scenario), "--report-dir", str(report))
    assert run.returncode == status
    assert words in run.stderr
    assert "replace" in run.stderr
    assert "Traceback" not in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1
    assert not report.exists()


def test_a_cassette_that_does_not_match_is_named_with_the_first_difference(tmp_path: Path) -> None:
    folder = tmp_path / "cassettes"
    folder.mkdir()
    source = ROOT / "scenarios/cassettes"
    (folder / "recordings").mkdir()
    tape = "recordings/anthropic_tool_loop.yaml"
    (folder / tape).write_bytes((source / tape).read_bytes())
    text = (source / "anthropic_tool_loop.yaml").read_text(encoding="utf-8")
    changed = folder / "changed.yaml"
    changed.write_text(text.replace("What do my notes say?", "What else?"), encoding="utf-8")
    run = pseudosim("run", str(changed), "--report-dir", str(tmp_path / "r"))
    assert run.returncode == 3
    assert "anthropic_tool_loop.yaml" in run.stderr
    assert "What else?" in run.stderr or "messages" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "no/such/place"), "no/such/place"),
        (("run", SUITE, "--planted", "none_such"), "older_log_protocol"),
        (("run", "--bogus"), "--bogus"),
        (("replay", "nonsense"), "not a token"),
        (("replay", "cs1:append_replace/spilled_result:00000000:s0:product:kill:c3:k1"), "has changed"),
        (("replay", "cs1:append_replace/none:00000000:s0:product:kill:c3:k1"), "none.yaml"),
    ],
)
def test_usage_errors_have_status_two(arguments: tuple[str, ...], words: str) -> None:
    run = pseudosim(*arguments)
    assert run.returncode == 2
    assert words in run.stderr
    assert "Traceback" not in run.stderr
