"""The main job on real input: recorded tool loops drive the Runner through the real SDK, offline, onto the simulated disk, and every crash
state of that run loads as a history the provider accepts.

Where a recording stops before the closing reply, that reply is scripted; the id of the test says so.  Skipped, by name, when the shared
recordings are absent; the project's own cassettes under ``scenarios/cassettes`` do the same without them.
"""

from __future__ import annotations

import pytest

from pseudoclaude.settings import Settings
from simulator.planted import product_of
from simulator.record import record
from simulator.replies.script import ProviderSpec
from simulator.scenario import Crash, Expect, Faults, Scenario, UserStep
from simulator.sweep import Sweep
from simulator.world import World
from tests.providers.real_loops import Loop, loops

LOOPS = loops()


def _id(loop: Loop) -> str:
    kind = f"{'stream' if loop.streams else 'plain'}-{'parallel' if loop.parallel else 'single'}"
    return f"{kind}-{'closing_scripted' if loop.closing_is_scripted else 'whole'}-{loop.name}"


def _scenario(loop: Loop) -> Scenario:
    return Scenario(
        id=f"real/{loop.name}",
        content_hash="00000000",
        folder="",
        why="a recorded tool loop",
        settings=Settings(result_limit_bytes=2_000, preview_bytes=300),
        tools={},
        provider=ProviderSpec(),
        steps=(UserStep(loop.user),),
        faults=Faults(crash=Crash()),
        expect=Expect(),
    )


@pytest.mark.skipif(
    not LOOPS, reason="the shared recordings (../shared/cassettes/real) are absent: no real tool loop was driven"
)
@pytest.mark.parametrize("loop", LOOPS, ids=_id)
def test_every_crash_of_a_recorded_tool_loop_loads_as_a_valid_history(loop: Loop) -> None:
    scenario = _scenario(loop)
    provider = loop.provider()
    recording = record(scenario, world=World(scenario, 0, provider=provider, tools=loop.tools()))
    assert provider.finished, "the whole recording was used"
    assert not recording.violations
    assert recording.facts["requests"] == len(loop.positions) + loop.closing_is_scripted
    result = Sweep(recording, product_of("product"), scenario).run(Crash())
    print(
        f"{_id(loop)}: {result.states} states, {result.trees} disks, {result.checks} verdicts, {result.broken} broken"
    )
    assert result.failures == []
    assert result.oracles["O2"].held == result.deep_checks > 50


def test_the_recordings_cover_streaming_and_plain_with_single_and_parallel_tools() -> None:
    if not LOOPS:
        pytest.skip("the shared recordings (../shared/cassettes/real) are absent")
    kinds = {(loop.streams, loop.parallel) for loop in LOOPS}
    assert kinds == {(True, True), (True, False), (False, True), (False, False)}
