"""The folder of spilled results: full texts, written durably before anything refers to them.

Promises (oracles O6, O7, O15).  When ``store`` returns, the file has exactly the given bytes under the returned path, and the file,
its name and its folder's name are on the disk.  A name stands for one call id and one content for ever: it holds a digest of both.
No name leaves the folder, is longer than 255 bytes, or differs from another one only by case.  No link is followed, and a file with
other content is never overwritten.  At most one temporary file is left by a crash; the next ``store`` or ``sweep`` removes it.

A file that is already there with the right bytes is published anew all the same: an earlier process may have met a failed sync
that the kernel does not report twice, so neither its data nor its name can be trusted to be on the disk.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re

from pseudoclaude.errors import SpillFailed
from pseudoclaude.messages import Spill
from pseudoclaude.ports import FileSystem

FOLDER = "tool-results"
TEMPORARY = "spill.tmp"
_NAME_TRIES = 10
_READ_BYTES = 1 << 20
_ID_CHARS_MAX = 60
_UNSAFE = re.compile(r"[^a-z0-9_-]+")


class SpillFolder:
    """The ``tool-results`` folder of one session.  ``sync`` False leaves durability to the system (``durability: off``)."""

    def __init__(self, fs: FileSystem, session_folder: str, *, sync: bool = True) -> None:
        self._fs = fs
        self._session_folder = session_folder
        self._folder = f"{session_folder}/{FOLDER}"
        self._sync = sync
        self._folder_ready = False
        self._swept = False

    def absolute(self, path: str) -> str:
        """Where a ``Spill.path`` lies."""
        return f"{self._session_folder}/{path}"

    def store(self, call_id: str, content: str) -> Spill:
        """Write ``content`` to its file, durably.  Raises ``SpillFailed``; nothing refers to a file that failed."""
        data = content.encode("utf-8")
        digest = hashlib.sha256(data).hexdigest()
        name = file_name(call_id, digest)
        try:
            self._prepare_folder()
            name = self._free_name(name, data)
            self._publish(name, data)
        except OSError as error:
            self._drop_temporary()
            raise SpillFailed(
                f"a tool result of {len(data):,} bytes could not be saved: {describe(error)}",
                where=f"{self._folder}/{name}",
                still_true="Its full text is still in the history",
                do_next="Free space or repair the folder; it is tried again before the next request",
            ) from error
        return Spill(f"{FOLDER}/{name}", len(data), digest)

    def sweep(self) -> None:
        """Remove what a crash inside ``store`` may have left; only the first call looks."""
        if not self._swept:
            self._swept = True
            self._drop_temporary()

    def _prepare_folder(self) -> None:
        if self._folder_ready:
            return
        fs = self._fs
        made = False
        try:
            fs.mkdir(self._folder)
            made = True
        except FileExistsError:
            if fs.stat(self._folder).kind != "dir":
                raise NotADirectoryError(
                    errno.ENOTDIR, "in place of the folder stands a file or a link", self._folder
                ) from None
        if self._sync:
            try:
                fs.fsync_dir(self._session_folder)
            except OSError:
                # The kernel forgets a failed sync, so the next one would say nothing about this entry: make it anew then.
                if made:
                    fs.rmdir(self._folder)
                raise
        self._folder_ready = True

    def _free_name(self, name: str, data: bytes) -> str:
        """``name``, or the next variant of it whose place is empty or holds exactly ``data``."""
        stem = name.removesuffix(".txt")
        for attempt in range(_NAME_TRIES):
            candidate = name if attempt == 0 else f"{stem}-{attempt + 1}.txt"
            if self._is_free_for(f"{self._folder}/{candidate}", data):
                return candidate
        raise FileExistsError(errno.EEXIST, f"{_NAME_TRIES} names are taken by files with other content", name)

    def _is_free_for(self, path: str, data: bytes) -> bool:
        try:
            found = self._fs.stat(path)
        except FileNotFoundError:
            return True
        return found.kind == "file" and found.size == len(data) and self._holds(path, data)

    def _holds(self, path: str, data: bytes) -> bool:
        fd = self._fs.open(path, "read")
        try:
            offset = 0
            while chunk := self._fs.pread(fd, _READ_BYTES, offset):
                if data[offset : offset + len(chunk)] != chunk:
                    return False
                offset += len(chunk)
            return offset == len(data)
        finally:
            self._fs.close(fd)

    def _publish(self, name: str, data: bytes) -> None:
        fs = self._fs
        temporary = f"{self._folder}/{TEMPORARY}"
        fd = self._create_temporary(temporary)
        try:
            written = 0
            while written < len(data):
                accepted = fs.write(fd, data[written:])
                if accepted <= 0:
                    raise OSError(errno.EIO, "the disk accepted no byte of a write", temporary)
                written += accepted
            if self._sync:
                fs.fsync(fd)
        finally:
            fs.close(fd)
        fs.rename(temporary, f"{self._folder}/{name}")
        if self._sync:
            fs.fsync_dir(self._folder)

    def _create_temporary(self, temporary: str) -> int:
        try:
            return self._fs.open(temporary, "create")
        except FileExistsError:
            self._fs.unlink(temporary)
            return self._fs.open(temporary, "create")

    def _drop_temporary(self) -> None:
        try:
            self._fs.unlink(f"{self._folder}/{TEMPORARY}")
        except OSError:
            # Absent in most cases; where it cannot be removed now, the next spill removes it before it writes.
            return


def file_name(call_id: str, digest: str) -> str:
    """The file name for a call's result: readable part of the id, digest of the id, digest of the content (SHA-256, hex)."""
    readable = _UNSAFE.sub("-", call_id.lower())[:_ID_CHARS_MAX].strip("-") or "call"
    id_digest = hashlib.sha256(call_id.encode("utf-8")).hexdigest()[:16]
    return f"{readable}-{id_digest}-{digest}.txt"


def describe(error: OSError) -> str:
    """``ENOSPC, No space left on device``: what the operating system said, in words and as a name to search for."""
    code = error.errno or 0
    return f"{errno.errorcode.get(code, f'errno {code}')}, {error.strerror or os.strerror(code)}"
