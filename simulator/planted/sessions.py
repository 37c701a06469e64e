"""Planted bugs of the session code: one rule of reading or appending is broken."""

from __future__ import annotations

from msgspec.structs import replace

from pseudoclaude.messages import Message
from pseudoclaude.ports import Clock, FileSystem, Ids
from pseudoclaude.session import LoadResult, SessionWriter, load
from pseudoclaude.session.loader import LOG_NAME
from pseudoclaude.settings import Dangling, Settings
from simulator.product import Product, Writer


class KeepsOpenCalls(Product):
    """Loads a call without its result: every later request fails."""

    def load(self, folder: str, *, fs: FileSystem, dangling: Dangling) -> LoadResult:
        result = load(folder, fs=fs, dangling=dangling)
        if not result.truncated:
            return result
        return replace(result, messages=(*result.messages, Message("assistant", "", result.truncated)), truncated=())


class RaisesOnTornLine(Product):
    """Refuses a whole session for one torn line."""

    def load(self, folder: str, *, fs: FileSystem, dangling: Dangling) -> LoadResult:
        result = load(folder, fs=fs, dangling=dangling)
        if any(finding.kind in ("torn", "incomplete_replace") for finding in result.findings):
            raise ValueError("invalid JSON in the session log")
        return result


class WritesOnOpen(Product):
    """Touches the log by only opening it."""

    def open(
        self, folder: str, *, settings: Settings, fs: FileSystem, clock: Clock, ids: Ids, dangling: Dangling
    ) -> Writer:
        writer = SessionWriter.open(folder, settings=settings, fs=fs, clock=clock, ids=ids, dangling=dangling)
        try:
            fd = fs.open(f"{folder}/{LOG_NAME}", "append")
        except FileNotFoundError:
            return writer
        fs.write(fd, b"\n")
        fs.close(fd)
        writer.abandon()
        return SessionWriter.open(folder, settings=settings, fs=fs, clock=clock, ids=ids, dangling=dangling)


class InventsMessage(Product):
    """Adds a message that nobody wrote, as a reader does that takes a stale block for a line."""

    def load(self, folder: str, *, fs: FileSystem, dangling: Dangling) -> LoadResult:
        result = load(folder, fs=fs, dangling=dangling)
        if result.state != "repaired":
            return result
        return replace(result, messages=(*result.messages, Message("user", "a message of another session")))


class DropsAMiddleMessage(Product):
    """Skips a good line beside a bad one: a hole in the history."""

    def load(self, folder: str, *, fs: FileSystem, dangling: Dangling) -> LoadResult:
        result = load(folder, fs=fs, dangling=dangling)
        if result.state != "repaired" or len(result.messages) < 3:
            return result
        kept = tuple(message for message in result.messages if message.role != "assistant" or message.tool_calls)
        return replace(result, messages=kept)
