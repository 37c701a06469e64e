"""Ids and names on the way out: rewritten only where an API forbids them, the same way each time, never two into one.

A name that fits goes as it is, so rewriting twice equals once.  One that does not becomes a readable rest plus a digest of the
original.  The canonical record keeps the original; nothing here is stored.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable

NAME_LENGTH_MAX = 64
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]+")
_DIGEST_LENGTH = 16


@functools.cache
def matcher(length_max: int) -> Callable[[str], object]:
    """Whether an API that wants 1 to ``length_max`` characters of ``[a-zA-Z0-9_-]`` takes a text as it is."""
    return re.compile(rf"[a-zA-Z0-9_-]{{1,{length_max}}}").fullmatch


_fits_name = matcher(NAME_LENGTH_MAX)


def wire_name(name: str) -> str:
    """The tool name every API accepts (K7: at most 64 of ``[a-zA-Z0-9_-]``); use it for declared tools and in histories alike."""
    return name if _fits_name(name) else alias(name, NAME_LENGTH_MAX)


def alias(original: str, length_max: int, turn: int = 1) -> str:
    """A legal stand-in for the ``turn``-th use of ``original``: what is legal of it, then 16 hex digits of a SHA-256."""
    digest = digest_of(original, turn)[:_DIGEST_LENGTH]
    readable = _FORBIDDEN.sub("_", original)[: length_max - _DIGEST_LENGTH - 1].strip("_")
    return f"{readable}_{digest}" if readable else f"x_{digest}"


def digest_of(original: str, turn: int) -> str:
    """SHA-256 in hex of an id and of which use of it this is."""
    return hashlib.sha256(f"{turn}:{original}".encode()).hexdigest()


class CallIds:
    """The call ids of one request: unique in all of it (A24, C14), each decided by what stands before it.

    ``fit`` says whether an id may go as it is, ``stand_in`` makes a legal one for the n-th use of any text.
    """

    __slots__ = ("_fit", "_stand_in", "_taken", "_waiting")

    def __init__(self, fit: Callable[[str], object], stand_in: Callable[[str, int], str]) -> None:
        self._fit = fit
        self._stand_in = stand_in
        self._taken: set[str] = set()
        self._waiting: dict[str, list[str]] = {}

    def call(self, original: str) -> str:
        """The wire id of the next call; its result is the next ``result`` with the same original id."""
        taken = self._taken
        wire = original if original not in taken and self._fit(original) else self._fresh(original)
        taken.add(wire)
        waiting = self._waiting.get(original)
        if waiting:
            waiting.append(wire)
        else:
            self._waiting[original] = [wire]
        return wire

    def result(self, original: str) -> str:
        """The wire id of the call that this result answers: the first one that still waits."""
        waiting = self._waiting.get(original)
        if waiting:
            return waiting.pop(0)
        return original if self._fit(original) else self._stand_in(original, 1)

    def is_free(self, original: str) -> bool:
        """Whether ``call`` would leave this id as it is."""
        return original not in self._taken and bool(self._fit(original))

    def _fresh(self, original: str) -> str:
        turn = 1
        while (wire := self._stand_in(original, turn)) in self._taken:
            turn += 1
        return wire


def call_ids(length_max: int) -> CallIds:
    return CallIds(matcher(length_max), lambda text, turn: alias(text, length_max, turn))
