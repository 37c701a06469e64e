"""``python -m tests.protocol.bench_protocol``: judging and repairing 10,000 messages, beside encoding them, in one run.

Every round times all steps one after the other, so that a machine that slows down slows all of them; the best time of each counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from pseudoclaude.messages import History, Message, ToolCall, ToolResult
from pseudoclaude.protocol import check, repair
from pseudoclaude.providers import to_wire

MESSAGES = 10_000
TEXT_BYTES = 500
ROUNDS = 25
RATIO_MAX = 3.0
DIALECTS = ("anthropic", "openai-chat", "openai-responses")


class Measured(NamedTuple):
    """Seconds of each step for one dialect, each the best of all rounds."""

    dialect: str
    encode: float
    check: float
    repair: float
    to_wire: float

    @property
    def ratio(self) -> float:
        """Judging and repairing, in units of encoding."""
        return (self.check + self.repair) / self.encode


def tool_loop(messages: int = MESSAGES, text_bytes: int = TEXT_BYTES) -> History:
    """Rounds of user, call, result and reply, then the next user message."""
    history: list[Message] = []
    for number in range(messages // 4):
        call = ToolCall(
            f"toolu_{number:024d}", "read_file", '{"path":"src/a.py","text":"' + "y" * (text_bytes // 2) + '"}'
        )
        history += [
            Message("user", "u" * text_bytes),
            Message("assistant", "a" * (text_bytes // 2), (call,), stop="tool_use"),
            Message("tool", tool_result=ToolResult(call.id, "r" * text_bytes)),
            Message("assistant", "b" * text_bytes, stop="end_turn"),
        ]
    return (*history, Message("user", "next"))


def measure(dialect: str, history: History, rounds: int = ROUNDS) -> Measured:
    wire = to_wire(dialect, history)
    assert check(dialect, wire) == []
    assert repair(history)[0] is history
    steps: tuple[Callable[[], object], ...] = (
        lambda: msgspec.json.encode(wire),
        lambda: check(dialect, wire),
        lambda: repair(history),
        lambda: to_wire(dialect, history),
    )
    best = [float("inf")] * len(steps)
    for _ in range(rounds):
        for index, step in enumerate(steps):
            started = time.perf_counter()
            step()
            best[index] = min(best[index], time.perf_counter() - started)
    return Measured(dialect, *best)


def main() -> None:
    history = tool_loop()
    head = f"{len(history):,} messages of {TEXT_BYTES} bytes; milliseconds, best of {ROUNDS}; at most {RATIO_MAX} x encoding"
    print(head)
    for dialect in DIALECTS:
        found = measure(dialect, history)
        times = "  ".join(
            f"{name} {1000 * getattr(found, name):6.2f}" for name in ("encode", "check", "repair", "to_wire")
        )
        print(f"{dialect:18} {times}  (check + repair) / encode = {found.ratio:.2f}")


if __name__ == "__main__":
    main()
