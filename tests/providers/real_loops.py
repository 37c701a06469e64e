"""The recorded Anthropic tool loops, ready to drive a Runner: what the user says, the tools and their recorded outputs, the provider.

A loop begins at a request that holds user text only and is answered with tool calls; it goes on while the next recorded request is
that conversation, the reply and its results.  Where the recording stops before the closing reply, that reply is scripted, and
``closing_is_scripted`` says so; where it holds no outputs for the last calls, these are made up too, and say so in their text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pseudoclaude.messages import History, Message, Usage
from pseudoclaude.ports import Provider, Reply, Request, Tool, ToolOutput, ToolSpec
from simulator.replies.cassettes import Recorded
from simulator.replies.projection import fingerprint, read_history, system_text
from simulator.replies.replay import CassetteProvider
from tests.providers import corpus
from tests.providers.corpus import Case
from tests.providers.wire_truth import Truth, truth

CLOSING = "(scripted: the recording stops before the closing reply) Done."
NO_OUTPUT = "(made up: the recording stops before the tool's output)"


class Loop(NamedTuple):
    """One tool loop.  ``outputs`` are (tool name, arguments as sorted JSON, text, is_error), in the order they were given."""

    name: str
    file: str
    positions: tuple[int, ...]
    user: str
    system: str
    streams: bool
    parallel: bool
    closing_is_scripted: bool
    specs: tuple[ToolSpec, ...]
    outputs: tuple[tuple[str, str, str, bool], ...]

    def provider(self) -> LoopProvider:
        """A fresh provider: the recordings in order through the real SDK, then the scripted closing reply if one is due."""
        replay = CassetteProvider(corpus.cassette(self.file).only(*self.positions), match="projection")
        return LoopProvider(replay, closing=CLOSING if self.closing_is_scripted else None)

    def tools(self) -> list[Tool]:
        """Fresh tools that give the recorded outputs; none of them changes anything."""
        return [RecordedTool(spec, [row[1:] for row in self.outputs if row[0] == spec.name]) for spec in self.specs]


class LoopProvider:
    """``ports.Provider``: a replay, then at most one scripted text."""

    def __init__(self, replay: CassetteProvider, *, closing: str | None) -> None:
        self.dialect = replay.dialect
        self.model = replay.model
        self.replay = replay
        self._closing = closing

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        if self.replay.remaining or self._closing is None:
            return self.replay.complete(request, on_text)
        text, self._closing = self._closing, None
        if on_text is not None:
            on_text(text)
        return Reply(Message("assistant", text, stop="end_turn"), Usage(1, 1), self.model)

    @property
    def finished(self) -> bool:
        """Whether every recording, and the scripted text, was used."""
        return not self.replay.remaining and self._closing is None


class RecordedTool:
    """``ports.Tool``: gives the next unused output recorded for the same arguments.  Raises ``KeyError`` for a call never recorded."""

    changes = False

    def __init__(self, spec: ToolSpec, outputs: list[tuple[str, str, bool]]) -> None:
        self.spec = spec
        self._outputs = outputs

    def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        wanted = _sorted_json(arguments)
        for position, (recorded, text, is_error) in enumerate(self._outputs):
            if recorded == wanted:
                del self._outputs[position]
                return ToolOutput(text, is_error)
        raise KeyError(f"{self.spec.name}({wanted}) was not recorded")


def loops() -> list[Loop]:
    """Every recorded Anthropic tool loop, in order of file name; empty where the shared folder is absent."""
    found: list[Loop] = []
    by_file: dict[str, list[Case]] = {}
    for case in corpus.cases():
        if corpus.recorded(case).dialect == "anthropic":
            by_file.setdefault(case.file, []).append(case)
    for _, group in sorted(by_file.items()):
        usable = [case for case in group if corpus.expected(case).error is None]
        found += [loop for case in usable if (loop := _loop_from(case, usable)) is not None]
    return found


def _loop_from(start: Case, group: list[Case]) -> Loop | None:
    first = corpus.recorded(start)
    history = read_history("anthropic", first.body)
    if [message.role for message in history] != ["user"] or not truth(first).calls or _has_media(first):
        return None
    chain = _chain(start, group)
    said = [truth(corpus.recorded(case)) for case in chain]
    specs = corpus.declared_tools(first)
    called = {name for one in said for _, name, _ in one.calls}
    if not called <= {spec.name for spec in specs}:
        specs += tuple(
            ToolSpec(name, "", {"type": "object"}) for name in sorted(called - {spec.name for spec in specs})
        )
    return Loop(
        name=f"{start.file.removesuffix('.yaml')}-{start.position}",
        file=start.file,
        positions=tuple(case.position for case in chain),
        user=history[0].content,
        system=system_text("anthropic", first.body),
        streams=first.streams,
        parallel=any(len(one.calls) > 1 for one in said),
        closing_is_scripted=bool(said[-1].calls),
        specs=specs,
        outputs=_outputs(chain, said),
    )


def _chain(start: Case, group: list[Case]) -> list[Case]:
    """``start`` and the recordings that continue it, each the conversation before, its reply and results."""
    chain = [start]
    while True:
        before = read_history("anthropic", corpus.recorded(chain[-1]).body)
        reply = corpus.replay(chain[-1]).reply
        if reply is None or not reply.message.tool_calls:
            return chain
        head = fingerprint((*before, reply.message))
        following = next(
            (case for case in group if case not in chain and _continues(corpus.recorded(case), head)), None
        )
        if following is None:
            return chain
        chain.append(following)


def _continues(one: Recorded, head: tuple[Any, ...]) -> bool:
    history = read_history("anthropic", one.body)
    parts = fingerprint(history)
    rest = parts[len(head) :]
    return parts[: len(head)] == head and bool(rest) and all(part[0] == "result" for part in rest)


def _outputs(chain: list[Case], said: list[Truth]) -> tuple[tuple[str, str, str, bool], ...]:
    last: History = read_history("anthropic", corpus.recorded(chain[-1]).body)
    results = {m.tool_result.call_id: m.tool_result for m in last if m.tool_result is not None}
    rows = []
    for one in said:
        for call_id, name, arguments in one.calls:
            result = results.get(call_id)
            text, is_error = (NO_OUTPUT, False) if result is None else (result.content, result.is_error)
            rows.append((name, _sorted_json(arguments), text, is_error))
    return tuple(rows)


def _has_media(one: Recorded) -> bool:
    return any(
        isinstance(message["content"], list)
        and any(block["type"] not in ("text", "tool_result") for block in message["content"])
        for message in one.body["messages"]
        if message["role"] == "user"
    )


def _sorted_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def drive(loop: Loop, provider: Provider) -> History:
    """The smallest loop there is, for tests of this helper: ask, run the tools, until no call is left."""
    tools = {tool.spec.name: tool for tool in loop.tools()}
    history: History = (Message("user", loop.user),)
    while True:
        message = provider.complete(Request(history, system=loop.system, tools=loop.specs)).message
        history = (*history, message)
        if not message.tool_calls:
            return history
        for call in message.tool_calls:
            output = tools[call.name].run(json.loads(call.arguments))
            assert isinstance(output.content, str)
            result = corpus.tool_message(call.id, output.content, is_error=output.is_error)
            history = (*history, result)
