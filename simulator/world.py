"""World: one scenario and one seed -> everything outside the product, deterministic: disk, clock, ids, model, tools, background work.

A test may bring its own model and tools, such as a real recording.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from pseudoclaude.compact.tokens import estimate, overhead
from pseudoclaude.errors import ProviderError
from pseudoclaude.messages import History, Message
from pseudoclaude.ports import Provider, Reply, Request, Tool, ToolOutput, ToolSpec
from pseudoclaude.protocol import check
from pseudoclaude.providers import to_wire
from pseudoclaude.providers.retry import Retrying
from pseudoclaude.session.catalog import session_folder
from pseudoclaude.settings import Settings
from simulator.disk import FaultPlan, OpLog, SimFileSystem
from simulator.replies.scripted import ScriptedProvider
from simulator.scenario import Scenario, ScenarioError, StoreFiles, ToolText
from simulator.values import ROOT, Disk, RequestSeen

HOME = "/home/user/.pseudoclaude"
PROJECT = "/home/user/project"
PROJECT_STORE = f"{PROJECT}/.pseudoclaude/memory"
USER_STORE = f"{HOME}/memory"
CASSETTE_PROVIDER = "simulator.replies.replay:cassette_provider"
"""By name: it brings the SDKs, which take seconds to import, and only scenarios with a cassette need them."""
START_SECONDS = 1_764_547_200.0
"""2025-12-01 00:00 UTC: when every simulated run begins."""


class SimClock:
    """Time that passes only by sleeping."""

    def __init__(self, start: float = START_SECONDS) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


class SimIds:
    """Ids that count, and a jitter drawn from a generator of its own (splitmix64), so that other draws do not move it."""

    def __init__(self, seed: int) -> None:
        self._state = seed & 0xFFFFFFFFFFFFFFFF
        self._sessions = 0

    def session_id(self, now: float) -> str:
        self._sessions += 1
        return f"{int(now)}-{self._sessions:04d}"

    def fraction(self) -> float:
        self._state = (self._state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return ((z ^ (z >> 31)) >> 11) / float(1 << 53)

    def owner(self) -> str:
        return "pid 1 on simulator"


class SimBackground:
    """Jobs in the order they came, run only when the harness says so; ``after_job`` is called after each."""

    def __init__(self, after_job: Callable[[], None] | None = None) -> None:
        self._jobs: list[Callable[[], None]] = []
        self._after_job = after_job

    def submit(self, job: Callable[[], None]) -> None:
        self._jobs.append(job)

    def drain(self, timeout: float) -> bool:
        """Run what waits; a job takes no time here."""
        del timeout
        while self._jobs:
            self._jobs.pop(0)()
            if self._after_job is not None:
                self._after_job()
        return True


class SimTool:
    """A tool from the ``tools:`` part of a scenario."""

    changes = False

    def __init__(self, name: str, spec: ToolText, outputs: dict[str, None], fs: SimFileSystem) -> None:
        self.spec = ToolSpec(name, f"The scenario's tool {name}.", {"type": "object", "properties": {}})
        self._text = spec
        self._outputs = outputs
        self._fs = fs

    def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        del arguments  # a scenario's tool says the same whatever it is asked
        if self._text.kills:
            self._fs.die()
        if self._text.raises:
            raise ValueError(self._text.raises)
        content = self._text.output
        self._outputs[content if isinstance(content, str) else content.decode("utf-8", "replace")] = None
        return ToolOutput(content, self._text.is_error)


class CheckedProvider:
    """Passes requests on, and checks each as the provider would: claim 2 is about every request a model ever sees.

    Besides, each must fit the window: the provider's own count for the longest history it has answered, plus an estimate of what came
    after it, plus room for the reply.  This anchor is kept here, apart from the product's.
    """

    def __init__(self, inner: Provider, settings: Settings) -> None:
        self._inner = inner
        self._settings = settings
        self._counted: tuple[History, int] = ((), 0)
        self.requests = 0
        self.summary_requests = 0
        self.violations: list[str] = []
        self.seen: list[RequestSeen] = []
        self.replies: list[Message] = []

    @property
    def dialect(self) -> str:
        return self._inner.dialect

    @property
    def model(self) -> str:
        return self._inner.model

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        self.requests += 1
        self.summary_requests += request.purpose == "summary"
        self.violations += protocol_violations(
            self._inner.dialect, request.messages, tools=[spec.name for spec in request.tools]
        )
        self.seen.append(RequestSeen(request.purpose, request.system, request.messages))
        self._check_window(request)
        reply = self._inner.complete(request, on_text)
        self.replies.append(reply.message)
        if request.purpose == "turn" and reply.usage is not None and reply.usage.context_tokens:
            self._counted = ((*request.messages, reply.message), reply.usage.context_tokens)
        return reply

    def _check_window(self, request: Request) -> None:
        window, tokens = self._settings.context_window, self._tokens(request)
        room = (
            request.max_tokens if request.max_tokens <= window // 2 else 0
        )  # more cannot be meant as room to keep free
        if tokens + room > window:
            self.violations.append(
                f"request {self.requests} ({request.purpose}) is over the window: about {tokens:,} tokens and {room:,} for the reply, "
                f"the window is {window:,}"
            )

    def _tokens(self, request: Request) -> int:
        ratio, (history, counted) = self._settings.bytes_per_token, self._counted
        if counted and request.messages[: len(history)] == history:
            return counted + estimate(request.messages[len(history) :], ratio)
        return estimate(request.messages, ratio) + overhead(request.system, request.tools, ratio)


def protocol_violations(dialect: str, messages: tuple[Message, ...], *, tools: list[str] | None = None) -> list[str]:
    """What the provider would refuse in these messages, as lines."""
    context: dict[str, Any] = {} if tools is None else {"tools": tools}
    if messages and messages[-1].stop == "pause_turn":  # may stand last: the model goes on with it
        context["last_stop_reason"] = "pause_turn"
    found = check(dialect, to_wire(dialect, messages), context=context or None)
    return [f"{item.rule} at {item.path}: {item.message}" for item in found]


class World:
    """Everything one run needs, made new for it.

    ``provider`` sees every request; ``retrying`` is what the product is given: the same behind the product's own retry policy, on this clock.
    ``waits``: the seconds before each retry.
    """

    def __init__(
        self, scenario: Scenario, seed: int, *, provider: Provider | None = None, tools: Sequence[Tool] | None = None
    ) -> None:
        self.base = _home_disk(store_files(scenario.memory or StoreFiles()))
        self.log = OpLog()
        self.faults = FaultPlan(scenario.faults.disk) if scenario.faults.disk else None
        self.fs = SimFileSystem(self.base, log=self.log, faults=self.faults)
        self.clock = SimClock()
        self.ids = SimIds(seed)
        self.outputs: dict[str, None] = {}
        self.provider = CheckedProvider(provider or make_provider(scenario), scenario.settings)
        self.waits: list[float] = []
        self.retrying = Retrying(self.provider, scenario.settings, self.clock, self.ids, on_retry=self._waits)
        self.tools: Sequence[Tool] = (
            tools
            if tools is not None
            else [SimTool(name, spec, self.outputs, self.fs) for name, spec in sorted(scenario.tools.items())]
        )

    def _waits(self, _failure: ProviderError, seconds: float) -> None:
        self.waits.append(seconds)

    def session_folder(self) -> str:
        return session_folder(HOME, PROJECT, self.ids.session_id(self.clock.now()))


def make_provider(scenario: Scenario) -> Provider:
    """The scripted provider, or the cassette the scenario names (relative to its own folder)."""
    spec = scenario.provider
    if spec.cassette is None:
        return ScriptedProvider(spec, scenario.settings.dialect)
    path = Path(scenario.folder, spec.cassette)
    if not path.is_file():
        raise ScenarioError(f"{scenario.id}: there is no cassette {spec.cassette} - at `$.provider.cassette`")
    cassette_provider: Callable[..., Provider] = resolve_name(CASSETTE_PROVIDER)
    return cassette_provider(
        path, dialect=scenario.settings.dialect, model=spec.model or None, match=spec.match, fault=spec.fault
    )


def store_files(files: StoreFiles) -> dict[str, bytes | None]:
    """Path -> bytes of files in the two stores of memory."""
    return {
        posixpath.join(folder, name): None if text is None else text.encode()
        for folder, named in ((PROJECT_STORE, files.project), (USER_STORE, files.user))
        for name, text in named.items()
    }


def _home_disk(files: Mapping[str, bytes | None]) -> Disk:
    """A machine with a user's home, a project and ``files``, all of it durable."""
    folders: dict[int, dict[str, int]] = {ROOT: {}}
    contents: dict[int, bytes] = {}
    last = ROOT

    def enter(parent: int, name: str) -> int:
        nonlocal last
        if name not in folders[parent]:
            last += 1
            folders[parent][name] = last
        return folders[parent][name]

    for path in (posixpath.dirname(HOME), PROJECT, *[posixpath.dirname(file) for file in files]):
        inode = ROOT
        for name in path.strip("/").split("/"):
            inode = enter(inode, name)
            folders.setdefault(inode, {})
    for file, data in files.items():
        inode = ROOT
        for name in file.strip("/").split("/"):
            inode = enter(inode, name)
        contents[inode] = data or b""
    return Disk(contents, folders)
