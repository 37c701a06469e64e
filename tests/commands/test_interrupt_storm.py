"""Ctrl-C at moments nobody chose: whatever it hits, memory and log agree, and the session goes on.

The moments differ from run to run; what is asserted does not.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from pseudoclaude.commands.agent import Agent, Callbacks
from pseudoclaude.commands.interrupts import Interrupts
from pseudoclaude.messages import Message, ToolCall
from pseudoclaude.session import load
from pseudoclaude.session.catalog import session_folder
from tests.commands.build import Office, Remembering
from tests.driving import assert_acceptable, calls, said

TURNS = 150
LATEST_SECONDS = 0.012
"""About how long a turn takes here."""


@pytest.mark.slow
def test_a_storm_of_ctrl_c_leaves_memory_and_log_equal(tmp_path: Path) -> None:
    office, provider, moments = Office(tmp_path), Remembering([]), random.Random(1)
    with Interrupts() as interrupts:
        agent = office.agent(provider, callbacks=Callbacks(held=interrupts.held))
        folder = session_folder(*office.place, agent.session_id)
        for turn in range(TURNS):
            look = [ToolCall(f"{name}{turn}", "no_such_tool", "{}") for name in "ab"]
            provider.turns.answers = [calls(*look), said("Seen. " * 20)]
            with pytest.raises(KeyboardInterrupt):
                _turn_with_ctrl_c(agent, f"turn {turn}", moments.random() * LATEST_SECONDS)
            assert load(folder).messages == agent.runner.conversation.messages()
        history = agent.runner.conversation.messages()
        assert_acceptable((*history, Message("user", "Go on.")))
        assert sum(message.role == "user" for message in history) > TURNS / 2
        agent.close()


def _turn_with_ctrl_c(agent: Agent, text: str, after_seconds: float) -> None:
    pressed = threading.Event()

    def press() -> None:
        time.sleep(after_seconds)
        os.kill(os.getpid(), signal.SIGINT)
        pressed.set()

    try:
        threading.Thread(target=press).start()
        with closing(agent.turn(text)) as events:
            for _ in events:
                pass
        pressed.wait()
        time.sleep(10)  # the signal is on its way, and ends this
    finally:
        pressed.wait()
