"""Runner: the one loop.  User text in; manage the context, ask the model, run its tools, until it asks for none.

Order in a turn: append the user text; before each request bound the context; request; anchor the usage; append the reply; run the tools and append
each result; repeat.  At the end the turn's new messages go to Memory, if it ended normally.

Promises.  However a turn ends - an error, Ctrl-C inside a tool or in the middle of a stream, a consumer that stops iterating - the
history it leaves is one a provider accepts: text that had arrived is kept and marked ``interrupted``, and every call without a result
gets one that says its outcome is unknown, or that it was never started.  Nothing is sent that Compact says does not fit; where a
provider counts more than we estimate and refuses, the context is compacted and the request made once more.  A hook that fails (the log
could not be written) ends the turn with that error; the messages are in memory and the writer saves them first when the disk is well
again.

Python's own ``KeyboardInterrupt`` can fall between a message in memory and its record; a front end that lets it through gives a
conversation whose changes are shielded from it, as ``commands.interrupts`` does.

Refuses: to run a call of a reply that was cut off in it, since half of an argument may still be JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pseudoclaude.compact import ManageOutput, Runtime, force_compact, manage_context, offload_tool_results
from pseudoclaude.compact.manager import PROGRESS
from pseudoclaude.conversation import Conversation
from pseudoclaude.errors import ContextOverflow, PseudoClaudeError, StreamInterrupted
from pseudoclaude.messages import Message, ToolCall, ToolResult, Usage
from pseudoclaude.ports import Provider, Request, Tool, ToolSpec
from pseudoclaude.protocol import repair
from pseudoclaude.protocol.repair import OUTCOME_UNKNOWN
from pseudoclaude.settings import Settings
from pseudoclaude.text import decode, size

NOT_STARTED = "[interrupted: the turn was stopped before this call was started; it was not run]"
CUT_OFF = "The reply was cut off and this call may not be whole. It was not run."
RESULT_BYTES_MAX = 1_000_000
"""A result above this never stands in the history or the log in full, not even until the next request."""


class Replied(msgspec.Struct, frozen=True):
    """The model answered; ``message`` is in the conversation."""

    message: Message
    usage: Usage | None


class ToolStarted(msgspec.Struct, frozen=True):
    call: ToolCall


class ToolFinished(msgspec.Struct, frozen=True):
    call: ToolCall
    result: ToolResult


class Compacted(msgspec.Struct, frozen=True):
    """Compact changed the history, or has something to say."""

    output: ManageOutput


class Notice(msgspec.Struct, frozen=True):
    """Something the user should read: the breaker opened, compaction is running, a summary failed."""

    text: str


class TurnEnded(msgspec.Struct, frozen=True):
    """The last event of a turn that ended by itself.  ``stop`` is the model's, or ``requests`` when it would not stop asking."""

    stop: str
    requests: int


Event = Replied | ToolStarted | ToolFinished | Compacted | Notice | TurnEnded
NORMAL_STOPS = frozenset({"end_turn", "stop_sequence"})
"""How a turn ends that Memory learns from."""


