"""A whole session in memory - simulated disk, real writer, conversation, compaction and Runner - driven turn by turn, and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pseudoclaude.compact import Runtime
from pseudoclaude.conversation import Conversation
from pseudoclaude.messages import History, Message, Stop, ToolCall, Usage
from pseudoclaude.ports import Reply, Request, Tool, ToolOutput, ToolSpec
from pseudoclaude.protocol import check
from pseudoclaude.providers import to_wire
from pseudoclaude.runner import Event, Runner
from pseudoclaude.session import SessionWriter, load
from pseudoclaude.settings import Settings
from simulator.disk import DiskFault, FaultPlan, SimFileSystem
from simulator.world import SimClock, SimIds

FOLDER = "/home/user/.pseudoclaude/projects/p/sessions/s"
DIALECTS = ("anthropic", "openai-chat", "openai-responses")


class Streamed:
    """Text that arrives, and then the exception that ends it."""

    def __init__(self, text: str, ending: BaseException) -> None:
        self.text = text
        self.ending = ending


Answer = Message | BaseException | Streamed


def said(text: str, stop: Stop = "end_turn") -> Message:
    return Message("assistant", text, stop=stop)


def calls(*wanted: str | ToolCall, text: str = "", stop: Stop = "tool_use") -> Message:
    """An assistant message with calls; a bare name is a call of that tool with an id made from its place."""
    made = [one if isinstance(one, ToolCall) else ToolCall(f"c{i}", one, "{}") for i, one in enumerate(wanted)]
    return Message("assistant", text, tuple(made), stop=stop)


class Playing:
    """``ports.Provider`` that plays answers in order, and judges each request as the three providers would."""

    dialect = "anthropic"
    model = "playing"

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []
        self.usage: Usage | None = None
        self._summaries: tuple[str, list[Request]] | None = None

    def summarize_with(self, text: str) -> list[Request]:
        """Answer summary requests with ``text`` from now on, apart from the other answers; they are listed here as they come."""
        self._summaries = (text, [])
        return self._summaries[1]

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        assert_acceptable(request.messages, [spec.name for spec in request.tools])
        self.requests.append(request)
        if request.purpose == "summary" and self._summaries is not None:
            self._summaries[1].append(request)
            return Reply(said(self._summaries[0]), None, self.model)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        if on_text is not None:
            on_text(answer.text if isinstance(answer, Streamed) else answer.content)
        if isinstance(answer, Streamed):
            raise answer.ending
        return Reply(answer, self.usage, self.model)


class Speaking:
    """A tool that gives ``content``, or raises it."""

    def __init__(self, name: str, content: str | bytes | BaseException = "fine", *, changes: bool = False) -> None:
        self.spec = ToolSpec(name, f"The tool {name}.", {"type": "object", "properties": {}})
        self.changes = changes
        self.runs: list[Mapping[str, Any]] = []
        self._content = content

    def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        self.runs.append(arguments)
        if isinstance(self._content, BaseException):
            raise self._content
        return ToolOutput(self._content)


class Driven:
    """One session.  ``turn`` collects the events of a turn, ``assert_settled`` judges what it left."""

    def __init__(
        self,
        *answers: Answer,
        tools: Sequence[Tool] = (),
        settings: Settings | None = None,
        **runner: Any,
    ) -> None:
        self.settings = settings or Settings()
        self.fs = SimFileSystem()
        self.provider = Playing(answers)
        self.turns_ended = 0
        self.remembered: list[Sequence[Message]] = []
        self.tools = tuple(tools)
        self.writer = self._open()
        self.conversation = Conversation((), self.writer.hooks())
        self.runtime = Runtime(fs=self.fs, session_folder=FOLDER, settings=self.settings)
        self.runner = Runner(
            provider=self.provider,
            conversation=self.conversation,
            runtime=self.runtime,
            tools=self.tools,
            settings=self.settings,
            end_turn=self._end_turn,
            after_turn=self.remembered.append,
            **runner,
        )

    def _open(self) -> SessionWriter:
        return SessionWriter.open(
            FOLDER, settings=self.settings, fs=self.fs, clock=SimClock(), ids=SimIds(0), dangling="answer"
        )

    def _end_turn(self) -> None:
        self.turns_ended += 1
        self.writer.end_turn()

    def break_disk(self, *faults: DiskFault) -> FaultPlan:
        """From now on these faults hit, counted from now."""
        self.fs.faults = FaultPlan(faults)
        return self.fs.faults

    @property
    def history(self) -> History:
        return self.conversation.messages()

    @property
    def log(self) -> bytes:
        fd = self.fs.open(f"{FOLDER}/conversation.jsonl", "read")
        try:
            return self.fs.pread(fd, 1 << 30, 0)
        finally:
            self.fs.close(fd)

    def turn(self, text: str = "Do it.") -> list[Event]:
        return list(self.runner.turn(text))

    def results(self) -> list[str]:
        return [message.tool_result.content for message in self.history if message.tool_result is not None]

    def saved(self) -> History:
        loaded = load(FOLDER, fs=self.fs, dangling="answer")
        assert not loaded.repairs
        return loaded.messages

    def assert_settled(self) -> None:
        """Acceptable, saved, and the next turn works; then acceptable and saved again."""
        self.break_disk()
        assert_acceptable((*self.history, Message("user", "Next.")))
        before = self.history
        self.provider.answers = [said("All is well.")]
        self.turn("Next.")
        assert self.history == (*before, Message("user", "Next."), said("All is well."))
        assert self.saved() == self.history
        assert_acceptable((*self.history, Message("user", "And on.")))
        self.writer.close()
        assert self._open().loaded.messages == self.history


def assert_acceptable(messages: History, tools: Sequence[str] = ()) -> None:
    """No provider of the three would refuse these messages.  ``tools`` are those of the request; none given: not known."""
    paused = messages[-1].stop == "pause_turn"
    for dialect in DIALECTS[:1] if paused else DIALECTS:
        context: dict[str, Any] = {"last_stop_reason": "pause_turn"} if paused else {}
        if tools:
            context["tools"] = list(tools)
        assert check(dialect, to_wire(dialect, messages), context=context) == [], dialect
