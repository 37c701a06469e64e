"""``pseudoclaude run``: one task without a person.  The result goes to standard output, everything else to standard error."""

from __future__ import annotations

from contextlib import closing
from typing import TextIO

from pseudoclaude.commands.agent import Agent
from pseudoclaude.commands.interrupts import Terminated
from pseudoclaude.commands.screen import Screen, visible
from pseudoclaude.errors import PseudoClaudeError
from pseudoclaude.runner import NORMAL_STOPS, Replied, TurnEnded

ENDED, STOPPED, INTERRUPTED, TERMINATED = 0, 1, 130, 143


def run_task(agent: Agent, task: str, screen: Screen, out: TextIO) -> int:
    """Do ``task``.  Returns 0 when the model ended by itself, 1 when an error or a limit stopped it, 130 for Ctrl-C, 143 when terminated."""
    tell_resumed(agent, screen)
    status = _turn(agent, task, screen, out)
    try:
        agent.close(
            lambda: screen.line("Taking the turn into memory…", "dim"), in_a_hurry=status in (INTERRUPTED, TERMINATED)
        )
    except PseudoClaudeError as error:
        screen.error(error)
        status = status or STOPPED
    except KeyboardInterrupt:
        status = status or INTERRUPTED
    tell_reports(agent, screen)
    screen.line(f'Session {agent.session_id}. Go on with: pseudoclaude run "…" --resume {agent.session_id}', "dim")
    return status


def _turn(agent: Agent, task: str, screen: Screen, out: TextIO) -> int:
    last, stop = "", ""
    try:
        with closing(agent.turn(task)) as events:
            for event in events:
                screen.show(event)
                if isinstance(event, Replied):
                    last = event.message.content
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
    print(visible(last) if out.isatty() else last, file=out, flush=True)
    return ENDED if stop in NORMAL_STOPS else STOPPED


def tell_resumed(agent: Agent, screen: Screen) -> None:
    """What a resumed session came back as; nothing for a new one."""
    loaded = agent.loaded
    if loaded.state == "missing":
        return
    screen.line(f"Resumed session {agent.session_id}: {len(loaded.messages):,} messages.", "dim")
    answered = sum(1 for repair in loaded.repairs if repair.action == "answer_call")
    if answered:
        screen.line(f"{answered} interrupted tool calls were answered as 'outcome unknown'.", "yellow")
    if loaded.unsettled:
        screen.line(
            f"The log is damaged in {len(loaded.unsettled)} places: {loaded.unsettled[0].text}. `pseudoclaude check` shows all.",
            "yellow",
        )


def tell_reports(agent: Agent, screen: Screen) -> None:
    """What Memory has to say."""
    for sentence in agent.memory.take_reports():
        screen.line(f"Memory: {sentence}", "dim")
