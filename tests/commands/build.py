"""An agent in a real temporary folder with a scripted model, and a screen that remembers."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from pseudoclaude.commands.agent import Agent, Callbacks, Machine, Place, open_agent
from pseudoclaude.commands.screen import Screen
from pseudoclaude.messages import Message
from pseudoclaude.ports import Provider, Reply, Request
from pseudoclaude.realworld import RealFileSystem, ThreadBackground
from pseudoclaude.settings import Settings
from simulator.world import SimClock, SimIds
from tests.driving import Answer, Playing, assert_acceptable, said


class Remembering:
    """``ports.Provider``: turns from ``turns``, memory requests answered from ``memory``, ``[]`` when there is no more."""

    dialect = "anthropic"
    model = "playing"

    def __init__(self, turns: Sequence[Answer], memory: Sequence[str] = ()) -> None:
        self.turns = Playing(turns)
        self.memory = list(memory)
        self.memory_requests: list[Request] = []

    def complete(self, request: Request, on_text: object = None) -> Reply:
        if request.purpose == "memory":
            assert_acceptable(request.messages, [spec.name for spec in request.tools])
            self.memory_requests.append(request)
            return Reply(said(self.memory.pop(0) if self.memory else "[]"))
        return self.turns.complete(request, on_text)  # type: ignore[arg-type]


class Office:
    """A home and a project; agents in it have ids that count."""

    def __init__(self, folder: Path) -> None:
        self.place = Place(str(folder / "home"), str(folder / "project"))
        Path(self.place.project).mkdir()
        self.machine = Machine(RealFileSystem(), SimClock(), SimIds(0), ThreadBackground())

    def agent(self, provider: Provider, *, resume: str = "", callbacks: Callbacks | None = None) -> Agent:
        return open_agent(
            self.machine,
            self.place,
            provider,
            settings=Settings(),
            resume=resume,
            callbacks=callbacks or Callbacks(),
        )


class Typed:
    """What a user types, line by line; an exception is raised instead, and the end is Ctrl-D."""

    def __init__(self, lines: Iterable[str | BaseException]) -> None:
        self._lines = iter(lines)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        line = next(self._lines, None)
        if line is None:
            raise EOFError
        if isinstance(line, BaseException):
            raise line
        return line


class Shown:
    """A screen without a terminal: ``text`` is what it printed."""

    def __init__(self, answers: Iterable[str | BaseException] = ()) -> None:
        self._file = io.StringIO()
        self.answers = Typed(answers)
        self.screen = Screen(Console(file=self._file, width=200), self.answers)

    @property
    def text(self) -> str:
        return self._file.getvalue()


def texts(messages: Iterable[Message]) -> list[str]:
    return [message.content for message in messages]
