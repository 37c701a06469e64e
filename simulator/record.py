"""Record: run the real product once through the scenario's steps, and keep everything that happened.

Every change of a history goes through a hook that writes ``issue`` into the log of calls, lets the product write, and then writes ``ack``
if the product returned.  What was promised follows from the durability: with ``always`` each change that returned survives a power loss;
with ``batch`` each after ``end_turn``, a replace or ``close``; with ``off`` none, though all survive the death of the process.

A failure that the scenario expects (``fails: CONTEXT``) is part of the run; any other exception of the product is a finding of the run itself.
"""

from __future__ import annotations

import hashlib

from pseudoclaude.compact.manager import PROGRESS
from pseudoclaude.conversation import Conversation, Hooks
from pseudoclaude.errors import NotDurable, PseudoClaudeError, SessionError
from pseudoclaude.messages import History, Message
from pseudoclaude.prompt import system_prompt
from pseudoclaude.runner import Compacted, Event, Notice, Runner
from simulator.disk import ProcessKilled
from simulator.memory_record import MemoryProcess, MemoryWatch
from simulator.planted import product_of
from simulator.product import Product, Writer
from simulator.scenario import (
    CompactStep,
    EditStep,
    NewSessionStep,
    RestartStep,
    Scenario,
    ScenarioError,
    Step,
    UserStep,
)
from simulator.values import Prompt, Recording, SessionRecord
from simulator.world import World

FACTS = (
    "turns",
    "restarts",
    "failed_steps",
    "offloaded",
    "compactions",
    "dropped",
    "summary_requests",
    "manual_summary_requests",
    "summary_failures",
    "breaker_open",
    "notices",
    "progress_notices",
    "spill_failures",
    "window_exceeded",
)
"""What every run counts while it goes; the rest is ``_facts_at_the_end``.

``summary_requests`` are the automatic ones.  ``summary_failures``: automatic summaries that were not accepted.  ``breaker_open`` is 1 when it is
open at the end.  ``notices``: sentences the user was told, those of progress apart.
"""
_COUNTED_FAILURES = {"SpillFailed": "spill_failures", "ContextWindowExceeded": "window_exceeded"}


class RunBroken(Exception):
    """The run itself went against the scenario: an error nobody expected, or an expected one that did not come."""


class Observed:
    """The histories of one session as they came to be, and the marks in the log of calls."""

    def __init__(self, world: World, folder: str) -> None:
        self.folder = folder
        self.histories: list[History] = [()]
        self.replaces: set[int] = set()
        self._log = world.log
        self._fs = world.fs

    def resumed(self, messages: History) -> None:
        """A process began with ``messages``; where repair changed them, that is a change which the next append makes durable."""
        if messages != self.histories[-1]:
            self.replaces.add(self._issue(messages))

    def hooks(self, writer: Writer, durability: str) -> Hooks:
        inner = writer.hooks()

        def on_append(message: Message) -> None:
            step = self._issue((*self.histories[-1], message))
            if inner.on_append is not None:
                inner.on_append(message)
            self._log.ack(self.folder, step, durable=durability == "always")

        def on_replace(reason: str, messages: History) -> None:
            step = self._issue(messages)
            self.replaces.add(step)
            if inner.on_replace is not None:
                inner.on_replace(reason, messages)  # type: ignore[arg-type]
            self._log.ack(self.folder, step, durable=durability != "off")

        return Hooks(on_append, on_replace)

    def turn_ended(self, durability: str) -> None:
        self._log.ack(self.folder, len(self.histories) - 1, durable=durability != "off")

    def record(self) -> SessionRecord:
        return SessionRecord(self.folder, tuple(self.histories), frozenset(self.replaces))

    def _issue(self, history: History) -> int:
        if self._fs.dead:
            raise ProcessKilled
        self.histories.append(history)
        step = len(self.histories) - 1
        self._log.issue(self.folder, step)
        return step


