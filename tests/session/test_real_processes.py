"""Real processes on the real disk: kills, and a second process that wants the same session."""

import subprocess
import sys

import pytest

from pseudoclaude.errors import SessionLocked
from pseudoclaude.session import SessionWriter
from tests.session.real_kills import KILLS, kill_often

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kills", [8, KILLS])
def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path, kills):
    done = kill_often(tmp_path / "session", kills)
    assert done.wrong == []
    assert done.kills == kills
    assert done.acknowledged > kills


def test_a_second_process_is_refused_and_told_who_is_first_until_that_one_dies(tmp_path):
    command = [sys.executable, "-m", "tests.session.kill_child", str(tmp_path / "s")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        first.stdout.readline()
        with pytest.raises(SessionLocked, match=f"in use by pid {first.pid} on "):
            SessionWriter.open(tmp_path / "s")
        first.kill()
        first.stdout.read()
    SessionWriter.open(tmp_path / "s").close()


def test_the_lock_is_not_inherited_by_a_child(tmp_path):
    """The child keeps every inheritable descriptor, and the writer never closes: its process drops the lock by dying."""
    holder = (
        "import subprocess, sys\n"
        "from pseudoclaude.session import SessionWriter\n"
        "writer = SessionWriter.open(sys.argv[1])\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'], stdin=0, close_fds=False)\n"
        "print(child.pid, flush=True)\n"
        "import os; os._exit(0)\n"
    )
    command = [sys.executable, "-c", holder, str(tmp_path / "s")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline().strip().isdigit(), "the child runs"
        assert process.wait(timeout=30) == 0
        with SessionWriter.open(tmp_path / "s") as writer:
            assert writer.loaded.state == "missing"
        process.stdin.close()
