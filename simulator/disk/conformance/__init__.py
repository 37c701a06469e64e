"""Is SimFileSystem a file system?  The same generated scripts on it, on pyfakefs and on a real folder must give the same answers.

``compare`` holds the product's fake disk to the truth; without that, every verdict of the simulator would be about a disk that does not
exist.  The truth is the kernel this runs on, and the answers are those of Linux.  What a power cut leaves is not compared here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from pseudoclaude.ports import FileSystem
from pseudoclaude.realworld import RealFileSystem
from simulator.disk.conformance.comparison import Difference, Report, compare_file_systems
from simulator.disk.conformance.planted import PLANTED
from simulator.disk.filesystem import SimFileSystem

__all__ = ["PLANTED", "Difference", "Report", "compare"]


def compare(
    scripts: int = 500, seed: int = 0, *, simulated: Callable[[], FileSystem] = SimFileSystem, enough: int = 0
) -> Report:
    """Compare ``scripts`` generated scripts in a temporary folder that is removed afterwards; stop at ``enough`` differences, if not 0."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        return compare_file_systems(
            scripts, seed, enough, simulated=simulated, real=RealFileSystem(), real_folder=folder
        )
