"""Project: which paths the tools may touch.  Relative paths start at the project folder.

Promises: whatever a path looks like (``..``, absolute, links), what is changed lies inside the project, and what is read lies inside it
or inside one of the folders named as readable.  A command is not bound by this: that is why it is asked about.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from pseudoclaude.errors import ToolFailed


class Project:
    """The project in ``folder``; ``also_readable`` are folders outside it that may be read."""

    def __init__(self, folder: str | os.PathLike[str], also_readable: Sequence[str | os.PathLike[str]] = ()) -> None:
        self.folder = Path(folder).resolve()
        self._readable = (self.folder, *(Path(other).resolve() for other in also_readable))

    def readable(self, path: str) -> Path:
        """Where ``path`` lies, for reading.  Raises ``ToolFailed``."""
        return self._inside(path, self._readable)

    def changeable(self, path: str) -> Path:
        """Where ``path`` lies, for changing it.  Raises ``ToolFailed``."""
        return self._inside(path, (self.folder,))

    def readable_file(self, path: str) -> Path:
        """A regular file to read: anything else could block for ever or has no content.  Raises ``ToolFailed``."""
        place = self.readable(path)
        try:
            mode = place.stat().st_mode
        except FileNotFoundError:
            raise ToolFailed(f"there is no file {path!r}", do_next="List the folder to see what is there") from None
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "no regular file"
            raise ToolFailed(f"{path!r} is {kind}")
        return place

    def shown(self, place: Path) -> str:
        """``place`` as the model knows it: relative inside the project, absolute outside."""
        return str(place.relative_to(self.folder)) if place.is_relative_to(self.folder) else str(place)

    def _inside(self, path: str, allowed: tuple[Path, ...]) -> Path:
        if "\x00" in path:
            raise ToolFailed("a path cannot hold a NUL character")
        place = (self.folder / path).resolve()
        if not any(place.is_relative_to(folder) for folder in allowed):
            raise ToolFailed(
                f"{path!r} lies outside the project", where=str(self.folder), do_next="Use a path inside the project"
            )
        return place
