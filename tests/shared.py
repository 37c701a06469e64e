"""Where the shared recordings and cases lie.  They are test input that is not part of the project: without them, tests skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def shared_folder() -> Path | None:
    """The shared folder, or None where it is absent: for lists of test cases, which are made before any test can skip."""
    default = Path(__file__).resolve().parents[1].parent / "shared"
    path = Path(os.environ.get("PSEUDOCLAUDE_SHARED", default))
    return path if path.is_dir() else None


def shared_file(relative: str) -> Path:
    """A path below the shared folder; skips the test, saying what is missing, when it is not there."""
    folder = shared_folder()
    if folder is None or not (folder / relative).exists():
        pytest.skip(f"needs {relative} of the shared folder; set PSEUDOCLAUDE_SHARED to where it is")
    return folder / relative
