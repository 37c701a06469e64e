"""The few real tools: read, write, edit, list, search, run a command.  They work on the user's project, which is not stored state.

Read ``arguments``, ``project``, ``files``, ``search``, ``command``, in this order.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from pseudoclaude.ports import Tool
from pseudoclaude.settings import Settings
from pseudoclaude.tools.command import RunCommand
from pseudoclaude.tools.files import EditFile, ListFiles, ReadFile, WriteFile
from pseudoclaude.tools.project import Project
from pseudoclaude.tools.search import Search

__all__ = ["Project", "project_tools"]


def project_tools(
    folder: str | os.PathLike[str],
    *,
    settings: Settings = Settings(),  # noqa: B008 (immutable)
    also_readable: Sequence[str | os.PathLike[str]] = (),
) -> tuple[Tool, ...]:
    """The tools for the project in ``folder``.  ``also_readable`` are folders outside it that may be read and searched (spilled results)."""
    project = Project(folder, also_readable)
    return (
        ReadFile(project),
        WriteFile(project),
        EditFile(project),
        ListFiles(project),
        Search(project),
        RunCommand(project, settings.tool_timeout_seconds),
    )
