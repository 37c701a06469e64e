"""What a log says of files beside it: spilled results that must be there, and results that stand beside a log without a record.

Looking never raises for a file that is missing, damaged or unreadable: its preview stays in the history and a finding says what is wrong.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator

from pseudoclaude.messages import History, Spill
from pseudoclaude.ports import FileSystem
from pseudoclaude.session.reading import chunks

SPILL_FOLDER = "tool-results"


def spills_of(messages: History) -> Iterator[Spill]:
    """The spilled files that a history names, in order."""
    for message in messages:
        if message.tool_result is not None and message.tool_result.spill is not None:
            yield message.tool_result.spill


def spill_problem(folder: str, spill: Spill, fs: FileSystem) -> str:
    """What is wrong with a spilled file, in words; empty when its size and digest are right."""
    if not stays_inside(spill.path):
        return "is named outside the session's folder and was not looked at"
    path = f"{folder}/{spill.path}"
    try:
        stat = fs.stat(path)
        if stat.kind != "file":
            return "is not a file"
        if stat.size != spill.bytes:
            return f"has {stat.size} bytes instead of {spill.bytes}"
        return "" if _digest(path, stat.size, fs) == spill.sha256 else "has other bytes than were written"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"


def stays_inside(path: str) -> bool:
    """Whether a relative path from a log names something below the session's folder."""
    parts = path.split("/")
    return bool(path) and "\x00" not in path and ".." not in parts and "" not in parts


def has_spills(folder: str, fs: FileSystem) -> bool:
    """Whether there are spilled results.  Raises ``OSError`` when the folder is there and cannot be listed."""
    try:
        return bool(fs.listdir(f"{folder}/{SPILL_FOLDER}"))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        raise


def _digest(path: str, size: int, fs: FileSystem) -> str:
    fd = fs.open(path, "read")
    try:
        digest = hashlib.sha256()
        for data in chunks(fd, fs, 0, size):
            digest.update(data)
    finally:
        fs.close(fd)
    return digest.hexdigest()
