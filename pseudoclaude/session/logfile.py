"""LogFile: the one descriptor through which a log grows, and what is known of the file behind it.

It writes whole lines, each in one ``write``, and only into a file that is still what it last wrote (same inode, same size).  A write that stops
short is continued.  A write that fails is tried once more on a line of its own, with the same bytes: a reader drops the second of two equal
records and takes the first half of one for the tear it is.  It knows nothing of records, numbers or histories.

What it does not know it asks for: after a failed write or an exception out of one, the size and the last byte are read again before anything is
written.  After a failed sync nothing that can be read counts, so ``reopen`` takes a new descriptor and ends whatever line may stand open.
"""

from __future__ import annotations

import errno
import posixpath

from pseudoclaude.errors import SessionChanged
from pseudoclaude.ports import FileSystem
from pseudoclaude.session.folders import close_after


class LogFile:
    """The log at ``path``, of which ``size`` bytes were read; ``ends_open``: the last of them belongs to a line without an end.

    Methods raise ``OSError`` when the disk fails and ``SessionChanged``, before a byte is written, when the file is another.
    """

    def __init__(self, path: str, fs: FileSystem, *, size: int, ends_open: bool) -> None:
        self.path = path
        self.needs_sync = False
        """Something was written that no sync has confirmed."""
        self._fs = fs
        self._fd: int | None = None
        self._inode: int | None = None
        self._size = size
        self._ends_open = ends_open
        self._unclear = False
        """A write failed or was cut off by an exception: how far it got has to be asked for."""
        self._entry_due = False
        """The name of the file is not known to be durable."""

    @property
    def is_durable(self) -> bool:
        """Everything written is on the disk, under a name that is."""
        return not (self.needs_sync or self._entry_due)

    def attach(self, *, make: bool = True) -> bool:
        """Open the file for appending, or ``make`` it; nothing if that was done.  Whether it is open now."""
        if self._fd is not None:
            return True
        try:
            fd = self._fs.open(self.path, "append")
        except FileNotFoundError:
            if self._inode is not None:
                raise self._changed("it is gone") from None
            if not make:
                return False
            self._entry_due = True
            fd = self._fs.open(self.path, "create")
        try:
            self._recognise(fd)
        except BaseException as error:
            close_after(error, lambda: self._fs.close(fd))
            raise
        self._fd = fd
        return True

    def write_line(self, line: bytes) -> None:
        """One line in one write; after an error once more, with the same bytes, on a line of its own."""
        self._check_unchanged()
        try:
            self._append(line)
        except OSError:
            self._look_again()
            self._append(line)

    def write_line_blindly(self, line: bytes) -> None:
        """One line in one write, without asking what the file looks like: what it shows after a failed sync does not count."""
        self._append(line)

    def sync_data(self) -> None:
        """Make the bytes durable.  An ``OSError`` means: what can be read may not be there, and a later sync may say yes to nothing."""
        assert self._fd is not None
        self._fs.fsync(self._fd)
        self.needs_sync = False

    def sync_entry(self) -> None:
        """Make the name durable, if this object made the file."""
        if self._entry_due:
            self._fs.fsync_dir(posixpath.dirname(self.path))
            self._entry_due = False

    def reopen(self) -> None:
        """Take a new descriptor after a failed sync; the next line begins on a line of its own, whatever the file shows."""
        self.close()
        self.attach()
        self._look_again()
        self._ends_open = self._size > 0
        self.needs_sync = True

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            self._fs.close(fd)

    # --- inside ------------------------------------------------------------------------------------------------

    def _recognise(self, fd: int) -> None:
        """The first time, the file has the size that was read; later, it is the same file and has not grown by itself."""
        stat = self._fs.fstat(fd)
        if self._inode is None:
            if stat.size != self._size:
                raise self._changed(f"it has {stat.size} bytes, {self._size} were expected")
        elif stat.inode != self._inode:
            raise self._changed("another file stands under its name")
        elif stat.size > self._size and not self._unclear:
            raise self._changed(f"it has {stat.size} bytes, {self._size} were expected")
        self._inode = stat.inode

    def _check_unchanged(self) -> None:
        if self._unclear:
            self._look_again()
        try:
            stat = self._fs.stat(self.path)
        except FileNotFoundError:
            raise self._changed("it is gone") from None
        if stat.inode != self._inode:
            raise self._changed("another file stands under its name")
        if stat.size != self._size:
            raise self._changed(f"it has {stat.size} bytes, {self._size} were expected")

    def _append(self, line: bytes) -> None:
        self._unclear = self.needs_sync = True
        self._write_all(b"\n" + line if self._ends_open else line)
        self._unclear = self._ends_open = False

    def _write_all(self, data: bytes) -> None:
        assert self._fd is not None
        written = self._fs.write(self._fd, data)
        self._size += written
        while written < len(data):
            step = self._fs.write(self._fd, data[written:])
            if step == 0:
                raise OSError(errno.EIO, "the disk accepted no byte", self.path)
            written += step
            self._size += step

    def _look_again(self) -> None:
        """How many bytes are there, and does a line stand open?"""
        fd = self._fs.open(self.path, "read")
        try:
            self._size = self._fs.fstat(fd).size
            last = self._fs.pread(fd, 1, self._size - 1) if self._size else b""
        finally:
            self._fs.close(fd)
        self._ends_open = last not in (b"", b"\n", b"\x00")
        self._unclear = False

    def _changed(self, how: str) -> SessionChanged:
        return SessionChanged(
            f"the session log is not what this writer last wrote: {how}",
            where=self.path,
            still_true="Nothing was written into it, and what is unsaved is still in memory",
            do_next="Open the session again to go on from what the file holds now",
        )
