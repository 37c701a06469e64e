"""Faults of the disk that are not crashes: a call that fails, or does only part of its work.

A plan is a list of ``DiskFault``; each names a call by kind and count (the ``nth`` call of that kind, from 1, optionally only those on paths that
end in ``path_suffix``) and what happens there.  ``sticky`` faults go on until ``FaultPlan.clear`` is called.  The semantics are those of
FAULT-MODEL.md §2.4 and §2.5:

- ``write``: ``partial`` bytes are written first; with an ``error`` the call then raises (a disk that fills up), without it returns short.
- ``fsync``: ``dialect`` ``ext4`` raises now, keeps the bytes readable, and never makes them durable (the next sync returns 0);
  ``ext4-journal`` returns 0 now, without making anything durable, and raises at the next sync of that inode; ``btrfs`` raises now and the file
  falls back to its last synced bytes; ``false-failure`` raises although the data is durable.
- ``pread``: with ``partial``, at most so many bytes come back.
- ``close``: closes whatever is raised, as on Linux, ``before`` too: nobody could close it again.
- every other kind: ``error`` is raised and nothing is done.
- ``exception``: instead of an ``OSError`` the named Python exception is raised ``before`` or ``after`` the call took effect.
"""

from __future__ import annotations

import errno
from typing import Literal

import msgspec

CallKind = Literal[
    "mkdir", "open", "write", "pread", "truncate", "fsync", "close", "lock",
    "stat", "listdir", "rename", "unlink", "rmdir", "fsync_dir",
]  # fmt: skip
SyncDialect = Literal["ext4", "ext4-journal", "btrfs", "false-failure"]
EXCEPTIONS: dict[str, type[BaseException]] = {
    "KeyboardInterrupt": KeyboardInterrupt,
    "MemoryError": MemoryError,
}


class DiskFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One fault; see the module docstring."""

    call: CallKind
    nth: int = 1
    error: str = ""
    partial: int = 0
    dialect: SyncDialect = "ext4"
    sticky: bool = False
    path_suffix: str = ""
    exception: str = ""
    when: Literal["before", "after"] = "before"


class FaultPlan:
    """Counts calls and says which fault, if any, hits this one.  ``fired`` counts the hits."""

    def __init__(self, faults: tuple[DiskFault, ...] = ()) -> None:
        for fault in faults:
            if fault.error and fault.error not in errno.errorcode.values():
                raise ValueError(f"{fault.error!r} is not the name of an errno, such as ENOSPC")
            if fault.exception and fault.exception not in EXCEPTIONS:
                raise ValueError(f"exception {fault.exception!r} is not one of {', '.join(EXCEPTIONS)}")
        self._faults = list(faults)
        self._counts = [0] * len(faults)
        self.fired = 0

    def clear(self) -> None:
        """The world is well again."""
        self._faults, self._counts = [], []

    def hit(self, call: CallKind, path: str) -> DiskFault | None:
        found = None
        for index, fault in enumerate(self._faults):
            if fault.call != call or not path.endswith(fault.path_suffix):
                continue
            self._counts[index] += 1
            count = self._counts[index]
            if found is None and (count == fault.nth or (fault.sticky and count > fault.nth)):
                found = fault
        if found is not None:
            self.fired += 1
        return found

    def strike(self, call: CallKind, path: str) -> DiskFault | None:
        """Raise what the fault of this call raises before it does anything; a fault that the call itself has to act on is returned."""
        fault = self.hit(call, path)
        if fault is None:
            return None
        if fault.exception:
            if fault.when == "before":
                raise EXCEPTIONS[fault.exception]
            return fault
        if call in ("write", "fsync") or (call == "pread" and fault.partial):
            return fault
        if fault.error:
            raise os_error(fault.error, path)
        return None


def finish(after: DiskFault | None) -> None:
    """The call took effect; raise the exception that was to come after it, if one was."""
    if after is not None and after.exception:
        raise EXCEPTIONS[after.exception]


def os_error(name: str, path: str) -> OSError:
    """The ``OSError`` a real disk would raise, by errno name."""
    code = getattr(errno, name)
    return OSError(code, name, path)
