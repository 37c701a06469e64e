"""One log for everything that happens to the simulated disk, in the order it happened.

Calls of the product carry the product's own ``file:line``, found on the stack; acknowledgements of the harness stand between them.
"""

from __future__ import annotations

import sys
from pathlib import PurePath

from simulator.values import Mark, Op

_ROOT = PurePath(__file__).parents[2]
_OWN = str(PurePath(__file__).parent)
_SITES: dict[tuple[str, int], str] = {}


class OpLog:
    """An append-only list of ``Op``."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def add(self, op: Op) -> None:
        self.ops.append(op)

    def issue(self, folder: str, step: int) -> None:
        self.ops.append(Op("issue", mark=Mark(folder, step)))

    def ack(self, folder: str, step: int, *, durable: bool) -> None:
        self.ops.append(Op("ack", mark=Mark(folder, step, durable)))


def call_site() -> str:
    """``pseudoclaude/session/writer.py:88``: the nearest caller outside this package, without any path of the machine."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    key = (frame.f_code.co_filename, frame.f_lineno)
    site = _SITES.get(key)
    if site is None:
        path = PurePath(key[0])
        name = path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else path.name
        site = _SITES[key] = f"{name}:{key[1]}"
    return site