class Runner:
    """Drives one conversation.

    ``allow`` decides about tools that change something; without it they are refused.  ``on_text`` sees text as it streams in, ``on_progress``
    what compaction is doing while it does it (without it that is a ``Notice`` afterwards).  ``end_turn`` is called when a turn is over,
    however it ended (the writer's); ``after_turn`` with the new messages of a turn that ended normally (Memory's).
    """

    def __init__(
        self,
        *,
        provider: Provider,
        conversation: Conversation,
        runtime: Runtime,
        tools: Sequence[Tool] = (),
        settings: Settings | None = None,
        system: str = "",
        allow: Callable[[Tool, Mapping[str, Any]], bool] | None = None,
        on_text: Callable[[str], None] | None = None,
        on_progress: Callable[[str], None] | None = None,
        end_turn: Callable[[], None] | None = None,
        after_turn: Callable[[Sequence[Message]], None] | None = None,
    ) -> None:
        self.conversation = conversation
        self.runtime = runtime
        self._provider = provider
        self._tools = {tool.spec.name: tool for tool in tools}
        self._specs = tuple(tool.spec for tool in tools)
        self._settings = settings or runtime.settings
        self._system = system
        self._allow = allow
        self._on_text = on_text
        self._on_progress = on_progress
        self._end_turn = end_turn
        self._after_turn = after_turn
        self._arrived: list[str] = []
        self._started: ToolCall | None = None
        """The call whose tool was started and has no result yet."""

    def turn(self, text: str) -> Generator[Event, None, None]:
        """One user turn, as events.  Raises ``PseudoClaudeError``; the history is valid whatever happens.

        Who stops iterating closes the generator (``contextlib.closing``): only then is what it left open answered.
        """
        fresh: list[Message] = []
        stop = ""
        try:
            try:
                self._close_open_calls([])  # what a second interruption left, while the first was dealt with
                self._append(Message("user", text), fresh)
                stop = yield from self._rounds(fresh)
            except BaseException:
                self._close_open_calls(fresh)
                raise
        finally:
            if self._end_turn is not None:
                self._end_turn()
        if self._after_turn is not None and stop in NORMAL_STOPS:
            self._after_turn(fresh)

    def compact(self, instructions: str = "") -> Generator[Event, None, None]:
        """Summarise now, because the user asked.  Raises ``SummaryFailed``; the history is then as it was."""
        yield Notice(PROGRESS)
        output = force_compact(
            self.conversation,
            self.runtime,
            self._provider,
            instructions=instructions,
            tools=self._tools_declared(),
            system=self._system,
        )
        if output.error is not None:
            raise output.error
        yield Compacted(output)

    # --- the loop ----------------------------------------------------------------------------------------------

    def _rounds(self, fresh: list[Message]) -> Generator[Event, None, str]:
        """Requests and tools until the model asks for no more; returns why the turn ended."""
        for number in range(1, self._settings.turn_requests_max + 1):
            self._mend()
            yield from self._manage()
            try:
                message, usage = self._ask(fresh)
            except ContextOverflow as error:
                yield Notice(f"{error.what}. Compacting the context and trying once more.")
                yield from self._manage()
                message, usage = self._ask(fresh)
            yield Replied(message, usage)
            yield from self._answer_calls(message, fresh)
            stop = message.stop or "end_turn"
            if not message.tool_calls and stop != "pause_turn":
                yield TurnEnded(stop, number)
                return stop
        yield Notice(f"Stopped after {self._settings.turn_requests_max} requests in one turn; say something to go on.")
        yield TurnEnded("requests", self._settings.turn_requests_max)
        return "requests"

    def _mend(self) -> None:
        """Repair a history that someone else made unacceptable: a message appended between a call and its result, a bad beginning."""
        mended, repairs = repair(self.conversation.messages(), dangling="answer")
        if repairs:
            self.conversation.replace_messages("recover", mended)

    def _tools_declared(self) -> tuple[ToolSpec, ...]:
        """The tools of the next request; where there are none, those that the history calls, since providers refuse tool blocks without
        tools (rule A30).
        """
        return self._specs or _bygone(self.conversation.messages())

    def _manage(self) -> Iterator[Event]:
        progress: list[str] = []
        output = manage_context(
            self.conversation,
            self.runtime,
            self._provider,
            tools=self._tools_declared(),
            system=self._system,
            on_progress=self._on_progress or progress.append,
        )
        for line in progress:
            yield Notice(line)
        if (
            output.triggered_layer1
            or output.triggered_layer2
            or output.dropped_count
            or output.summary_error is not None
        ):
            yield Compacted(output)
        if output.notice:
            yield Notice(output.notice)
        if output.error is not None and output.must_stop:
            raise output.error

    def _ask(self, fresh: list[Message]) -> tuple[Message, Usage | None]:
        history = self.conversation.messages()
        request = Request(history, self._system, self._tools_declared(), self._settings.max_output_tokens)
        self._arrived = []
        try:
            reply = self._provider.complete(request, self._hear)
        except StreamInterrupted as error:
            if error.partial.content:
                self._append(error.partial, fresh)
            raise
        except ContextOverflow:
            self.runtime.record_overflow(history)
            raise
        except BaseException:
            text = "".join(self._arrived)
            if text:
                self._append(Message("assistant", text, stop="interrupted"), fresh)
            raise
        self._append(reply.message, fresh)
        self.runtime.record_usage(self.conversation.messages(), reply.usage)
        return reply.message, reply.usage

    def _hear(self, text: str) -> None:
        self._arrived.append(text)
        if self._on_text is not None:
            self._on_text(text)

    def _append(self, message: Message, fresh: list[Message]) -> None:
        fresh.append(message)
        self.conversation.append(message)

    # --- tools -------------------------------------------------------------------------------------------------

    def _answer_calls(self, message: Message, fresh: list[Message]) -> Iterator[Event]:
        last = len(message.tool_calls) - 1
        for index, call in enumerate(message.tool_calls):
            yield ToolStarted(call)
            if index == last and message.stop in ("max_tokens", "refusal"):
                result = ToolResult(call.id, CUT_OFF, is_error=True)
            else:
                result = self._run_tool(call)
            result = self._bounded(result)
            self._append(Message("tool", tool_result=result), fresh)
            self._started = None
            yield ToolFinished(call, result)

    def _run_tool(self, call: ToolCall) -> ToolResult:
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            return ToolResult(call.id, f"There is no tool {call.name!r}. The tools are: {known}.", is_error=True)
        arguments = _arguments(call)
        if isinstance(arguments, str):
            return ToolResult(call.id, arguments, is_error=True)
        if tool.changes and (self._allow is None or not self._allow(tool, arguments)):
            return ToolResult(
                call.id,
                f"Refused: {call.name} changes something, and the user did not allow it. It was not run.",
                is_error=True,
            )
        self._started = call
        try:
            output = tool.run(arguments)
            content = output.content if isinstance(output.content, str) else decode(output.content)
            return ToolResult(call.id, content, is_error=bool(output.is_error))
        except Exception as error:  # noqa: BLE001 (tools are other people's code: whatever fails in one is an answer for the model)
            return ToolResult(call.id, f"{call.name} failed: {_said(error)}", is_error=True)

    def _bounded(self, result: ToolResult) -> ToolResult:
        """``result``, or its preview when it is far too large for a line of the log.  Where its file cannot be written it stays whole, and
        Compact says so before the next request."""
        if size(result.content) <= RESULT_BYTES_MAX:
            return result
        with_result = (*self.conversation.messages(), Message("tool", tool_result=result))
        return offload_tool_results(with_result, self.runtime).messages[-1].tool_result or result

    def _close_open_calls(self, fresh: list[Message]) -> None:
        """Answer what an interruption left open, so that the history can be sent."""
        messages = self.conversation.messages()
        end = len(messages)
        while end and messages[end - 1].role == "tool":
            end -= 1
        calls = messages[end - 1].tool_calls if end else ()
        for call in calls[len(messages) - end :]:
            words = OUTCOME_UNKNOWN if call is self._started else NOT_STARTED
            self._append_closing(ToolResult(call.id, words, is_error=True, origin="interrupted"), fresh)
        self._started = None

    def _append_closing(self, result: ToolResult, fresh: list[Message]) -> None:
        try:
            self._append(Message("tool", tool_result=result), fresh)
        except PseudoClaudeError:
            # The error that ended the turn is already on its way up, and says the same; the result is in memory and saved later.
            return


def _said(error: Exception) -> str:
    """What an exception says, with its class where the words alone would not be understood."""
    if isinstance(error, PseudoClaudeError | OSError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _arguments(call: ToolCall) -> dict[str, Any] | str:
    """The arguments as an object, or what to tell the model about them."""
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        return f"The arguments of {call.name} are not JSON ({error}); it was not run."
    if not isinstance(value, dict):
        return f"The arguments of {call.name} must be a JSON object; it was not run."
    return value


def _bygone(history: Sequence[Message]) -> tuple[ToolSpec, ...]:
    """The tools that a history calls, as ones that are no longer there."""
    names = dict.fromkeys(call.name for message in history for call in message.tool_calls)
    nothing = {"type": "object", "properties": {}}
    return tuple(ToolSpec(name, "No longer available.", nothing) for name in names)
