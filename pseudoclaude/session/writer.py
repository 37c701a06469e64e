"""LogWriter: one process appending to one log.

What "returned" means, by ``durability`` (oracle O3 checks each):

- ``always``: the record is on the disk, its directory entries included.
- ``batch``: it is after ``end_turn``, a replace or ``close``; until then a power loss may take it, a killed process may not.
- ``off``: the system decides; a killed process loses nothing.

What happens when the disk fails.  A write that fails twice (``logfile.py``) leaves its record in memory, ``NotDurable`` is raised, and the record
is written, with the same bytes, before anything newer.  A failed sync is different: the cache may show bytes that the disk lacks, and the next
sync may say yes to nothing.  Then nothing read back counts: a mark (``unsynced``) is made, and the whole live history goes into one
``recover`` record through a new descriptor.  A sync that an exception cut off is treated like one that failed.

Opening locks, loads and syncs; it writes nothing to the log.  Just before the first append the torn line is ended, a missing header written,
and, only if repair changed what the log replays to, a ``recover`` record.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import msgspec

from pseudoclaude.conversation import Hooks
from pseudoclaude.errors import NotDurable, SessionClosed, SessionUnreadable, UnsupportedVersion
from pseudoclaude.messages import Message
from pseudoclaude.ports import Clock, FileSystem
from pseudoclaude.session.folders import close_after, make_folders, sync_chain, take_lock
from pseudoclaude.session.loader import LOCK_NAME, LOG_NAME, UNSYNCED_NAME, LoadResult, load_log
from pseudoclaude.session.logfile import LogFile
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
        self._mark_path = f"{folder}/{UNSYNCED_NAME}"
        self._settings = settings
        self._fs = fs
        self._clock = clock
        self._lock_fd: int | None = lock_fd
        self._dangling = dangling
        self._cwd = cwd
        self._mutex = threading.RLock()
        self._file = LogFile(f"{folder}/{LOG_NAME}", fs, size=loaded.size, ends_open=loaded.ends_open)
        self._next_n = loaded.next_n
        self._written_n = self._synced_n = loaded.next_n - 1
        self._written_model = loaded.model
        self._history: list[Message] = list(loaded.messages)
        self._unsaved: list[_Pending] = []
        self._header_due = not loaded.has_header
        self._header_durable = loaded.has_header
        self._recover_due: _Pending | None = None
        self._confirmed = False
        """What was loaded was read a second time."""
        if loaded.changed:
            self._recover_due = _Pending(self._take_n(), self._recover_line(loaded.next_n, loaded.messages))
        self._poisoned = False
        """A sync failed, or nobody knows: what the file shows does not count."""

    # --- public ------------------------------------------------------------------------------------------------

    def hooks(self) -> Hooks:
        """This writer as a subscriber of a Conversation."""
        return Hooks(on_append=self.append_message, on_replace=self.append_replace)

    @property
    def unsaved(self) -> int:
        """Records that are only in memory; at least 1 while what the disk holds is in doubt."""
        return len(self._unsaved) or int(self._poisoned)

    def append_message(self, message: Message) -> None:
        """Append one message; returned means what ``durability`` says.

        Raises ``NotDurable``: the record is kept in memory and written before anything newer.  ``SessionChanged``: nothing was written.
        """
        with self._mutex:
            self._check_open()
            model = self._new_model()
            line = encode_message(message, self._next_n, self._now(), model=model, synced=self._synced_mark())
            self._queue(self._take_n(), line)
            self._history.append(message)
            self._written_model = model or self._written_model
            self._flush(sync=self._settings.durability == "always")

    def append_replace(self, reason: str, messages: Iterable[Message]) -> None:
        """Append a whole new history as one record: one write, one sync, whole or absent.  Raises as ``append_message`` does."""
        with self._mutex:
            self._check_open()
            snapshot = tuple(messages)
            line = encode_replace(
                reason, snapshot, self._next_n, self._now(), model=self.model, synced=self._synced_mark()
            )
            self._queue(self._take_n(), line)
            self._history = list(snapshot)
            self._written_model = self.model
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
            try:
                self.abandon()
            except OSError as error:
                raise self._not_durable(error) from error

    def abandon(self) -> None:
        """Give up what is unsaved and let go of the file and the lock.  An ``OSError`` of closing comes after both are gone."""
        with self._mutex:
            lock_fd, self._lock_fd = self._lock_fd, None
            try:
                self._file.close()
            finally:
                if lock_fd is not None:
                    self._fs.close(lock_fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except BaseException as failed:
            close_after(failed, self.abandon)
            raise

    def settle_open(self) -> None:
        """The last step of opening: make durable what is visible, or, where a sync failed before, write it again."""
        try:
            if self._is_marked():
                self._poisoned = True
                self._confirm()
                self._rewrite()
            if self._settings.durability == "off":
                return
            if self._file.attach(make=False):
                self._sync()
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
                if self._settings.durability == "always":
                    self._sync()  # one at a time: of two unsynced lines a disk may keep the second alone
            if sync and not self._file.is_durable:
                self._sync()
        except OSError as error:
            raise self._not_durable(error) from error

    def _prepare(self) -> None:
        """Before the first record of this writer: the file, the header, and what recovery has to say."""
        self._file.attach()
        if self._recover_due is not None:
            self._confirm()
        if self._header_due:
            self._file.write_line(self._header_line())
            self._header_due = False
        if self._recover_due is not None:
            self._write_record(self._recover_due)
            self._recover_due = None
            if self._settings.durability != "off":
                self._sync()

    def _confirm(self) -> None:
        """Read a second time before what was read is made permanent: one bad read must not be."""
        if self._confirmed:
            return
        second = load_log(self.folder, self._fs, dangling=self._dangling)
        if second.messages != self.loaded.messages or second.size != self.loaded.size:
            raise SessionUnreadable(
                "two readings of the session log differ",
                where=self._file.path,
                still_true="Nothing was written",
                do_next="The disk or its cable may be failing: copy the file away, then open the session again",
            )
        self._confirmed = True

    def _write_record(self, pending: _Pending) -> None:
        self._file.write_line(pending.line)
        self._written_n = pending.n

    # --- syncing -----------------------------------------------------------------------------------------------

    def _sync(self) -> None:
        self._poisoned = True  # until the sync has returned: what an exception cuts off may have failed
        try:
            self._file.sync_data()
        except OSError:
            self._rewrite()
            return
        self._poisoned = False
        self._header_durable = not self._header_due
        self._file.sync_entry()
        self._synced_n = self._written_n

    def _rewrite(self) -> None:
        """After a failed sync: the whole live history again, through a new descriptor.

        The mark comes first, so that a process that dies on the way leaves word that what its log shows may not be on the disk.
        """
        if not self._is_marked():
            self._fs.close(self._fs.open(self._mark_path, "create"))
        self._fs.fsync_dir(self.folder)
        self._file.reopen()
        if not self._header_durable:
            self._file.write_line_blindly(self._header_line())
        n = self._take_n()
        self._file.write_line_blindly(self._recover_line(n, self._history))
        self._file.sync_data()
        self._file.sync_entry()
        self._header_due, self._header_durable, self._recover_due = False, True, None
        self._unsaved.clear()
        self._written_n = self._synced_n = n
        self._written_model = self.model
        self._fs.unlink(self._mark_path)
        self._fs.fsync_dir(self.folder)
        self._poisoned = False

    # --- small -------------------------------------------------------------------------------------------------

    def _queue(self, n: int, line: bytes) -> None:
        self._unsaved.append(_Pending(n, line))

    def _take_n(self) -> int:
        n = self._next_n
        self._next_n += 1
        return n

    def _new_model(self) -> str:
        return "" if self.model == self._written_model else self.model

    def _header_line(self) -> bytes:
        return encode_header(self.loaded.id, self._now(), self._cwd)

    def _recover_line(self, n: int, messages: Sequence[Message]) -> bytes:
        return encode_replace(
            "recover", messages, n, self._now(), model=self.model, dangling=self._dangling, synced=self._synced_mark()
        )

    def _synced_mark(self) -> int | None:
        return self._synced_n if self._settings.durability == "batch" else None

    def _now(self) -> int:
        return int(self._clock.now())

    def _is_marked(self) -> bool:
        """A folder of the mark's name is somebody else's and says nothing."""
        try:
            return self._fs.stat(self._mark_path).kind == "file"
        except FileNotFoundError:
            return False

    def _check_open(self) -> None:
        if self._lock_fd is None:
            raise SessionClosed("the session writer is closed", where=self.folder, still_true="Nothing was written")

    def _in_memory(self) -> str:
        if self._poisoned:
            return "the whole history is in memory and is written again first"
        return f"{len(self._unsaved)} records are in memory and are written first"

    def _not_durable(self, error: OSError) -> NotDurable:
        what = "the log could not be synced" if self._poisoned else "the log could not be written"
        unsaved = len(self._unsaved) or int(not self._file.is_durable or self._poisoned)
        return NotDurable(
            f"{what}: {error.strerror or error}",
            unsaved=unsaved,
            where=error.filename if isinstance(error.filename, str) else self._file.path,
            still_true=f"Everything acknowledged before is safe; {self._in_memory()}",
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
        lock_fd = take_lock(f"{folder}/{LOCK_NAME}", owner, fs, durable=durable)
    except OSError as error:
        raise SessionUnreadable(
            f"the session folder cannot be opened for append: {error.strerror or error}",
            where=error.filename if isinstance(error.filename, str) else folder,
            still_true="Nothing of a session was changed",
            do_next="Check the permissions, the kind and the space of what this names",
        ) from error
    try:
        loaded = load_log(folder, fs, dangling=dangling)
        if loaded.state == "unsupported":
            raise UnsupportedVersion(
                loaded.findings[0].text,
                where=f"{folder}/{LOG_NAME}",
                still_true="Not a byte was changed",
                do_next="Open it with a newer PseudoClaude",
            )
        writer = make(
            folder, settings=settings, fs=fs, clock=clock, lock_fd=lock_fd, loaded=loaded, dangling=dangling, cwd=cwd
        )
    except BaseException as error:
        close_after(error, lambda: fs.close(lock_fd))
        raise
    try:
        writer.settle_open()
    except BaseException as error:
        close_after(error, writer.abandon)
        raise
    return writer
