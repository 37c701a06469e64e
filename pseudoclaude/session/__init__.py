"""Session: the append-only log of every change of a history, and what survives of it.

``load`` reads, ``SessionWriter`` appends.  Both work on the real machine unless given other ports.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Self, cast

from pseudoclaude.ports import Clock, FileSystem, Ids
from pseudoclaude.realworld import RealClock, RealFileSystem, RealIds
from pseudoclaude.session.findings import Finding
from pseudoclaude.session.loader import LoadResult, load_log, truncate_dangling_tool_calls
from pseudoclaude.session.writer import LogWriter, open_log
from pseudoclaude.settings import Dangling, Settings

__all__ = ["Finding", "LoadResult", "SessionWriter", "load", "truncate_dangling_tool_calls"]


def load(
    path: str | os.PathLike[str],
    *,
    dangling: Dangling = "trim",
    fs: FileSystem | None = None,
    scan_all: bool = False,
) -> LoadResult:
    """What a session folder (or log file) holds, as a history the provider accepts.  Never writes.

    ``dangling``: ``trim`` removes calls without a result, ``answer`` keeps them with a result that says the outcome is unknown.
    ``scan_all`` reads the whole of a large log instead of starting at its last whole replace; the history is the same.

    Raises ``SessionUnreadable`` when the file exists and cannot be read; never for what it contains.
    """
    return load_log(_absolute(path), fs or RealFileSystem(), dangling=dangling, scan_all=scan_all)


class SessionWriter(LogWriter):
    """The writer of one session; see ``LogWriter`` for what its methods promise."""

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        settings: Settings | None = None,
        fs: FileSystem | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        dangling: Dangling = "trim",
        cwd: str = "",
    ) -> Self:
        """Lock ``folder`` (made if absent), load it, make durable what is visible; ``writer.loaded`` is what it holds.

        Raises ``SessionLocked``, ``SessionUnreadable``, ``UnsupportedVersion``, ``NotDurable``.
        """
        writer = open_log(
            _absolute(folder),
            settings=settings or Settings(),
            fs=fs or RealFileSystem(),
            clock=clock or RealClock(),
            owner=(ids or RealIds()).owner(),
            dangling=dangling,
            cwd=cwd,
            make=cls,
        )
        return cast(Self, writer)


def _absolute(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    return _normal(text) if text.startswith("/") else os.path.abspath(text)


_normal = lru_cache(64)(os.path.normpath)
