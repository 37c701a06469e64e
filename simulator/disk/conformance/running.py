"""Running a script on one file system: a call in, its answer as text out.

An answer is the errno name of an ``OSError``, the class name of any other exception, or what the call returned, without what differs
from one machine to the next: descriptor and inode numbers, times, the order of a listing, the size of a folder.  In place of an inode
number stands which open slots are the same file, because that is what a number is for.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from pseudoclaude.ports import FileSystem, Stat
from simulator.disk.conformance.scripts import TOP, Call

CLOSED = 1_000_000
"""A descriptor number that nobody has."""
READ_BYTES = 1 << 20
DONE = "done"


class ScriptRun:
    """One script on one file system, in the existing empty folder ``top``."""

    def __init__(self, fs: FileSystem, top: str) -> None:
        self._fs = fs
        self._top = top
        self._open: dict[int, int] = {}
        """Slot -> descriptor of what is open."""
        self._stale: dict[int, int] = {}
        """Slot -> descriptor that was closed and whose number was not given out again."""
        self._values: dict[str, Callable[[Call], str]] = {
            "open": self._do_open,
            "write": lambda call: str(fs.write(self._fd(call), call.data)),
            "pread": lambda call: repr(fs.pread(self._fd(call), call.count, call.offset)),
            "fstat": lambda call: self._stat_text(fs.fstat(self._fd(call))),
            "lock": lambda call: str(fs.lock(self._fd(call))),
            "stat": lambda call: self._stat_text(fs.stat(self._path(call.path))),
            "listdir": lambda call: ascii(sorted(fs.listdir(self._path(call.path)))),
            "tree": lambda call: "\n".join(self._tree(self._path(call.path))),
        }
        self._effects: dict[str, Callable[[Call], None]] = {
            "truncate": lambda call: fs.truncate(self._fd(call), call.count),
            "fsync": lambda call: fs.fsync(self._fd(call)),
            "fdatasync": lambda call: fs.fdatasync(self._fd(call)),
            "close": self._do_close,
            "mkdir": lambda call: fs.mkdir(self._path(call.path)),
            "rename": lambda call: fs.rename(self._path(call.path), self._path(call.target)),
            "unlink": lambda call: fs.unlink(self._path(call.path)),
            "rmdir": lambda call: fs.rmdir(self._path(call.path)),
            "fsync_dir": lambda call: fs.fsync_dir(self._path(call.path)),
        }

    def answer(self, call: Call) -> str:
        """Do the call; an exception is an answer."""
        try:
            if call.kind in self._values:
                return self._values[call.kind](call)
            self._effects[call.kind](call)
        except OSError as error:
            return errno.errorcode.get(error.errno or 0, f"OSError {error.errno}")
        except Exception as error:  # noqa: BLE001 - which exception comes is what is compared
            return type(error).__name__
        return DONE

    def close(self) -> None:
        """Close what the script left open."""
        for fd in self._open.values():
            self._fs.close(fd)
        self._open = {}

    def _path(self, path: str) -> str:
        return path.replace(TOP, self._top, 1)

    def _fd(self, call: Call) -> int:
        return self._open.get(call.slot, self._stale.get(call.slot, CLOSED))

    def _do_open(self, call: Call) -> str:
        if call.slot in self._open:
            self._do_close(call)
        fd = self._fs.open(self._path(call.path), call.mode)
        self._open[call.slot] = fd
        self._stale = {slot: stale for slot, stale in self._stale.items() if stale != fd and slot != call.slot}
        return DONE

    def _do_close(self, call: Call) -> None:
        fd = self._fd(call)
        self._fs.close(fd)
        del self._open[call.slot]
        self._stale[call.slot] = fd

    def _stat_text(self, stat: Stat) -> str:
        same = [slot for slot, fd in sorted(self._open.items()) if self._fs.fstat(fd).inode == stat.inode]
        size = f" {stat.size} bytes" if stat.kind == "file" else ""
        return f"{stat.kind}{size}, open as {same}"

    def _tree(self, path: str) -> list[str]:
        """Every path below, with what a look at it gives, and every byte of every file."""
        shown = ascii(path.replace(self._top, TOP, 1))
        stat = self._fs.stat(path)
        if stat.kind == "dir":
            lines = [f"{shown} {self._stat_text(stat)}"]
            for name in sorted(self._fs.listdir(path)):
                lines += self._tree(f"{path}/{name}")
            return lines
        fd = self._fs.open(path, "read")
        data = self._fs.pread(fd, READ_BYTES, 0)
        self._fs.close(fd)
        return [f"{shown} {self._stat_text(stat)} {data!r}"]
