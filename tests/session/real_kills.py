"""``python -m tests.session.real_kills [--kills N]``: a real process, killed at many moments, loses nothing that it was told is saved."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from pseudoclaude.session import load
from tests.session.kill_child import CALL, ROUND, said_by, texts_after

KILLS = 300


class Killed(msgspec.Struct):
    """``acknowledged``: changes that had returned, over all kills; ``torn``: kills that left a line without its end."""

    kills: int = 0
    acknowledged: int = 0
    in_flight: int = 0
    torn: int = 0
    spills: int = 0
    wrong: list[str] = []


def kill_often(folder: Path, kills: int) -> Killed:
    """Start a child in ``folder``, kill it, look; again and again, on the same session."""
    done = Killed(wrong=[])
    for turn in range(kills):
        acked = _one_life(folder, (turn * 37) % 53 / 1000)
        done.kills += 1
        done.acknowledged += acked[1] - acked[0]
        problem = _look(folder, acked[1], done)
        if problem:
            done.wrong.append(f"kill {turn}: {problem}")
    return done


def _one_life(folder: Path, delay_seconds: float) -> tuple[int, int]:
    """One child from its start to its death: the change it began after, and the last it was told is saved."""
    command = [sys.executable, "-m", "tests.session.kill_child", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        first = int(child.stdout.readline().split()[1])
        time.sleep(delay_seconds)
        child.kill()
        told = child.stdout.read().decode()
    whole = [int(text) for text in told[: told.rfind("\n") + 1].split()]
    return first, whole[-1] if whole else first


def _look(folder: Path, acked: int, done: Killed) -> str:
    loaded = load(folder, scan_all=True)
    said = said_by(loaded.messages)
    lowest = acked - 1 if acked % ROUND == CALL else acked  # an open call is trimmed
    at = next((number for number in range(lowest, acked + 2) if said == texts_after(number)), None)
    done.torn += loaded.ends_open
    done.spills += sum(message.tool_result is not None for message in loaded.messages)
    if at is None:
        return f"{acked} was acknowledged, {said[-3:]} is there"
    done.in_flight += at > acked
    bad = [
        finding.text
        for finding in loaded.findings
        if finding.kind not in ("torn", "repair", "incomplete_replace", "json")
    ]
    return "; ".join(bad)


def main() -> int:
    """Print what was done; 1 if anything acknowledged was lost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=KILLS)
    with tempfile.TemporaryDirectory() as root:
        done = kill_often(Path(root, "session"), parser.parse_args().kills)
    sys.stdout.write(
        f"{done.kills} kills, {done.acknowledged} acknowledged changes, {done.in_flight} more were written and not yet acknowledged, "
        f"{done.torn} torn lines, {done.spills} spilled results looked at, {len(done.wrong)} wrong\n"
    )
    for text in done.wrong:
        sys.stdout.write(f"  {text}\n")
    return int(bool(done.wrong))


if __name__ == "__main__":
    sys.exit(main())
