"""``pseudoclaude run``: one task without a person.  The result goes to standard output, everything else to standard error."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import closing
from typing import Any, TextIO

from pseudoclaude.commands.agent import Agent
from pseudoclaude.commands.interrupts import Terminated
from pseudoclaude.commands.screen import Screen
from pseudoclaude.commands.streams import for_reader
from pseudoclaude.commands.words import count
from pseudoclaude.errors import PseudoClaudeError
from pseudoclaude.ports import Tool
from pseudoclaude.runner import NORMAL_STOPS, Replied, TurnEnded

ENDED, STOPPED, INTERRUPTED, TERMINATED = 0, 1, 130, 143
FINDINGS_MAX = 5
"""So many findings are told when a session is resumed; the rest is counted."""


def run_task(agent: Agent, task: str, screen: Screen, out: TextIO) -> int:
    """Do ``task``.  Returns 0 when the model ended by itself, 1 when an error or a limit stopped it, 130 for Ctrl-C, 143 when terminated."""
    tell_resumed(agent, screen)
    status = STOPPED
    try:
        status = _turn(agent, task, screen, out)
    finally:  # nobody may read the result any more (a closed pipe): the session is given back all the same
        status = _closed(agent, screen, status)
    tell_reports(agent, screen)
    screen.line(f'Session {agent.session_id}. Go on with: pseudoclaude run "…" --resume {agent.session_id}', "dim")
    return status


class Refusal:
    """``allow`` of a run without ``--allow``: refuses every change, and says once what would let it."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._told = False

    def __call__(self, tool: Tool, _arguments: Mapping[str, Any]) -> bool:
        if not self._told:
            self._told = True
            self._screen.line(f"{tool.spec.name} was refused: it changes something. --allow lets it.", "yellow")
        return False


def _closed(agent: Agent, screen: Screen, status: int) -> int:
    try:
        agent.close(
            lambda: screen.line("Taking the turn into memory…", "dim"), in_a_hurry=status in (INTERRUPTED, TERMINATED)
        )
    except PseudoClaudeError as error:
        screen.error(error)
        status = status or STOPPED
    except KeyboardInterrupt:
        status = status or INTERRUPTED
    return status


def _turn(agent: Agent, task: str, screen: Screen, out: TextIO) -> int:
    last, stop = "", ""
    try:
        with closing(agent.turn(task)) as events:
            for event in events:
                screen.show(event)
                if isinstance(event, Replied):
                    last = event.message.content
                    if last and event.message.tool_calls:
                        screen.line(last)  # progress, not the result
                elif isinstance(event, TurnEnded):
                    stop = event.stop
    except PseudoClaudeError as error:
        screen.error(error)
        return STOPPED
    except Terminated:
        screen.line("Terminated; what was done so far is saved.")
        return TERMINATED
    except KeyboardInterrupt:
        screen.line("Stopped; what was done so far is saved.")
        return INTERRUPTED
    print(for_reader(last, out), file=out, flush=True)
    return ENDED if stop in NORMAL_STOPS else STOPPED


def tell_resumed(agent: Agent, screen: Screen) -> None:
    """What a resumed session came back as; nothing for a new one."""
    loaded = agent.loaded
    if loaded.state == "missing":
        return
    screen.line(f"Resumed session {agent.session_id}: {count(len(loaded.messages), 'message')}.", "dim")
    answered = [repair.detail for repair in loaded.repairs if repair.action == "answer_call"]
    if len(answered) == 1:
        screen.line("One call was interrupted; its outcome is unknown.", "yellow")
    elif answered:
        screen.line(f"{len(answered):,} calls were interrupted; their outcomes are unknown.", "yellow")
    found = [f for f in loaded.unsettled if not (f.kind == "repair" and f.text in answered)]
    if not found:
        return
    screen.line(f"The log is {loaded.state} in {count(len(found), 'place')}:", "yellow")
    for finding in found[:FINDINGS_MAX]:
        screen.line(f"  {finding.text}.", "yellow")
    if len(found) > FINDINGS_MAX:
        screen.line(f"  and {len(found) - FINDINGS_MAX:,} more.", "yellow")
    screen.line(f"All of it: pseudoclaude check {shlex.quote(agent.log)}", "yellow")


def tell_reports(agent: Agent, screen: Screen) -> None:
    """What Memory has to say."""
    for sentence in agent.memory.take_reports():
        screen.line(f"Memory: {sentence}", "dim")
