from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pseudoclaude.errors import SessionUnreadable
from pseudoclaude.ports import Reply, Request
from pseudoclaude.realworld import ThreadBackground
from tests.memory.build import TURN, ScriptedModel, answer, lines_in, manager, notes_in, only, operation, stores

FACT = answer(operation("create", "project", "a", "one"), operation("create", "user", "b", "two"))
HERE = Path(__file__).parents[2]


class Gated(ScriptedModel):
    """A model that answers when the gate is opened."""

    def __init__(self, *answers: str) -> None:
        super().__init__(*answers)
        self.gate = threading.Event()

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        assert self.gate.wait(10)
        return super().complete(request)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


@pytest.fixture
def slow_model() -> Iterator[Gated]:
    model = Gated(FACT, "[]")
    yield model
    model.gate.set()


def pending_in(root: Path) -> list[Path]:
    return sorted((stores(root)[0] / "pending").iterdir())


def test_the_answer_does_not_wait_for_the_model(root: Path, slow_model: Gated) -> None:
    made = manager(root, provider=slow_model, background=ThreadBackground())
    began = time.monotonic()
    made.update_async(TURN, session_id="s1", range=(3, 4))
    assert time.monotonic() - began < 2, "the model has not answered yet"
    assert slow_model.requests == []
    assert len(pending_in(root)) == 1
    slow_model.gate.set()
    assert made.drain(10)
    assert (notes_in(stores(root)[0]), pending_in(root)) == ({"a": "one"}, [])


def test_drain_keeps_its_timeout_and_says_what_becomes_of_the_turn(root: Path, slow_model: Gated) -> None:
    made = manager(root, provider=slow_model, background=ThreadBackground())
    made.update_async(TURN, session_id="s1", range=(3, 4))
    began = time.monotonic()
    assert made.drain(0.05) is False
    assert 0.04 < time.monotonic() - began < 2
    assert only(made.take_reports(), "0.05 seconds", "next start")
    assert len(pending_in(root)) == 1


def test_the_record_holds_no_text_of_the_turn(root: Path, slow_model: Gated) -> None:
    made = manager(root, provider=slow_model, background=ThreadBackground())
    made.update_async(TURN, session_id="s1", range=(3, 4))
    assert pending_in(root)[0].read_text() == '{"session_id":"s1","first":3,"last":4}'


def test_a_turn_that_is_worked_on_is_not_taken_up_by_another(root: Path, slow_model: Gated) -> None:
    made = manager(root, provider=slow_model, background=ThreadBackground())
    made.update_async(TURN, session_id="s1", range=(3, 4))
    assert manager(root, FACT).finish_pending(lambda *_: TURN) == 0
    made.update_async(TURN, session_id="s1", range=(3, 4))
    slow_model.gate.set()
    assert made.drain(10)
    assert len(slow_model.requests) == 1
    assert manager(root, FACT).finish_pending(lambda *_: TURN) == 0


def leave_a_record(root: Path) -> None:
    folder = stores(root)[0] / "pending"
    folder.mkdir(parents=True)
    (folder / "036ffbd7b6b2ab17fa6e1a81.json").write_text("")
    made = manager(root, ConnectionError("died"))
    made.update_async(TURN, session_id="s1", range=(3, 4))
    assert "ConnectionError" in made.take_reports()[0]


def test_a_turn_is_finished_once_and_what_is_no_record_is_removed(root: Path) -> None:
    leave_a_record(root)
    made = manager(root, FACT)
    assert made.finish_pending(lambda *turn: TURN if turn == ("s1", 3, 4) else None) == 1
    assert only(made.take_reports(), "was no record of a turn")
    assert (notes_in(stores(root)[0]), pending_in(root)) == ({"a": "one"}, [])
    assert manager(root).finish_pending(lambda *_: TURN) == 0


def test_a_turn_waits_while_its_session_cannot_be_read_and_goes_with_it(root: Path) -> None:
    leave_a_record(root)

    def unreadable(*_: object) -> None:
        raise SessionUnreadable("no permission")

    made = manager(root, FACT)
    assert made.finish_pending(unreadable) == 0
    assert "waits for the next start: no permission" in made.take_reports()[1]
    assert made.finish_pending() == 0
    assert len(pending_in(root)) == 1
    assert made.finish_pending(lambda *_: None) == 0
    assert only(made.take_reports(), "was given up")
    assert pending_in(root) == []


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hang", "exit"])
def test_a_process_that_ends_during_extraction_leaves_its_turn_to_the_next(root: Path, mode: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.memory.worker", mode, str(root)], cwd=HERE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        if mode == "hang":
            process.send_signal(signal.SIGKILL)
        else:
            assert process.stdout.readline() == "drained False\n"
        process.wait(10)
    assert notes_in(stores(root)[0]) == {}
    made = manager(root, FACT)
    made.refresh_index()
    assert made.finish_pending(lambda *turn: TURN if turn == ("s1", 3, 4) else None) == 1
    assert (notes_in(stores(root)[0]), notes_in(stores(root)[1])) == ({"a": "one"}, {"b": "two"})
    assert "source: session s1, messages 3-4" in (stores(root)[0] / "a.md").read_text()
    assert (manager(root).finish_pending(lambda *_: TURN), pending_in(root), made.take_reports()) == (0, [], ())


@pytest.mark.slow
def test_two_processes_lose_no_update_and_double_no_line(root: Path) -> None:
    count = 200
    command = [sys.executable, "-m", "tests.memory.worker", "updates", str(root)]
    with (
        subprocess.Popen([*command, "one", str(count)], cwd=HERE, stdout=subprocess.PIPE, text=True) as first,
        subprocess.Popen([*command, "two", str(count)], cwd=HERE, stdout=subprocess.PIPE, text=True) as second,
    ):
        said = [process.communicate(timeout=300)[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    assert [text for said_by in said for text in said_by.splitlines() if "over its limit" not in text] == []
    project, user = stores(root)
    names = sorted(f"{name}-{i}" for name in ("one", "two") for i in range(count))
    assert sorted(notes_in(project)) == names
    assert sorted(lines_in(project)) == sorted(f"- [{name}]({name}.md): fact {name.split('-')[1]}" for name in names)
    assert list(notes_in(user)) == ["shared"]
    assert notes_in(user)["shared"] in (f"one {count - 1}", f"two {count - 1}")
    assert len(lines_in(user)) == 1
    assert pending_in(root) == []