class Process:
    """One process of the product: a writer, a conversation, a runner; memory if the scenario has any."""

    def __init__(
        self,
        world: World,
        scenario: Scenario,
        product: Product,
        observed: Observed,
        dangling: str,
        watch: MemoryWatch | None,
    ) -> None:
        settings = scenario.settings
        fs = product.file_system(world.fs)
        self._observed = observed
        self._durability = settings.durability
        self.writer = product.open(
            observed.folder,
            settings=settings,
            fs=fs,
            clock=world.clock,
            ids=world.ids,
            dangling="answer" if dangling == "answer" else "trim",
        )
        observed.resumed(self.writer.loaded.messages)
        hooks = observed.hooks(self.writer, settings.durability)
        self.conversation = Conversation(self.writer.loaded.messages, hooks)
        self.runtime = product.runtime(fs=fs, session_folder=observed.folder, settings=settings)
        self.memory = None if watch is None else MemoryProcess(watch, fs, self.writer, observed.folder)
        self.system = system_prompt() if self.memory is None else self.memory.system
        self.runner = Runner(
            provider=product.provider(world.retrying),
            conversation=self.conversation,
            runtime=self.runtime,
            tools=world.tools,
            settings=settings,
            system=self.system,
            allow=lambda _tool, _arguments: True,
            end_turn=self.end_turn,
            after_turn=None if self.memory is None else self.memory.after_turn,
        )

    def end_turn(self) -> None:
        self.writer.end_turn()
        self._observed.turn_ended(self._durability)

    def close(self) -> None:
        """Close; where the disk still fails, the process ends without having saved everything, and nothing was acknowledged."""
        try:
            self.writer.close()
        except (NotDurable, SessionError):
            self.writer.abandon()
        else:
            self._observed.turn_ended(self._durability)
        self.run_updates()

    def run_updates(self) -> None:
        """What memory has to do in the background."""
        if self.memory is not None:
            self.memory.run_updates()


