"""A key that stands for what is visible on a disk, or on a part of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from simulator.values import Disk, names_of

Look = bytes | tuple[bytes, ...]
"""16 bytes, or the names and contents themselves."""


class TreeDigest:
    """A key for everything visible; or for the folders ``under``: what is in them, and which of the folders above them are there.

    Names are listed once for disks that share their folders.  ``small``: 16 bytes a key, for sweeps of so many disks that their contents
    cannot all be kept; otherwise the contents are the key, which is faster, since most of them are shared.
    """

    def __init__(self, *, under: Sequence[str] = (), small: bool = False) -> None:
        self._small = small
        self._under = tuple(f"{folder}/" for folder in under)
        self._folders: object = None
        self._names = b""
        self._inodes: list[int] = []

    def of(self, disk: Disk) -> Look:
        if disk.folders is not self._folders:
            listed = [entry for entry in names_of(disk.folders) if self._counts(entry[0])]
            self._folders = disk.folders
            self._names = b"".join(path.encode() + (b"/\0" if is_folder else b"\0") for path, _, is_folder in listed)
            self._inodes = [inode for _, inode, is_folder in listed if not is_folder]
        files = disk.files
        contents = [files.get(inode, b"") for inode in self._inodes]
        if not self._small:
            return (self._names, *contents)
        lengths = ",".join([str(len(data)) for data in contents])
        return hashlib.blake2b(b"".join([self._names, lengths.encode(), *contents]), digest_size=16).digest()

    def _counts(self, path: str) -> bool:
        return (
            not self._under
            or path.startswith(self._under)
            or any(folder.startswith(f"{path}/") for folder in self._under)
        )
