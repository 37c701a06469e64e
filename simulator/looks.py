"""Looks: what each crash state of a recording leaves to be seen, as a key.

Most states leave what another has left: a write that is in flight at one point is pending at the next.  Only a choice that was not made before is
built and looked at.
"""

from __future__ import annotations

from simulator.build import DiskBuilder, Key
from simulator.digest import Look, TreeDigest
from simulator.values import CrashState, Disk, Recording


class Looks:
    """``of`` a state gives its key, ``disk`` its disk.  States are best asked for in the order of their points."""

    def __init__(self, recording: Recording, digest: TreeDigest) -> None:
        self._builder = DiskBuilder(recording)
        self._digest = digest
        self._known: dict[Key, Look] = {}
        self._number = -1
        """The certified changes that the known ones have in common, by the builder's number for them."""
        self._last: tuple[CrashState, Disk] | None = None

    def of(self, state: CrashState) -> Look:
        key = self._builder.key(state)
        if key[0] != self._number:
            self._number = key[0]
            self._known = {}
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._digest.of(self.disk(state))
        return found

    def disk(self, state: CrashState) -> Disk:
        if self._last is None or self._last[0] is not state:
            self._last = (state, self._builder.build(state))
        return self._last[1]
