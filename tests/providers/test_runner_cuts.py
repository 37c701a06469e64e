"""Must show: a cut of every recorded stream after every event leaves the Runner with a valid, saved history, and the next turn works.

The text that had arrived is in the history, marked ``interrupted``; where none had arrived, the history holds the user's words only.  The
same with each event twice, and with each two in the wrong order.  The recorded request is replaced by ``Hello``: what is asked for does
not matter here, what arrives does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from pseudoclaude.errors import ProviderError, ProviderUnavailable, StreamInterrupted
from pseudoclaude.messages import Message
from pseudoclaude.ports import Provider, Reply, Request
from pseudoclaude.protocol import check
from pseudoclaude.providers import to_wire
from pseudoclaude.session import load
from simulator.planted import product_of
from simulator.record import Observed, Process
from simulator.replies.cassettes import Cassette
from simulator.replies.replay import CassetteProvider
from simulator.replies.script import StreamFault
from simulator.replies.scripted import ScriptedProvider
from simulator.replies.transport import split_events
from simulator.scenario import Scenario, load_scenario
from simulator.world import World
from tests.providers import corpus
from tests.providers.corpus import Case
from tests.providers.wire_truth import text_of_events
from tests.replies.build import recorded, spec

SLOW_FROM_EVENTS = 12


def _streams() -> list[object]:
    cases = [case for case in corpus.cases() if corpus.skip_reason(case) is None and corpus.recorded(case).streams]
    return [
        pytest.param(case, marks=[pytest.mark.slow] if _count(case) >= SLOW_FROM_EVENTS else [], id=str(case))
        for case in cases
    ]


def _count(case: Case) -> int:
    return len(split_events(corpus.recorded(case).reply))


@pytest.mark.parametrize("case", _streams())
def test_a_cut_after_every_event(case: Case, tmp_path: Path) -> None:
    one = corpus.recorded(case)
    scenario = _scenario(tmp_path, str(one.dialect))
    for events in range(_count(case)):
        world = World(scenario, 0, provider=ThenSpeaking(case, StreamFault(events)))
        folder = world.session_folder()
        process = Process(world, scenario, product_of("product"), Observed(world, folder), "answer", None)
        with pytest.raises((StreamInterrupted, ProviderUnavailable)) as caught:
            list(process.runner.turn("Hello"))
        text = text_of_events(one, events)
        said = (Message("assistant", text, stop="interrupted"),) if text else ()
        assert isinstance(caught.value, StreamInterrupted) == bool(text)
        assert process.conversation.messages() == (Message("user", "Hello"), *said)
        assert load(folder, fs=world.fs).messages == process.conversation.messages()
        list(process.runner.turn("And now?"))
        history = process.conversation.messages()
        assert [message.content for message in history[-2:]] == ["And now?", AFTERWARDS]
        assert load(folder, fs=world.fs).messages == history
        assert world.provider.violations == []
        assert (
            check(
                str(one.dialect), to_wire(str(one.dialect), (*history, Message("user", "More."))), context={"tools": []}
            )
            == []
        )


DISORDERS: tuple[Literal["repeat", "swap"], ...] = ("repeat", "swap")


@pytest.mark.slow
@pytest.mark.parametrize("case", _streams())
def test_an_event_that_comes_twice_or_early(case: Case, tmp_path: Path) -> None:
    """Whatever an adapter makes of it, a reply or an error: the history is acceptable and saved, and the next turn works."""
    one = corpus.recorded(case)
    scenario = _scenario(tmp_path, str(one.dialect), tools="{look: {text: seen}}")
    outcomes = set()
    for how in DISORDERS:
        for event in range(min(_count(case), DISORDERED_EVENTS_MAX)):
            world = World(scenario, 0, provider=ThenSpeaking(case, StreamFault(event, how=how)))
            folder = world.session_folder()
            process = Process(world, scenario, product_of("product"), Observed(world, folder), "answer", None)
            outcomes.add(_outcome(process))
            list(process.runner.turn("And now?"))
            history = process.conversation.messages()
            assert history[-1] == Message("assistant", AFTERWARDS, stop="end_turn")
            assert load(folder, fs=world.fs).messages == history
            # The recorded requests had thinking on, which is an option of the real adapter: that rule has no ground here.
            assert [line for line in world.provider.violations if not line.startswith("A14 ")] == []
    assert "TurnEnded" in outcomes or one.status != 200 or b"error" in one.reply


def _outcome(process: Process) -> str:
    """The error the turn ended with, or its last event."""
    try:
        return type(list(process.runner.turn("Hello"))[-1]).__name__
    except ProviderError as error:
        return type(error).__name__


DISORDERED_EVENTS_MAX = 40
AFTERWARDS = "Here I am again."


class ThenSpeaking:
    """``ports.Provider``: the recorded reply with what goes wrong; then, as often as asked, a scripted one."""

    def __init__(self, case: Case, fault: StreamFault) -> None:
        one = corpus.recorded(case)
        asked = recorded(str(one.dialect), one.reply)
        self._first: Provider = CassetteProvider(Cassette(case.file, (asked,)), match="projection", fault=fault)
        self._then = ScriptedProvider(spec({"text": AFTERWARDS}, {"text": AFTERWARDS}), str(one.dialect))
        self._asked = False
        self.dialect = self._first.dialect
        self.model = self._first.model

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        provider, self._asked = (self._then if self._asked else self._first), True
        return provider.complete(request, on_text)


def _scenario(folder: Path, dialect: str, tools: str = "{}") -> Scenario:
    file = folder / "cut.yaml"
    settings = f"{{dialect: {dialect}, request_attempts: 1, context_window: 1000000}}"
    lines = [
        "why: a cut",
        f"settings: {settings}",
        f"tools: {tools}",
        "provider: {script: []}",
        "steps: [{user: Hello}]",
    ]
    file.write_text("\n".join(lines))
    return load_scenario(file)
