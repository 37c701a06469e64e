"""LogWriter: one process appending to one log.

What "returned" means, by ``durability`` (oracle O3 checks each):

- ``always``: the record is on the disk, its directory entries included.
- ``batch``: it is after ``end_turn``, a replace or ``close``; until then a power loss may take it, a killed process may not.
- ``off``: the system decides; a killed process loses nothing.

What happens when the disk fails.  A write that stops short is continued.  A write that fails is tried once more after ending the line, with the same
bytes; if that fails too, the record stays in memory, ``NotDurable`` is raised, and it is written before anything newer.  A failed sync is
different: the cache may show bytes that the disk lacks, and the next sync may say yes to nothing.  Then nothing read back counts: a mark
(``unsynced``) is made, and the whole live history goes into one ``recover`` record through a new descriptor.

Opening locks, loads and syncs; it writes nothing to the log.  Just before the first append the torn line is ended, a missing header written,
and, only if repair changed what the log replays to, a ``recover`` record.
"""

from __future__ import annotations

import errno
import posixpath
import threading
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import msgspec

from pseudoclaude.conversation import Hooks
from pseudoclaude.errors import NotDurable, SessionChanged, SessionClosed, SessionUnreadable, UnsupportedVersion
from pseudoclaude.messages import Message
from pseudoclaude.ports import Clock, FileSystem
from pseudoclaude.session.folders import make_folders, sync_chain, take_lock
from pseudoclaude.session.loader import LOCK_NAME, LOG_NAME, UNSYNCED_NAME, LoadResult, load_log
from pseudoclaude.session.records import encode_header, encode_message, encode_replace
from pseudoclaude.settings import Dangling, Settings


class _Pending(msgspec.Struct, frozen=True):
    """A record that is not known to be in the file, with the bytes it will have however often it is tried."""

    n: int
    line: bytes


