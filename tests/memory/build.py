"""What memory's tests run on: a scripted model, a clock that only ever goes forward by itself, a worker without a thread, and two stores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pseudoclaude.memory import MemoryManager
from pseudoclaude.messages import Message
from pseudoclaude.ports import Background, Clock, FileSystem, Provider, Reply, Request
from pseudoclaude.realworld import RealFileSystem
from pseudoclaude.settings import Settings
from tests.driving import assert_acceptable

TURN = (Message("user", "Remember this."), Message("assistant", "I will."))


class ScriptedModel:
    """``ports.Provider`` that answers with the given texts in order; an exception among them is raised."""

    dialect = "anthropic"
    model = "scripted"

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        assert_acceptable(request.messages, [spec.name for spec in request.tools])
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Reply(Message("assistant", answer, stop="end_turn"))


class SteppingClock:
    """``ports.Clock`` whose time moves by one second a look; two managers with the same start see the same times."""

    def __init__(self, start: float = 1_764_547_200.0) -> None:
        self.time = start

    def now(self) -> float:
        self.time += 1.0
        return self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


class AtOnce:
    """``ports.Background`` that runs each job when it is submitted."""

    def submit(self, job: Callable[[], None]) -> None:
        job()

    def drain(self, timeout: float) -> bool:
        return True


def operation(action: str, level: str, slug: str, body: str = "", **members: str) -> dict[str, Any]:
    """One operation as a model writes it."""
    given = {"action": action, "level": level, "slug": slug, "body": body, **members}
    return {key: value for key, value in given.items() if value}


def answer(*operations: dict[str, Any]) -> str:
    return json.dumps(list(operations), ensure_ascii=False)


def manager(
    root: Path | str,
    *answers: str | Exception,
    fs: FileSystem | None = None,
    background: Background | None = None,
    provider: Provider | None = None,
    clock: Clock | None = None,
    project: str = "project",
    home: str = "home",
    settings: Settings | None = None,
) -> MemoryManager:
    """A manager below ``root``, where the folder ``project`` has to exist; the model answers with ``answers``."""
    model = provider if provider is not None else ScriptedModel(*answers)
    return MemoryManager(
        fs=fs or RealFileSystem(),
        clock=clock or SteppingClock(),
        background=background or AtOnce(),
        project_root=f"{root}/{project}",
        user_root=f"{root}/{home}",
        provider=model,
        settings=settings or Settings(),
    )


def stores(root: Path) -> tuple[Path, Path]:
    """The folders of the project's and the user's store."""
    return root / "project/.pseudoclaude/memory", root / "home/memory"


def notes_in(folder: Path) -> dict[str, str]:
    """Slug to body of every note in a store's folder."""
    return {
        path.stem: path.read_text().split("---\n", 2)[-1].strip()
        for path in sorted(folder.glob("*.md"))
        if path.name != "MEMORY.md"
    }


def lines_in(folder: Path) -> list[str]:
    index = folder / "MEMORY.md"
    return index.read_text().splitlines() if index.exists() else []


def remembered(
    root: Path | str, *operations: dict[str, Any], fs: FileSystem | None = None, **options: Any
) -> tuple[str, ...]:
    """One update with these operations; returns what the manager reported."""
    made = manager(root, answer(*operations), fs=fs, **options)
    made.update_async(TURN, session_id="s1", range=(1, 2))
    assert made.drain(10)
    return made.take_reports()


def only(reports: Iterable[str], *words: str) -> bool:
    """Whether there is exactly one report and it has all the words."""
    told = list(reports)
    return len(told) == 1 and all(word in told[0] for word in words)
