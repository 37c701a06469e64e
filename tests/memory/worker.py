"""A process of its own that uses memory: ``python -m tests.memory.worker hang|exit|updates ROOT [NAME COUNT]``.

``hang`` begins an extraction that never ends and says ``asked`` on stdout; ``exit`` does so, drains for a moment and ends; ``updates`` makes
COUNT updates, each with a note of its own and one shared note, and prints what was reported.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from pseudoclaude.ports import Reply, Request
from pseudoclaude.realworld import RealClock, ThreadBackground
from tests.memory.build import TURN, ScriptedModel, answer, manager, operation


class Silent(ScriptedModel):
    """A model that never answers."""

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        say("asked")
        threading.Event().wait()
        raise AssertionError("unreachable")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def stuck(root: str, drain_seconds: float) -> None:
    made = manager(root, provider=Silent(), background=ThreadBackground())
    made.update_async(TURN, session_id="s1", range=(3, 4))
    say(f"drained {made.drain(drain_seconds)}")


def updates(root: str, name: str, count: int) -> None:
    for i in range(count):
        facts = answer(
            operation("create", "project", f"{name}-{i}", f"fact {i}"),
            operation("update", "user", "shared", f"{name} {i}"),
        )
        made = manager(root, facts, clock=RealClock())
        made.update_async(TURN, session_id=f"{name}{i}", range=(1, 2))
        for report in made.take_reports():
            say(report)


def main(mode: str, root: str, *rest: str) -> None:
    if mode == "updates":
        updates(root, rest[0], int(rest[1]))
    else:
        stuck(root, 600.0 if mode == "hang" else 0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
