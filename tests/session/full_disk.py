"""``python -m tests.session.full_disk``: a session whose file system really is full, then freed.

The file system is a small tmpfs where this machine lets us mount one (Linux, root), else the simulated one; which of them it was is said.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from pseudoclaude.errors import NotDurable
from pseudoclaude.messages import Message
from pseudoclaude.session import SessionWriter, load
from simulator.disk import FaultPlan, SimFileSystem
from simulator.disk.faults import DiskFault
from simulator.world import SimClock, SimIds

SIZE_KIB = 256
TEXT = "x" * 9_000


class FullDisk(msgspec.Struct):
    """``saved``: messages acknowledged before the disk was full; ``refused``: those that raised; ``first``, ``second``: loaded later."""

    where: str
    saved: int
    refused: int
    told: str
    first: int
    second: int
    in_order: bool
    unsettled: int


def fill(open_writer: Callable[[], SessionWriter], free: Callable[[], None], where: str) -> FullDisk:
    """Append until the disk refuses twice, free it, append once more, close; resume twice with a message each time."""
    saved = refused = 0
    told = ""
    with open_writer() as writer:
        while refused < 2:
            try:
                writer.append_message(_message(saved + refused))
                saved += 1
            except NotDurable as error:
                refused += 1
                told = str(error)
        free()
        writer.append_message(_message(saved + refused))
    with open_writer() as writer:
        first = writer.loaded
        writer.append_message(_message(len(first.messages)))
    with open_writer() as writer:
        second = writer.loaded
    wanted = tuple(_message(number) for number in range(saved + 4))
    return FullDisk(
        where=where,
        saved=saved,
        refused=refused,
        told=told,
        first=len(first.messages),
        second=len(second.messages),
        in_order=second.messages == wanted[: saved + 4] and first.messages == wanted[: saved + 3],
        unsettled=len(second.unsettled),
    )


def full_disk() -> FullDisk:
    """On a mounted tmpfs if this machine allows one, else on the simulated disk."""
    with tempfile.TemporaryDirectory() as root:
        if not _mounted(root):
            return _simulated()
        try:
            ballast = Path(root, "ballast")
            ballast.write_bytes(bytes(SIZE_KIB * 512))
            folder = Path(root, "s")
            done = fill(lambda: SessionWriter.open(folder), ballast.unlink, f"a tmpfs of {SIZE_KIB} KiB")
            assert load(folder, scan_all=True).unsettled == ()
            return done
        finally:
            subprocess.run(["umount", root], check=True)


def _mounted(root: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_KIB}k", "tmpfs", root]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _simulated() -> FullDisk:
    fs = SimFileSystem()
    writes = DiskFault("write", nth=9, error="ENOSPC", partial=4_096, sticky=True, path_suffix="conversation.jsonl")
    fs.faults = plan = FaultPlan((writes,))

    def open_writer() -> SessionWriter:
        return SessionWriter.open("/s", fs=fs, clock=SimClock(), ids=SimIds(0))

    return fill(open_writer, plan.clear, "the simulated disk (this machine allows no mount)")


def _message(number: int) -> Message:
    return Message("user" if number % 2 == 0 else "assistant", f"{number} {TEXT}")


def main() -> int:
    """Print what happened; 1 if it is not what must happen."""
    done = full_disk()
    sys.stdout.write(
        f"On {done.where}: {done.saved} messages saved, {done.refused} refused ({done.told})\n"
        f"space freed, one more appended: {done.first} at the first resume, {done.second} at the second, "
        f"{'in order' if done.in_order else 'NOT IN ORDER'}, {done.unsettled} findings unsettled\n"
    )
    return int(not done.in_order or bool(done.unsettled))


if __name__ == "__main__":
    sys.exit(main())
