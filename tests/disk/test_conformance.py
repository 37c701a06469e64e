"""The simulated disk gives the answers of a real one, and the comparison that says so would see it if not."""

from __future__ import annotations

import pytest

from simulator.disk import SimFileSystem
from simulator.disk.conformance import PLANTED, compare
from simulator.disk.conformance.__main__ import PLANTED_SCRIPTS, main
from simulator.disk.conformance.deviations import KNOWN
from simulator.disk.conformance.scripts import generate
from simulator.disk.faults import os_error

CALLS = {
    "mkdir", "open", "write", "pread", "truncate", "fstat", "fsync", "fdatasync", "close", "lock", "stat", "listdir", "rename",
    "unlink", "rmdir", "fsync_dir", "tree",
}  # fmt: skip
MET = {
    *(f"rename {answer}" for answer in ("done", "ENOENT", "ENOTDIR", "EISDIR", "EINVAL", "ENOTEMPTY", "ENAMETOOLONG")),
    *(f"open {answer}" for answer in ("done", "ENOENT", "EEXIST", "EISDIR", "ENOTDIR", "ENAMETOOLONG", "ValueError")),
    *(f"{call} EBADF" for call in ("write", "pread", "truncate", "fstat", "fsync", "fdatasync", "close", "lock")),
    *(f"unlink {answer}" for answer in ("done", "ENOENT", "EISDIR", "ENOTDIR")),
    *(f"rmdir {answer}" for answer in ("done", "ENOENT", "ENOTDIR", "ENOTEMPTY")),
    *(f"mkdir {answer}" for answer in ("done", "ENOENT", "EEXIST", "ENOTDIR")),
    *(
        "lock True",
        "lock False",
        "pread value",
        "pread EISDIR",
        "pread EINVAL",
        "truncate done",
        "truncate EINVAL",
        "tree value",
    ),
}


@pytest.mark.slow
def test_500_scripts_give_the_same_answers_on_all_three():
    report = compare(scripts=500, seed=0)
    assert report.held, report.text()
    assert report.scripts == 500
    assert {outcome.partition(" ")[0] for outcome in report.outcomes} == CALLS
    assert set(report.outcomes) >= MET
    assert set(report.deviations) == {known.name for known in KNOWN}
    assert report.pyfakefs_scripts >= 350
    assert report.pyfakefs_calls >= 0.9 * report.calls


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_difference_is_found_and_shown_with_what_led_to_it(planted):
    report = compare(PLANTED_SCRIPTS, simulated=planted, enough=1)
    assert len(report.differences) == 1
    assert not report.held
    assert not report.pyfakefs_differences
    shown = str(report.differences[0])
    script, index = report.differences[0].script, report.differences[0].index
    assert f"script {script.number}, call {index}: {script.calls[index]}" in shown
    assert all(str(call) in shown for call in script.calls[: index + 1])
    assert shown in report.text()


class _RefusesFolders(SimFileSystem):
    def mkdir(self, path: str) -> None:
        if path.count("/") > 1:
            raise os_error("ENOSPC", path)
        super().mkdir(path)


def test_the_three_answers_stand_side_by_side():
    report = compare(2, simulated=_RefusesFolders)
    difference = report.differences[0]
    assert (difference.simulated, difference.pyfakefs, difference.real) == ("ENOSPC", "done", "done")
    lines = str(difference).splitlines()
    assert lines[1:4] == ["  SimFileSystem ENOSPC", "  pyfakefs      done", "  real folder   done"]


def test_nothing_compared_is_not_held():
    assert not compare(scripts=0).held


def test_a_script_is_the_same_each_time_and_another_for_another_number_or_seed():
    assert generate(0, 7) == generate(0, 7)
    assert generate(0, 7).calls != generate(0, 8).calls
    assert generate(0, 7).calls != generate(1, 7).calls


def test_the_report_is_the_same_each_time():
    assert compare(scripts=3).text() == compare(scripts=3).text()


@pytest.mark.slow
def test_the_command_prints_the_comparison_and_what_was_planted(capsys):
    assert main(["--scripts", "5"]) == 0
    printed = capsys.readouterr().out
    assert "SimFileSystem against a real folder: 0 differences" in printed
    assert all(f"planted {planted.__name__}: found in " in printed for planted in PLANTED)
