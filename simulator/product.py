"""The seam where a broken variant takes the place of the product's session code, compaction or memory, or stands between it and its disk or model.

Nothing else of the product can be swapped.
"""

from __future__ import annotations

from typing import Protocol

from pseudoclaude.compact import Runtime
from pseudoclaude.conversation import Hooks
from pseudoclaude.memory import MemoryManager
from pseudoclaude.messages import Message
from pseudoclaude.ports import Background, Clock, FileSystem, Ids, Provider
from pseudoclaude.session import LoadResult, SessionWriter, load
from pseudoclaude.settings import Dangling, Settings


class Writer(Protocol):
    """What the harness uses of a session writer."""

    loaded: LoadResult

    def hooks(self) -> Hooks: ...
    def append_message(self, message: Message) -> None: ...
    def end_turn(self) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...


class Product:
    """The code under test: the product itself.  A planted variant overrides one method."""

    def file_system(self, fs: FileSystem) -> FileSystem:
        """What the product is given as its disk."""
        return fs

    def open(
        self, folder: str, *, settings: Settings, fs: FileSystem, clock: Clock, ids: Ids, dangling: Dangling
    ) -> Writer:
        return SessionWriter.open(folder, settings=settings, fs=fs, clock=clock, ids=ids, dangling=dangling)

    def load(self, folder: str, *, fs: FileSystem, dangling: Dangling) -> LoadResult:
        return load(folder, fs=fs, dangling=dangling)

    def provider(self, provider: Provider) -> Provider:
        """What the product is given as its model."""
        return provider

    def runtime(self, *, fs: FileSystem, session_folder: str, settings: Settings) -> Runtime:
        """What Compact remembers in one process."""
        return Runtime(fs=fs, session_folder=session_folder, settings=settings)

    def memory(
        self,
        *,
        fs: FileSystem,
        clock: Clock,
        background: Background,
        project_root: str,
        user_root: str,
        provider: Provider | None,
        settings: Settings,
    ) -> MemoryManager:
        """The memory of one process."""
        return MemoryManager(
            fs=fs,
            clock=clock,
            background=background,
            project_root=project_root,
            user_root=user_root,
            provider=provider,
            settings=settings,
        )