class Recorder:
    """Runs the steps.  ``facts`` are numbers of the run itself, for ``expect.facts``."""

    def __init__(self, scenario: Scenario, seed: int, variant: str, world: World) -> None:
        self.scenario = scenario
        self.seed = seed
        self.variant = variant
        self.world = world
        self.product = product_of(variant)
        self.sessions: list[Observed] = []
        self.prompts: list[Prompt] = []
        self.watch = MemoryWatch(world, scenario, self.product) if scenario.remembers else None
        self.facts: dict[str, int] = dict.fromkeys(FACTS, 0)

    def run(self) -> Recording:
        process = self._start("answer")
        for index, step in enumerate(self.scenario.steps):
            process = self._step(process, step, index)
        process.close()
        world = self.world
        memory = None if self.watch is None else self.watch.record()
        return Recording(
            scenario=self.scenario.id,
            content_hash=self.scenario.content_hash,
            seed=self.seed,
            variant=self.variant,
            base=world.base,
            ops=tuple(world.log.ops),
            sessions=tuple(observed.record() for observed in self.sessions),
            dialect=self.scenario.settings.dialect,
            durability=self.scenario.settings.durability,
            originals={hashlib.sha256(text.encode()).hexdigest(): text for text in world.outputs},
            facts=self.facts
            | _facts_at_the_end(world, self.sessions)
            | ({} if self.watch is None else self.watch.facts()),
            violations=tuple(world.provider.violations),
            requests=tuple(world.provider.seen),
            prompts=tuple(self.prompts),
            spoken=self._spoken(),
            memory=memory,
        )

    def _spoken(self) -> tuple[str, ...]:
        """What came from outside the product: the user, the model, the tools."""
        users = [step.user for step in self.scenario.steps if isinstance(step, UserStep)]
        replies = self.world.provider.replies
        calls = [call.arguments for message in replies for call in message.tool_calls]
        return (*users, *[message.content for message in replies], *calls, *self.world.outputs)

    def _start(self, dangling: str, observed: Observed | None = None) -> Process:
        if observed is None:
            observed = Observed(self.world, self.world.session_folder())
            self.sessions.append(observed)
        is_new = len(observed.histories) == 1
        process = Process(self.world, self.scenario, self.product, observed, dangling, self.watch)
        notes = process.memory.notes if process.memory is not None else ({} if is_new else None)
        self.prompts.append(Prompt(observed.folder, len(self.world.provider.seen), process.system, notes))
        return process

    def _step(self, process: Process, step: Step, index: int) -> Process:
        if isinstance(step, RestartStep):
            return self._restart(process, step)
        if isinstance(step, NewSessionStep):
            process.close()
            return self._start("answer")
        if isinstance(step, EditStep):
            self._edit(step, index)
            return process
        try:
            self._act(process, step)
        except ProcessKilled:
            self._expect_restart(index)
        except PseudoClaudeError as error:
            name = type(error).__name__
            if step.fails != name:
                raise RunBroken(f"step {index} raised {name}: {error}") from error
            self.facts["failed_steps"] += 1
            if name in _COUNTED_FAILURES:
                self.facts[_COUNTED_FAILURES[name]] += 1
        else:
            if step.fails:
                raise RunBroken(f"step {index} should fail with {step.fails} and did not")
        return process

    def _edit(self, step: EditStep, index: int) -> None:
        if self.watch is None:
            raise ScenarioError(f"{self.scenario.id}: an edit needs a scenario with memory - at `$.steps[{index}]`")
        if self.world.fs.dead:
            self.world.fs.kill()  # the process is gone; the person is not
        self.watch.edit(step.edit)

    def _expect_restart(self, index: int) -> None:
        """The process died in this step; a person may edit notes before the next one starts."""
        if self.watch is not None:
            self.watch.killed()
        following = [step for step in self.scenario.steps[index + 1 :] if not isinstance(step, EditStep)]
        if not (following and isinstance(following[0], RestartStep) and following[0].restart.kill):
            raise ScenarioError(
                f"{self.scenario.id}: the process is killed in step {index}; a restart with kill: true must follow it - at `$.steps[{index}]`"
            )

    def _act(self, process: Process, step: UserStep | CompactStep) -> None:
        asked = self.world.provider.summary_requests
        manual = isinstance(step, CompactStep)
        events = (
            process.runner.compact(step.compact) if isinstance(step, CompactStep) else process.runner.turn(step.user)
        )
        if self.watch is not None and isinstance(step, UserStep):
            self.watch.meanwhile = step.memory
        try:
            for event in events:
                self._count_event(event, manual=manual)
        finally:
            requests = self.world.provider.summary_requests - asked
            self.facts["manual_summary_requests" if manual else "summary_requests"] += requests
            self.facts["breaker_open"] = int(process.runtime.breaker_open)
        self.facts["turns"] += not manual
        if isinstance(step, CompactStep) or not step.memory.later:
            process.run_updates()

    def _count_event(self, event: Event, *, manual: bool) -> None:
        if isinstance(event, Compacted):
            self.facts["offloaded"] += event.output.offloaded_count
            self.facts["compactions"] += event.output.triggered_layer2
            self.facts["dropped"] += event.output.dropped_count
            self.facts["summary_failures"] += event.output.summary_error is not None and not manual
        elif isinstance(event, Notice):
            self.facts["progress_notices" if event.text == PROGRESS else "notices"] += 1

    def _restart(self, process: Process, step: RestartStep) -> Process:
        self.facts["restarts"] += 1
        if step.restart.kill:
            self.world.fs.kill()
        else:
            process.close()
        return self._start(step.restart.dangling, self.sessions[-1])


def record(scenario: Scenario, *, seed: int = 0, variant: str = "product", world: World | None = None) -> Recording:
    """Run ``scenario`` once.  Raises ``RunBroken``, ``ScenarioError`` and what a broken harness raises."""
    return Recorder(scenario, seed, variant, world or World(scenario, seed)).run()


def _facts_at_the_end(world: World, sessions: list[Observed]) -> dict[str, int]:
    """``interrupted``: replies that were cut off and are in the history; ``waited_seconds``: before retries, rounded down."""
    last = [message for observed in sessions for message in observed.histories[-1]]
    return {
        "requests": world.provider.requests,
        "retries": len(world.waits),
        "waited_seconds": int(sum(world.waits)),
        "interrupted": sum(message.stop == "interrupted" for message in last),
        "syncs": _count(world, "fsync"),
        "writes": _count(world, "write"),
    }


def _count(world: World, kind: str) -> int:
    return sum(1 for op in world.log.ops if op.kind == kind)
