"""Names: from a path to an inode, with the errors a Linux kernel gives on the way, in the order in which it finds them.

Owns the folders (inode -> name -> inode) of a SimFileSystem and a cache of looked-up paths, which forgets what a change of a name may concern.  What
is not a folder here is a file.  Paths are absolute; ``.``, ``..`` and symbolic links do not exist.
"""

from __future__ import annotations

from collections.abc import Mapping

from simulator.disk.faults import os_error
from simulator.values import ROOT

NAME_BYTES_MAX = 255
PATH_BYTES_MAX = 4_095
_UTF8_BYTES_MAX = 4
NOT_THERE = -1
"""In the cache: looked up, and not there."""


class Names:
    """``folders`` may be read by all; names change only through ``add`` and ``remove``.  Those it begins with are never changed."""

    def __init__(self, folders: Mapping[int, Mapping[str, int]], known: dict[str, int] | None = None) -> None:
        self.folders = dict(folders)
        self.known: dict[str, int] = {} if known is None else known
        """Paths that were looked up and mean the same since.  The first one may be shared by disks with equal folders."""
        self._own: dict[int, dict[str, int]] = {}

    def add(self, parent: int, name: str, inode: int) -> None:
        """Give ``inode`` a name, taken or free.  A free one can only make a path lead somewhere that led nowhere."""
        free = name not in self.folders[parent]
        self.known = {path: found for path, found in self.known.items() if found != NOT_THERE} if free else {}
        self._change(parent)[name] = inode

    def add_folder(self, parent: int, name: str, inode: int) -> None:
        self.folders[inode] = self._own[inode] = {}
        self.add(parent, name, inode)

    def remove(self, parent: int, name: str) -> None:
        self.known = {}
        del self._change(parent)[name]

    def _change(self, parent: int) -> dict[str, int]:
        names = self._own.get(parent)
        if names is None:
            names = self.folders[parent] = self._own[parent] = dict(self.folders[parent])
        return names

    def find(self, path: str) -> int:
        """The inode a path stands for."""
        found = self.known.get(path) or self._found(path)
        if found == NOT_THERE:
            raise os_error("ENOENT", path)
        return found

    def _found(self, path: str) -> int:
        found = self._walk(path)
        if found is None or (path.endswith("/") and found not in self.folders):
            found = self._found_slowly(path)
        self.known[path] = found
        return found

    def _found_slowly(self, path: str) -> int:
        try:
            return self.chain(path)[-1]
        except FileNotFoundError:
            return NOT_THERE

    def _walk(self, path: str) -> int | None:
        """The quick way, for paths that lead somewhere; None: ask ``chain``, which knows what is wrong."""
        if not path.startswith("/"):
            return None
        folder, _, last = path.rpartition("/")
        above = self.folders.get(self.known.get(folder, NOT_THERE))
        if last and above is not None:
            return above.get(last)
        inode: int | None = ROOT
        for name in path.split("/"):
            if name:
                names = self.folders.get(inode) if inode is not None else None
                if names is None:
                    return None
                inode = names.get(name)
        return inode

    def chain(self, path: str) -> list[int]:
        """The inodes from the root to what the path stands for."""
        _check_path(path)
        inodes = [ROOT]
        for name in path.split("/"):
            if not name:
                continue
            if inodes[-1] not in self.folders:
                raise os_error("ENOTDIR", path)
            found = self.entry(inodes[-1], name, path)
            if found is None:
                raise os_error("ENOENT", path)
            inodes.append(found)
        if path.endswith("/") and inodes[-1] not in self.folders:
            raise os_error("ENOTDIR", path)
        return inodes

    def folder(self, path: str) -> Mapping[str, int]:
        names = self.folders.get(self.find(path))
        if names is None:
            raise os_error("ENOTDIR", path)
        return names

    def parent_of(self, path: str, *, at_root: str) -> tuple[int, str]:
        """The folder a path's last name is in, and that name without trailing slashes; the name need not exist.

        ``at_root`` is the errno name for the root, which has no name; empty: the answer is then the root and no name.
        """
        folder, _, name = path.rpartition("/")
        if not name:
            folder, _, name = path.rstrip("/").rpartition("/")
        folder = folder or path[:1]
        parent = self.known.get(folder)
        if parent is None:
            parent = self._walk(folder)
        if parent is None or parent == NOT_THERE or parent not in self.folders:
            _check_path(path)
            self.chain(folder)  # raises what is wrong on the way
            raise os_error("ENOTDIR", path)
        self.known[folder] = parent
        if not name and at_root:
            raise os_error(at_root, path)
        return parent, name

    def entry(self, parent: int, name: str, path: str) -> int | None:
        """What a name in a folder stands for, or None; ``path`` is for the error of a name that cannot exist."""
        found = self.folders[parent].get(name)
        if found is None:
            _check_path(path)
            if _bytes_over(name, NAME_BYTES_MAX):
                raise os_error("ENAMETOOLONG", path)
        return found

    def check_rename(self, inode: int, existing: int | None, source: str, target: str) -> None:
        """What the kernel refuses once both ends of a rename are known, in its order; ``existing`` is what has the new name."""
        if inode in self.folders:
            if existing != inode and inode in self.chain(target.rstrip("/").rpartition("/")[0] or "/"):
                raise os_error("EINVAL", source)
        elif source.endswith("/") or target.endswith("/"):
            raise os_error("ENOTDIR", source)
        if existing is None or existing == inode:
            return
        if existing in self.folders:
            if existing in self.chain(source):
                raise os_error("ENOTEMPTY", target)
            if inode not in self.folders:
                raise os_error("EISDIR", target)
            if self.folders[existing]:
                raise os_error("ENOTEMPTY", target)
        elif inode in self.folders:
            raise os_error("ENOTDIR", target)


def check_encodable(*paths: str) -> None:
    """Refuse text that is no path, as Python does before it asks the kernel."""
    for path in paths:
        if "\0" in path:
            raise ValueError("embedded null byte")
        if not path.isascii():
            path.encode("utf-8", "surrogateescape")


def _check_path(path: str) -> None:
    check_encodable(path)
    if not path.startswith("/"):
        raise os_error("ENOENT", path)
    if _bytes_over(path, PATH_BYTES_MAX):
        raise os_error("ENAMETOOLONG", path)


def _bytes_over(text: str, most: int) -> bool:
    if len(text) * _UTF8_BYTES_MAX <= most:
        return False
    return len(text.encode("utf-8", "surrogateescape")) > most
