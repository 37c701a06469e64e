"""A session of 2,000 turns with large results, from window to window: ``python -m tests.compact.long_session``.

Every turn is a user message, a round or two of tool calls with results from a few bytes to many times the limit, and an answer with
the provider's count.  Before each request ``manage_context`` runs.  What is shown: the largest request against the window, how often
each layer worked, and what a check costs early and late.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

from pseudoclaude.compact import Runtime, manage_context
from pseudoclaude.compact.tokens import estimate
from pseudoclaude.conversation import Conversation
from pseudoclaude.messages import Usage
from pseudoclaude.realworld import RealFileSystem
from pseudoclaude.settings import Settings
from tests.compact.build import ScriptedProvider, assert_pairs, calls, result, said, summary_reply, user

SIZES = (40, 900, 4_000, 12_000, 30_000, 49_000, 120_000, 400_000)
SUMMARY = "## Goal\nKeep the service running.\n" + "- a fact that matters\n" * 200


class Run(NamedTuple):
    """``largest`` request by the provider's count; ``idle_seconds``: cost of each check that had nothing to do, in order."""

    window: int
    turns: int
    largest: int
    summaries: int
    spilled: int
    idle_seconds: list[float]


def run(settings: Settings, turns: int, folder: Path, seed: int = 1) -> Run:
    """Play ``turns`` turns.  Raises ``AssertionError`` when a request is invalid or does not fit the window."""
    random = Random(seed)
    conversation = Conversation()
    runtime = Runtime(fs=RealFileSystem(), session_folder=folder, settings=settings)
    provider = ScriptedProvider([summary_reply(SUMMARY)])
    largest = summaries = spilled = 0
    idle: list[float] = []
    for turn in range(turns):
        conversation.append(user(f"turn {turn}: look at the log"))
        for step in range(random.choice((1, 1, 2))):
            ids = [f"call_{number}" for number in range(random.choice((1, 1, 2, 6)))]
            conversation.append(calls(*ids))
            for one in ids:
                text = f"{turn} {step} {one}\n"
                conversation.append(result(one, text * (random.choice(SIZES) // len(text) + 1)))
            started = time.perf_counter()
            output = manage_context(conversation, runtime, provider)
            elapsed = time.perf_counter() - started
            assert output.error is None, output.error
            if not output.triggered_layer1 and not output.triggered_layer2:
                idle.append(elapsed)
            summaries += output.triggered_layer2
            spilled += output.offloaded_count
            messages = conversation.messages()
            counted = estimate(messages, 3.2)
            assert counted + settings.max_output_tokens <= settings.context_window
            largest = max(largest, counted)
            conversation.append(said("Done with this step."))
            runtime.record_usage(conversation.messages(), Usage(counted, 6))
        if turn % 100 == 0:
            assert_pairs(conversation.messages())
    return Run(settings.context_window, turns, largest, summaries, spilled, idle)


def report(one: Run) -> str:
    """One line a run: sizes, work done, and the median cost of an idle check in the first and the last tenth."""
    tenth = len(one.idle_seconds) // 10
    early, late = (sorted(part)[len(part) // 2] * 1e6 for part in (one.idle_seconds[:tenth], one.idle_seconds[-tenth:]))
    return (
        f"window {one.window:>7,}: {one.turns:,} turns, largest request {one.largest:,} tokens, {one.summaries} summaries, "
        f"{one.spilled:,} results spilled; a check with nothing to do: {early:.0f} us in the first tenth, {late:.0f} us in the last\n"
    )


def window_settings(window: int) -> Settings:
    """Without syncs: what is measured is the check, not the disk."""
    return Settings(context_window=window, durability="off")


if __name__ == "__main__":
    for tokens in (128_000, 200_000):
        with tempfile.TemporaryDirectory() as place:
            sys.stdout.write(report(run(window_settings(tokens), 2_000, Path(place))))
