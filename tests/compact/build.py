"""Short names for histories, and what is true of every history that may be sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from pseudoclaude.compact import Runtime
from pseudoclaude.errors import ProviderError
from pseudoclaude.messages import History, Message, Stop, ToolCall, ToolResult
from pseudoclaude.ports import FileSystem, Reply, Request, ToolSpec
from pseudoclaude.protocol import check
from pseudoclaude.providers import to_wire
from pseudoclaude.realworld import RealFileSystem
from pseudoclaude.settings import Settings

TOOLS = (ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
SUMMARY = "## Goal\nRepair the parser.\n## Next\nRun the tests."


def user(text: str) -> Message:
    return Message("user", text)


def said(text: str) -> Message:
    return Message("assistant", text, stop="end_turn")


def calls(*ids: str, text: str = "", arguments: str = "{}") -> Message:
    return Message("assistant", text, tuple(ToolCall(one, "read", arguments) for one in ids), stop="tool_use")


def result(call_id: str, content: str) -> Message:
    return Message("tool", tool_result=ToolResult(call_id, content))


def content_of(message: Message) -> str:
    assert message.tool_result is not None
    return message.tool_result.content


def runtime(folder: Path | str, settings: Settings | None = None, fs: FileSystem | None = None) -> Runtime:
    return Runtime(fs=fs or RealFileSystem(), session_folder=folder, settings=settings)


def assert_valid(messages: History) -> None:
    """What providers ask of a request, in each of the three dialects; a finished history is judged with a user message after it."""
    if messages[-1].role == "assistant":
        messages = (*messages, user("go on"))
    for dialect in ("anthropic", "openai-chat", "openai-responses"):
        violations = check(dialect, to_wire(dialect, messages))
        assert violations == [], (dialect, violations)


def assert_pairs(messages: History) -> None:
    """Every call directly followed by its results, every result directly after its call; checked without the product's repair."""
    assert messages[0].role == "user"
    open_ids: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.tool_result is not None
            open_ids.remove(message.tool_result.call_id)
        else:
            assert open_ids == []
            open_ids = [call.id for call in message.tool_calls]
    assert open_ids == []


class ScriptedProvider:
    """``ports.Provider`` that plays answers in order (the last one for ever) and checks every request it gets."""

    dialect = "anthropic"
    model = "scripted"

    def __init__(self, answers: Iterable[Message | ProviderError], before: Callable[[], None] | None = None) -> None:
        self._answers = list(answers)
        self._before = before
        self.requests: list[Request] = []

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        assert_pairs(request.messages)
        assert_valid(request.messages)
        self.requests.append(request)
        if self._before is not None:
            self._before()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ProviderError):
            raise answer
        return Reply(answer, None, self.model)


def summary_reply(text: str = SUMMARY, stop: Stop = "end_turn") -> Message:
    return Message("assistant", text, stop=stop)


def talk(rounds: int, tokens_each: int = 1_000) -> History:
    """``rounds`` tool rounds under one user request, each of about ``tokens_each`` tokens."""
    history = [user("Please repair the parser.")]
    for number in range(rounds):
        history += [calls(f"call_{number}"), result(f"call_{number}", "x" * int(tokens_each * 3.5))]
    return tuple(history)
