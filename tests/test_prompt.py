"""The system prompt, and that a session keeps the one it began with."""

from __future__ import annotations

import pytest

from pseudoclaude.prompt import BASE, FILE_NAME, session_prompt, system_prompt
from simulator.disk import DiskFault, FaultPlan, SimFileSystem

FOLDER = "/s"


@pytest.fixture
def fs() -> SimFileSystem:
    made = SimFileSystem()
    made.mkdir(FOLDER)
    return made


def _put(fs: SimFileSystem, data: bytes) -> None:
    fd = fs.open(f"{FOLDER}/{FILE_NAME}", "create")
    fs.write(fd, data)
    fs.close(fd)


def test_the_parts_stand_in_order_and_empty_ones_are_left_out() -> None:
    assert system_prompt() == BASE
    assert system_prompt("NOTES", folder="/p") == f"{BASE}\n\nThe project folder is /p.\n\nNOTES"


def test_a_session_goes_on_with_the_prompt_it_began_with(fs: SimFileSystem) -> None:
    assert session_prompt(fs, FOLDER, lambda: "first é") == "first é"
    assert session_prompt(fs, FOLDER, lambda: "second") == "first é"


@pytest.mark.parametrize("data", [b"", b"\n", b"0" * 64 + b"\nother", b"\xff\xff", b"first"])
def test_a_damaged_file_is_known_as_such_and_replaced(fs: SimFileSystem, data: bytes) -> None:
    _put(fs, data)
    assert session_prompt(fs, FOLDER, lambda: "fresh") == "fresh"
    assert session_prompt(fs, FOLDER, lambda: "later") == "fresh"


@pytest.mark.parametrize("call", ["stat", "open", "write", "fsync", "rename", "fsync_dir"])
def test_a_disk_that_fails_costs_the_file_and_nothing_else(fs: SimFileSystem, call: str) -> None:
    fs.faults = FaultPlan((DiskFault(call=call, error="EIO", sticky=True),))  # type: ignore[arg-type]
    assert session_prompt(fs, FOLDER, lambda: "fresh") == "fresh"
    assert fs.faults.fired > 0
    fs.faults = FaultPlan()
    kept = session_prompt(fs, FOLDER, lambda: "later")
    assert kept in ("fresh", "later")
    assert session_prompt(fs, FOLDER, lambda: "last") == kept
