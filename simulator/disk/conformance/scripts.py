"""Scripts of calls: seeded sequences that use every call of ``ports.FileSystem``, rightly and wrongly.

A script is data, so that the same one runs on any number of file systems and a difference can be shown with what led to it.  Paths
begin with ``@``, the folder the script plays in; descriptors are slots, which the script opens again and again, so that most calls meet
an open file and some meet a closed one.  Names are few, so that calls collide.

Not used, because the product never does: relative paths, ``.`` and ``..``, symbolic links, sizes that do not fit into memory.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import get_args

import msgspec

from pseudoclaude.ports import OpenMode

TOP = "@"
SLOTS = 4
LONGEST_NAME = "é" * 127 + "x"
"""255 bytes."""
ODD_PATHS = (
    "",
    f"{TOP}/nul\0name",
    f"{TOP}/surrogate\ud800",
    f"{TOP}/byte\udc80",
    f"{TOP}/{LONGEST_NAME}",
    f"{TOP}/{LONGEST_NAME}y",
    f"{TOP}/{LONGEST_NAME}y/a",
    f"{TOP}{'/d' * 2_100}",
)
_MODES: tuple[OpenMode, ...] = (*get_args(OpenMode), "lock")
_FOLDERS = ("d", "d", "e", "a")
_LEAVES = ("a", "b", "c", "d", "e")


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call of the port; which members count follows from ``kind``, the name of the method."""

    kind: str
    slot: int = -1
    path: str = ""
    target: str = ""
    mode: OpenMode = "read"
    data: bytes = b""
    count: int = 0
    offset: int = 0

    def __str__(self) -> str:
        return _WORDS[self.kind](self)


class Script(msgspec.Struct, frozen=True):
    """The ``number``-th script of a seed."""

    number: int
    calls: tuple[Call, ...]

    def up_to(self, index: int) -> str:
        """The calls up to and with ``index``, one a line."""
        return "\n".join(f"  {at:3} {call}" for at, call in enumerate(self.calls[: index + 1]))


_WORDS: dict[str, Callable[[Call], str]] = {
    **dict.fromkeys(
        ("mkdir", "stat", "listdir", "unlink", "rmdir", "fsync_dir", "tree"),
        lambda call: f"{call.kind} {_short(call.path)}",
    ),
    **dict.fromkeys(("fstat", "fsync", "fdatasync", "close", "lock"), lambda call: f"{call.kind} #{call.slot}"),
    "open": lambda call: f"#{call.slot} = open {_short(call.path)} {call.mode}",
    "write": lambda call: f"write #{call.slot} {_short(call.data)}",
    "pread": lambda call: f"pread #{call.slot} count {call.count} offset {call.offset}",
    "truncate": lambda call: f"truncate #{call.slot} to {call.count}",
    "rename": lambda call: f"rename {_short(call.path)} to {_short(call.target)}",
}


def _short(value: str | bytes) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 60 else f"{shown[:28]}...{shown[-8:]} ({len(value)} long)"


# --- generating ------------------------------------------------------------------------------------------------


def generate(seed: int, number: int) -> Script:
    """Always the same script for the same ``seed`` and ``number``.  Its last call compares the whole tree."""
    author = _Author(random.Random(f"{seed}/{number}"))
    author.furnish()
    kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    for kind in author.rng.choices(kinds, weights, k=author.rng.randint(10, 40)):
        author.write(kind)
    return Script(number, (*author.calls, Call("tree", path=TOP)))


_WEIGHTS = {
    "mkdir": 8, "open": 16, "write": 14, "pread": 10, "truncate": 7, "fstat": 4, "fsync": 1, "fdatasync": 1, "close": 8, "lock": 7,
    "stat": 5, "listdir": 4, "rename": 16, "unlink": 8, "rmdir": 6, "fsync_dir": 1,
}  # fmt: skip
"""How often each call comes.  Syncs are rare because the real disk takes its time."""


class _Author:
    """Writes one script.  It guesses what is open and what exists, so that most calls succeed and a good part does not."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.calls: list[Call] = []
        self._open: list[int] = []
        self._made: list[str] = [f"{TOP}/a"]

    def furnish(self) -> None:
        """A few folders and files to begin with."""
        for name in ("d", "e", "d/e"):
            if self.rng.random() < 0.8:
                self.calls.append(Call("mkdir", path=f"{TOP}/{name}"))
        for slot, name in enumerate(("a", "d/a", "d/e/b")):
            if self.rng.random() < 0.7:
                self._opened(Call("open", slot=slot, path=f"{TOP}/{name}", mode="create"))
                self.calls.append(Call("write", slot=slot, data=self._bytes()))

    def write(self, kind: str) -> None:
        """One more call of ``kind``."""
        pick = self.rng.choice
        if kind == "open":
            mode = pick(_MODES)
            path = pick(self._made) if mode != "create" and self.rng.random() < 0.5 else self._path()
            self._opened(Call("open", slot=self.rng.randrange(SLOTS), path=path, mode=mode))
        elif kind == "rename":
            self._rename()
        elif kind in ("mkdir", "stat", "listdir", "unlink", "rmdir", "fsync_dir"):
            self.calls.append(Call(kind, path=self._path()))
        elif kind == "write":
            self.calls.append(Call(kind, slot=self._slot(), data=self._bytes()))
        elif kind == "pread":
            count, offset = pick((0, 1, 5, 100, 10_000, 10_000, -1)), pick((0, 0, 0, 2, 50, 6_000, -1))
            self.calls.append(Call(kind, slot=self._slot(), count=count, offset=offset))
        elif kind == "truncate":
            self.calls.append(Call(kind, slot=self._slot(), count=pick((0, 1, 7, 100, 6_000, -1))))
        else:
            slot = self._slot()
            self.calls.append(Call(kind, slot=slot))
            if kind == "close" and slot in self._open:
                self._open.remove(slot)

    def _opened(self, call: Call) -> None:
        self.calls.append(call)
        self._made.append(call.path)
        if call.slot not in self._open:
            self._open.append(call.slot)

    def _rename(self) -> None:
        source, target = self._path(), self._path()
        roll = self.rng.random()
        if roll < 0.06:
            target = source
        elif roll < 0.12:
            target = f"{source}/{self.rng.choice(_LEAVES)}"
        elif roll < 0.18:
            source = f"{target}/{self.rng.choice(_LEAVES)}"
        self._made.append(target)
        self.calls.append(Call("rename", path=source, target=target))

    def _slot(self) -> int:
        if self._open and self.rng.random() < 0.9:
            return self.rng.choice(self._open)
        return self.rng.randrange(SLOTS)

    def _path(self) -> str:
        roll = self.rng.random()
        if roll < 0.02:
            return self.rng.choice(ODD_PATHS)
        if roll < 0.04:
            return TOP
        if roll < 0.34:
            return self.rng.choice(self._made)
        depth = self.rng.choices((1, 2, 3), (5, 5, 2))[0]
        path = "/".join([TOP, *(self.rng.choice(_FOLDERS) for _ in range(depth - 1)), self.rng.choice(_LEAVES)])
        if roll < 0.40:
            return path + "/"
        return path.replace("/", "//") if roll < 0.41 else path

    def _bytes(self) -> bytes:
        return self.rng.randbytes(self.rng.choice((0, 1, 3, 10, 60, 5_000)))
