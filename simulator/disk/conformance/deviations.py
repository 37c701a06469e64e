"""Where pyfakefs itself is not like Linux: a closed list, so that every other difference is a finding.

The real folder is the truth.  There is no such list for SimFileSystem.  When pyfakefs did something that the real folder refused, or the
reverse, their trees differ from then on, and pyfakefs takes no further part in that script; the report counts how often.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from simulator.disk.conformance.scripts import Call


class Case(msgspec.Struct, frozen=True):
    """One call that pyfakefs answered differently.  ``truncated``: a truncate succeeded earlier in the script."""

    call: Call
    fake: str
    real: str
    truncated: bool


class Deviation(msgspec.Struct, frozen=True):
    """``applies``: is this what the case shows?  ``harmless``: the trees are still alike although one of the calls succeeded."""

    name: str
    reason: str
    applies: Callable[[Case], bool]
    harmless: bool = False


def known_deviation(case: Case) -> Deviation | None:
    """The first of the list that explains the case, or None."""
    return next((deviation for deviation in KNOWN if deviation.applies(case)), None)


def _slashed(call: Call) -> bool:
    return call.path.endswith("/") or call.target.endswith("/")


_RENAME_REFUSALS = {"ENOTDIR", "ENOTEMPTY", "EINVAL", "EISDIR"}

KNOWN = (
    Deviation(
        "path text",
        "takes NUL and unpaired surrogates for part of a name",
        lambda case: case.real in ("ValueError", "UnicodeEncodeError"),
    ),
    Deviation("path length", "knows no longest name and no longest path", lambda case: case.real == "ENAMETOOLONG"),
    Deviation(
        "empty path",
        "an empty path is a folder in some calls, nothing in others",
        lambda case: "" in (case.call.path, case.call.target) and case.call.kind in ("rename", "unlink", "rmdir"),
    ),
    Deviation(
        "below a file",
        "a name below a file is ENOENT, on Linux the file is ENOTDIR",
        lambda case: (case.fake, case.real) == ("ENOENT", "ENOTDIR"),
    ),
    Deviation(
        "open a folder to write",
        "refuses a folder, or a path that ends in a slash, before it looks at the rest (EISDIR)",
        lambda case: (
            case.call.kind == "open" and case.fake == "EISDIR" and case.real in ("EEXIST", "ENOENT", "ENOTDIR")
        ),
    ),
    Deviation(
        "read a folder",
        "reading an opened folder is EBADF, on Linux EISDIR",
        lambda case: case.call.kind == "pread" and (case.fake, case.real) == ("EBADF", "EISDIR"),
    ),
    Deviation(
        "truncate arguments",
        "a negative size is ENOSPC, a folder EBADF (on Linux EINVAL), and a descriptor open for reading is truncated",
        lambda case: case.call.kind == "truncate" and case.real == "EINVAL",
    ),
    Deviation(
        "content after truncate",
        "each descriptor keeps a buffer that a truncate does not reach, and an empty file that grows has no content",
        lambda case: case.truncated and case.call.kind in ("stat", "fstat", "pread", "tree"),
    ),
    Deviation(
        "locks",
        "has none, so each is granted",
        lambda case: case.call.kind == "lock" and (case.fake, case.real) == ("True", "False"),
        harmless=True,
    ),
    Deviation(
        "slash after a renamed name",
        "does not ask whether a name with a slash after it is a folder, or asks of the wrong end",
        lambda case: case.call.kind == "rename" and _slashed(case.call) and "ENOTDIR" in (case.fake, case.real),
    ),
    Deviation(
        "order of rename refusals",
        "where two things are wrong with a rename it names the other one",
        lambda case: case.call.kind == "rename" and {case.fake, case.real} <= _RENAME_REFUSALS,
    ),
)
