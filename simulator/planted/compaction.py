"""Planted bugs of Compact: one rule of the two layers, the breaker or the window is broken.

Not here, because a second defence masks it: an anchor that is only not voided.  The next estimate sees that the history does not begin with
the anchor's messages any more; so ``KeepsUsage`` breaks both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from pseudoclaude.compact import Runtime
from pseudoclaude.compact.spill import FOLDER, SpillFolder, file_name
from pseudoclaude.messages import History, Spill, Usage
from pseudoclaude.ports import FileSystem, Provider, Reply, Request, ToolSpec
from pseudoclaude.settings import Settings
from simulator.product import Product


class _LateSpills(SpillFolder):
    """Promises files at once and writes them when it is told to."""

    def __init__(self, fs: FileSystem, session_folder: str) -> None:
        super().__init__(fs, session_folder)
        self._waiting: list[tuple[str, str]] = []

    def store(self, call_id: str, content: str) -> Spill:
        self._waiting.append((call_id, content))
        data = content.encode("utf-8")
        digest = hashlib.sha256(data).hexdigest()
        return Spill(f"{FOLDER}/{file_name(call_id, digest)}", len(data), digest)

    def write_waiting(self) -> None:
        while self._waiting:
            super().store(*self._waiting.pop())


class _LateSpillsRuntime(Runtime):
    def __init__(self, fs: FileSystem, session_folder: str, settings: Settings) -> None:
        super().__init__(fs=fs, session_folder=session_folder, settings=settings)
        self.spills = self._late = _LateSpills(fs, session_folder)

    def estimate(self, messages: History, system: str = "", tools: Sequence[ToolSpec] = ()) -> int:
        self._late.write_waiting()
        return super().estimate(messages, system, tools)


class PreviewBeforeSpill(Product):
    """Puts the preview in the history, and writes the file that it names afterwards."""

    def runtime(self, *, fs: FileSystem, session_folder: str, settings: Settings) -> Runtime:
        return _LateSpillsRuntime(fs, session_folder, settings)


class _KeptUsage(Runtime):
    _kept = 0

    def record_usage(self, messages: History, usage: Usage | None) -> None:
        super().record_usage(messages, usage)
        self._kept = 0 if usage is None else usage.context_tokens

    def estimate(self, messages: History, system: str = "", tools: Sequence[ToolSpec] = ()) -> int:
        return max(self._kept, super().estimate(messages, system, tools))


class KeepsUsage(Product):
    """Takes the usage of the history that was replaced for that of the new one."""

    def runtime(self, *, fs: FileSystem, session_folder: str, settings: Settings) -> Runtime:
        return _KeptUsage(fs=fs, session_folder=session_folder, settings=settings)


class _NeverOpen(Runtime):
    @property
    def breaker_open(self) -> bool:
        return False


class BreakerNeverOpens(Product):
    """Asks for a summary in every turn, however often that failed."""

    def runtime(self, *, fs: FileSystem, session_folder: str, settings: Settings) -> Runtime:
        return _NeverOpen(fs=fs, session_folder=session_folder, settings=settings)


class _EndlessWindow(Runtime):
    def fits_window(self, tokens: int) -> bool:
        return tokens >= 0


class IgnoresWindow(Product):
    """Sends a request also when it does not fit the window."""

    def runtime(self, *, fs: FileSystem, session_folder: str, settings: Settings) -> Runtime:
        return _EndlessWindow(fs=fs, session_folder=session_folder, settings=settings)


class _FillsEmptySummaries:
    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    @property
    def dialect(self) -> str:
        return self._inner.dialect

    @property
    def model(self) -> str:
        return self._inner.model

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        reply = self._inner.complete(request, on_text)
        if request.purpose != "summary" or reply.message.content.strip():
            return reply
        return replace(reply, message=replace(reply.message, content="(no summary)"))


class AcceptsEmptySummary(Product):
    """Replaces the history by a summary that says nothing."""

    def provider(self, provider: Provider) -> Provider:
        return _FillsEmptySummaries(provider)