class LogWriter:
    """Appends to the log of one session folder; safe to use from several threads.  ``open_log`` makes one."""

    def __init__(
        self,
        folder: str,
        *,
        settings: Settings,
        fs: FileSystem,
        clock: Clock,
        lock_fd: int,
        loaded: LoadResult,
        dangling: Dangling,
        cwd: str = "",
    ) -> None:
        self.folder = folder
        self.loaded = loaded
        """What the log held when it was opened."""
        self.model = loaded.model
        """Written with the next record when it differs from what the log says."""
        self._path = posixpath.join(folder, LOG_NAME)
        self._mark_path = posixpath.join(folder, UNSYNCED_NAME)
        self._settings = settings
        self._fs = fs
        self._clock = clock
        self._lock_fd: int | None = lock_fd
        self._dangling = dangling
        self._cwd = cwd
        self._mutex = threading.RLock()
        self._fd: int | None = None
        self._inode = 0
        self._size = loaded.size
        self._next_n = loaded.next_n
        self._written_n = self._synced_n = loaded.next_n - 1
        self._written_model = loaded.model
        self._history: list[Message] = list(loaded.messages)
        self._unsaved: list[_Pending] = []
        self._header_due = not loaded.has_header
        self._header_durable = loaded.has_header
        self._recover_due: _Pending | None = None
        if loaded.changed:
            self._recover_due = _Pending(self._take_n(), self._recover_line(loaded.next_n, loaded.messages))
        self._ends_open = loaded.ends_open
        self._unclear = False
        """A write failed or was cut off by an exception: how far it got has to be asked for."""
        self._needs_sync = False
        self._entry_durable = True
        self._poisoned = False

    # --- public ------------------------------------------------------------------------------------------------

    def hooks(self) -> Hooks:
        """This writer as a subscriber of a Conversation."""
        return Hooks(on_append=self.append_message, on_replace=self.append_replace)

    @property
    def unsaved(self) -> int:
        """Records that are only in memory."""
        return len(self._unsaved)

    def append_message(self, message: Message) -> None:
        """Append one message; returned means what ``durability`` says.

        Raises ``NotDurable``: the record is kept in memory and written before anything newer.  ``SessionChanged``: nothing was written.
        """
        with self._mutex:
            self._check_open()
            n = self._take_n()
            line = encode_message(message, n, self._now(), model=self._new_model(), synced=self._synced_mark())
            self._history.append(message)
            self._queue(n, line)
            self._flush(sync=self._settings.durability == "always")

    def append_replace(self, reason: str, messages: Iterable[Message]) -> None:
        """Append a whole new history as one record: one write, one sync, whole or absent.  Raises as ``append_message`` does."""
        with self._mutex:
            self._check_open()
            snapshot = tuple(messages)
            n = self._take_n()
            self._written_model = self.model
            line = encode_replace(reason, snapshot, n, self._now(), model=self.model, synced=self._synced_mark())
            self._history = list(snapshot)
            self._queue(n, line)
            self._flush(sync=self._settings.durability != "off")

    def end_turn(self) -> None:
        """The end of a user turn: what ``batch`` has written becomes durable, and what could not be saved is tried again."""
        with self._mutex:
            self._check_open()
            self._flush(sync=self._settings.durability != "off")

    def close(self) -> None:
        """Save what is unsaved, sync, and give the lock back; closing twice is nothing.

        Raises ``NotDurable`` when something cannot be saved; the writer stays open then, for another try or ``abandon``.
        """
        with self._mutex:
            if self._lock_fd is None:
                return
            self._flush(sync=self._settings.durability != "off")
            self.abandon()

    def abandon(self) -> None:
        """Give up what is unsaved and let go of the file and the lock."""
        with self._mutex:
            fds = [fd for fd in (self._fd, self._lock_fd) if fd is not None]
            self._fd = self._lock_fd = None
            for fd in fds:
                self._fs.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except BaseException:
            self.abandon()
            raise

    def settle_open(self) -> None:
        """The last step of opening: make durable what is visible, or, where a sync failed before, write it again."""
        if self._settings.durability == "off":
            return
        try:
            if self._exists(self._mark_path):
                self._poisoned = True
            elif self._exists(self._path):
                self._attach()
                self._needs_sync = True
                self._sync()
            if self._poisoned:
                self._rewrite()
            sync_chain(self.folder, self._fs)
        except OSError as error:
            raise self._not_durable(error) from error

    # --- flushing ----------------------------------------------------------------------------------------------

    def _flush(self, *, sync: bool) -> None:
        try:
            if self._poisoned:
                self._rewrite()
                return
            if self._unsaved:
                self._prepare()
            while self._unsaved:
                self._write_record(self._unsaved[0])
                self._unsaved.pop(0)
            if sync and self._needs_sync:
                self._sync()
        except OSError as error:
            raise self._not_durable(error) from error

    def _prepare(self) -> None:
        """Before the first record of this writer: the file, the header, and what recovery has to say."""
        if self._fd is None:
            self._attach()
        if self._recover_due is not None:
            self._confirm_damage()
        if self._header_due:
            self._write_line(encode_header(self.loaded.id, self._now(), self._cwd))
            self._header_due = False
        if self._recover_due is not None:
            self._write_record(self._recover_due)
            self._recover_due = None
            if self._settings.durability != "off":
                self._sync()

    def _attach(self) -> None:
        exists = self._exists(self._path)
        fd = self._fs.open(self._path, "append" if exists else "create")
        stat = self._fs.fstat(fd)
        if self._size != stat.size and not self._unclear:
            self._fs.close(fd)
            raise self._changed(f"it has {stat.size} bytes, {self._size} were expected")
        self._fd, self._inode = fd, stat.inode
        if not exists:
            self._entry_durable = False

    def _confirm_damage(self) -> None:
        """Read a second time before a repair is made permanent: one bad read must not be."""
        second = load_log(self.folder, self._fs, dangling=self._dangling)
        if second.messages != self.loaded.messages or second.size != self.loaded.size:
            raise SessionUnreadable(
                "two readings of the session log differ",
                where=self._path,
                still_true="Nothing was written",
                do_next="The disk or its cable may be failing: copy the file away, then open the session again",
            )

    # --- writing -----------------------------------------------------------------------------------------------

    def _write_record(self, pending: _Pending) -> None:
        self._write_line(pending.line)
        self._written_n = pending.n

    def _write_line(self, line: bytes) -> None:
        """One line in one write; after an error once more, with the same bytes, on a line of its own."""
        self._check_unchanged()
        self._unclear = True
        try:
            self._write_all(b"\n" + line if self._ends_open else line)
        except OSError:
            self._look_again()
            self._write_all(b"\n" + line if self._ends_open else line)
        self._unclear = False
        self._ends_open = False
        self._needs_sync = True

    def _write_all(self, data: bytes) -> None:
        assert self._fd is not None
        written = self._fs.write(self._fd, data)
        self._size += written
        while written < len(data):
            step = self._fs.write(self._fd, data[written:])
            if step == 0:
                raise OSError(errno.EIO, "the disk accepted no byte", self._path)
            written += step
            self._size += step

    def _look_again(self) -> None:
        """After a failed write: how much of it is there, and does a line stand open?"""
        fd = self._fs.open(self._path, "read")
        try:
            self._size = self._fs.fstat(fd).size
            last = self._fs.pread(fd, 1, self._size - 1) if self._size else b""
        finally:
            self._fs.close(fd)
        self._ends_open = last not in (b"", b"\n", b"\x00")
        self._unclear = False

    def _check_unchanged(self) -> None:
        """Refuse to write into a file that is not what this writer last wrote."""
        if self._unclear:
            self._look_again()
        try:
            stat = self._fs.stat(self._path)
        except FileNotFoundError:
            raise self._changed("it is gone") from None
        if stat.inode != self._inode:
            raise self._changed("another file stands under its name")
        if stat.size != self._size:
            raise self._changed(f"it has {stat.size} bytes, {self._size} were expected")

    # --- syncing -----------------------------------------------------------------------------------------------

    def _sync(self) -> None:
        assert self._fd is not None
        try:
            self._fs.fsync(self._fd)
        except OSError:
            self._poisoned = True
            self._rewrite()
            return
        self._needs_sync = False
        self._header_durable = not self._header_due
        if not self._entry_durable:
            self._fs.fsync_dir(self.folder)
            self._entry_durable = True
        self._synced_n = self._written_n

    def _rewrite(self) -> None:
        """After a failed sync: the whole live history again, through a new descriptor.

        The mark comes first, so that a process that dies on the way leaves word that what its log shows may not be on the disk.
        """
        if not self._exists(self._mark_path):
            self._fs.close(self._fs.open(self._mark_path, "create"))
        self._fs.fsync_dir(self.folder)
        self._reopen()
        if not self._header_durable:
            self._put_line(encode_header(self.loaded.id, self._now(), self._cwd))
        n = self._take_n()
        self._put_line(self._recover_line(n, self._history))
        assert self._fd is not None
        self._fs.fsync(self._fd)
        self._header_due, self._header_durable, self._recover_due = False, True, None
        self._unsaved.clear()
        self._needs_sync, self._entry_durable = False, True
        self._written_n = self._synced_n = n
        self._fs.unlink(self._mark_path)
        self._fs.fsync_dir(self.folder)
        self._poisoned = False

    def _reopen(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            self._fs.close(fd)
        self._unclear = True
        self._attach()
        self._look_again()
        self._ends_open = self._size > 0  # whatever was read back: a line that the disk lacks may stand open

    def _put_line(self, line: bytes) -> None:
        self._unclear = True
        self._write_all(b"\n" + line if self._ends_open else line)
        self._unclear = self._ends_open = False

    # --- small -------------------------------------------------------------------------------------------------

    def _queue(self, n: int, line: bytes) -> None:
        self._unsaved.append(_Pending(n, line))

    def _take_n(self) -> int:
        n = self._next_n
        self._next_n += 1
        return n

    def _new_model(self) -> str:
        if self.model == self._written_model:
            return ""
        self._written_model = self.model
        return self.model

    def _recover_line(self, n: int, messages: Sequence[Message]) -> bytes:
        return encode_replace(
            "recover", messages, n, self._now(), model=self.model, dangling=self._dangling, synced=self._synced_mark()
        )

    def _synced_mark(self) -> int | None:
        return self._synced_n if self._settings.durability == "batch" else None

    def _now(self) -> int:
        return int(self._clock.now())

    def _exists(self, path: str) -> bool:
        try:
            self._fs.stat(path)
        except FileNotFoundError:
            return False
        return True

    def _check_open(self) -> None:
        if self._lock_fd is None:
            raise SessionClosed("the session writer is closed", where=self.folder, still_true="Nothing was written")

    def _changed(self, how: str) -> SessionChanged:
        return SessionChanged(
            f"the session log is not what this writer last wrote: {how}",
            where=self._path,
            still_true=f"Nothing was written, and {len(self._unsaved)} unsaved records are still in memory",
            do_next="Open the session again to go on from what the file holds now",
        )

    def _not_durable(self, error: OSError) -> NotDurable:
        what = "the log could not be synced" if self._poisoned else "the log could not be written"
        return NotDurable(
            f"{what}: {error.strerror or error}",
            unsaved=max(len(self._unsaved), int(self._poisoned)),
            where=self._path,
            still_true=f"Everything acknowledged before is safe; {len(self._unsaved)} records are in memory and are written first",
            do_next="Free space or mend the disk; the next append, end of turn or close tries again",
        )


def open_log(
    folder: str,
    *,
    settings: Settings,
    fs: FileSystem,
    clock: Clock,
    owner: str,
    dangling: Dangling = "trim",
    cwd: str = "",
    make: type[LogWriter] = LogWriter,
) -> LogWriter:
    """Lock, load, make durable what is visible.  Makes the folder when it is not there; the log itself is made by the first append.

    Raises ``SessionLocked``, ``SessionUnreadable``, ``UnsupportedVersion`` (not a byte changed), ``NotDurable``.
    """
    durable = settings.durability != "off"
    try:
        make_folders(folder, fs, durable=durable)
        lock_fd = take_lock(posixpath.join(folder, LOCK_NAME), owner, fs, durable=durable)
    except OSError as error:
        raise SessionUnreadable(
            f"the session folder cannot be opened for append: {error.strerror or error}",
            where=folder,
            still_true="Nothing of a session was changed",
            do_next="Check the permissions and the space of this folder",
        ) from error
    try:
        loaded = load_log(folder, fs, dangling=dangling)
        if loaded.state == "unsupported":
            raise UnsupportedVersion(
                loaded.findings[0].text,
                where=posixpath.join(folder, LOG_NAME),
                still_true="Not a byte was changed",
                do_next="Open it with a newer PseudoClaude",
            )
        writer = make(
            folder, settings=settings, fs=fs, clock=clock, lock_fd=lock_fd, loaded=loaded, dangling=dangling, cwd=cwd
        )
    except BaseException:
        fs.close(lock_fd)
        raise
    try:
        writer.settle_open()
    except BaseException:
        writer.abandon()
        raise
    return writer
