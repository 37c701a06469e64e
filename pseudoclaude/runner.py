"""Runner: the one loop.  User text in; manage the context, ask the model, run its tools, until it asks for none.

Order in a turn: append the user text; before each request bound the context; request; anchor the usage; append the reply; run the tools and append
each result; repeat.  At the end the turn's new messages go to Memory, if it ended normally.

Promises.  However a turn ends - an error, Ctrl-C inside a tool or in the middle of a stream, a consumer that stops iterating - the history
it leaves is one a provider accepts: text that had arrived is kept and marked ``interrupted``, and every call without a result gets one that
says its outcome is unknown.  Nothing is sent that Compact says does not fit.  A hook that fails (the log could not be written) ends the turn
with that error; the messages are in memory and the writer saves them first when the disk is well again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from pseudoclaude.compact import ManageOutput, Runtime, force_compact, manage_context
from pseudoclaude.conversation import Conversation
from pseudoclaude.errors import ContextOverflow, NotDurable, PseudoClaudeError, StreamInterrupted
from pseudoclaude.messages import Message, ToolCall, ToolResult, Usage
from pseudoclaude.ports import Provider, Request, Tool
from pseudoclaude.settings import Settings
from pseudoclaude.text import decode

UNKNOWN_OUTCOME = "Interrupted: the outcome of this call is unknown. The tool may or may not have run."


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
Decision = Literal["allow", "refuse"]


class Runner:
    """Drives one conversation.

    ``allow`` decides about tools that change something; without it they are refused.  ``on_text`` sees text as it streams in.
    ``end_turn`` is called when a turn is over, however it ended (the writer's); ``after_turn`` with the new messages of a turn that ended
    normally (Memory's).
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
        self._end_turn = end_turn
        self._after_turn = after_turn
        self._arrived: list[str] = []

    def turn(self, text: str) -> Iterator[Event]:
        """One user turn, as events.  Raises ``PseudoClaudeError``; the history is valid whatever happens."""
        fresh: list[Message] = []
        try:
            try:
                self._append(Message("user", text), fresh)
                yield from self._rounds(fresh)
            except BaseException:
                self._close_open_calls(fresh)
                raise
        finally:
            if self._end_turn is not None:
                self._end_turn()
        if self._after_turn is not None:
            self._after_turn(fresh)

    def compact(self, instructions: str = "") -> Iterator[Event]:
        """Summarise now, because the user asked."""
        yield Notice("Compacting the context…")
        output = force_compact(
            self.conversation,
            self.runtime,
            self._provider,
            instructions=instructions,
            tools=self._specs,
            system=self._system,
        )
        yield Compacted(output)
        if output.error is not None:
            raise output.error

    # --- the loop ----------------------------------------------------------------------------------------------

    def _rounds(self, fresh: list[Message]) -> Iterator[Event]:
        stop = ""
        for number in range(1, self._settings.turn_requests_max + 1):
            yield from self._manage()
            message, usage = self._ask(fresh)
            yield Replied(message, usage)
            stop = message.stop or "end_turn"
            for call in message.tool_calls:
                yield ToolStarted(call)
                result = self._run_tool(call)
                self._append(Message("tool", tool_result=result), fresh)
                yield ToolFinished(call, result)
            if not message.tool_calls and stop != "pause_turn":
                yield TurnEnded(stop, number)
                return
        yield Notice(f"Stopped after {self._settings.turn_requests_max} requests in one turn; say something to go on.")
        yield TurnEnded("requests", self._settings.turn_requests_max)

    def _manage(self) -> Iterator[Event]:
        progress: list[str] = []
        output = manage_context(
            self.conversation,
            self.runtime,
            self._provider,
            tools=self._specs,
            system=self._system,
            on_progress=progress.append,
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
        request = Request(history, self._system, self._specs, self._settings.max_output_tokens)
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
        try:
            output = tool.run(arguments)
        except (PseudoClaudeError, OSError, ValueError, TypeError, KeyError) as error:
            # A tool that fails is an answer for the model; anything else is a bug of ours and goes on up.
            return ToolResult(call.id, f"{call.name} failed: {error}", is_error=True)
        content = output.content if isinstance(output.content, str) else decode(output.content)
        return ToolResult(call.id, content, is_error=output.is_error)

    def _close_open_calls(self, fresh: list[Message]) -> None:
        """Answer what an interruption left open, so that the history can be sent."""
        results = 0
        for message in reversed(self.conversation.messages()):
            if message.tool_result is None:
                for call in message.tool_calls[results:]:
                    self._append_unknown(call, fresh)
                return
            results += 1

    def _append_unknown(self, call: ToolCall, fresh: list[Message]) -> None:
        result = ToolResult(call.id, UNKNOWN_OUTCOME, is_error=True, origin="interrupted")
        try:
            self._append(Message("tool", tool_result=result), fresh)
        except NotDurable:
            # The error that ended the turn is already on its way up, and says the same; the result is in memory and saved later.
            return


def _arguments(call: ToolCall) -> dict[str, Any] | str:
    """The arguments as an object, or what to tell the model about them."""
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        return f"The arguments of {call.name} are not JSON ({error}); it was not run."
    if not isinstance(value, dict):
        return f"The arguments of {call.name} must be a JSON object; it was not run."
    return value
