"""SimFileSystem: ``ports.FileSystem`` in memory, with every call in one log.

It is the *running* view: what programs see through the page cache while the machine is up.  What a power cut leaves of it is not
decided here but in ``crash.py``, from the log.  Results and error classes equal those of a real POSIX file system and of pyfakefs; the
``conformance`` command compares all three on generated scripts of calls.

Allowed faults are those of ``faults.py``.  Symbolic links do not exist here; tests of links use a real folder.
"""

from __future__ import annotations

import posixpath
from typing import Any, NoReturn

from pseudoclaude.ports import OpenMode, Stat
from simulator.disk.faults import EXCEPTIONS, CallKind, DiskFault, FaultPlan, os_error
from simulator.disk.oplog import OpLog, call_site
from simulator.values import ROOT, Disk, Op

NAME_BYTES_MAX = 255


class ProcessKilled(BaseException):
    """The simulated process is dead: nothing it still tries takes effect.  Not an ``Exception``, since no program can catch its own death."""


class _File:
    __slots__ = ("data", "doomed", "late_error", "locked_by", "synced")

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.synced = bytes(data)
        self.locked_by: int | None = None
        self.late_error = False
        self.doomed = False


class _Handle:
    __slots__ = ("file", "inode", "mode", "path")

    def __init__(self, inode: int, file: _File, mode: OpenMode, path: str) -> None:
        self.inode = inode
        self.file = file
        self.mode = mode
        self.path = path


class SimFileSystem:
    """A file system in memory.  ``log`` None records nothing, which is what makes thousands of recoveries a second possible."""

    def __init__(self, disk: Disk | None = None, *, log: OpLog | None = None, faults: FaultPlan | None = None) -> None:
        disk = disk if disk is not None else Disk.empty()
        self.log = log
        self.faults = faults
        self._files = {inode: _File(data) for inode, data in disk.files.items()}
        self._folders: dict[int, dict[str, int]] = {inode: dict(names) for inode, names in disk.folders.items()}
        self._next_inode = max([*self._files, *self._folders, ROOT]) + 1
        self._handles: dict[int, _Handle] = {}
        self._next_fd = 3
        self._dead = False
        self._resolved: dict[str, int] = {}
        """Paths looked up since a name last changed."""

    # --- the port ----------------------------------------------------------------------------------------------

    def mkdir(self, path: str) -> None:
        after = self._enter("mkdir", path)
        parent, name = self._parent_of(path)
        if name in self._folders[parent]:
            raise os_error("EEXIST", path)
        inode = self._new_inode()
        self._folders[inode] = {}
        self._folders[parent][name] = inode
        self._resolved.clear()
        self._record(Op("mkdir", inode=inode, parent=parent, name=name), after)

    def open(self, path: str, mode: OpenMode) -> int:
        after = self._enter("open", path)
        parent, name = self._parent_of(path, wants_file=True)
        inode = self._folders[parent].get(name) if name else parent
        if inode is None:
            if mode in ("append", "read"):
                raise os_error("ENOENT", path)
            inode = self._new_inode()
            self._files[inode] = _File()
            self._folders[parent][name] = inode
            self._resolved.clear()
            self._record(Op("create", inode=inode, parent=parent, name=name), after)
        elif mode == "create":
            raise os_error("EEXIST", path)
        elif inode in self._folders:
            if mode != "read":
                raise os_error("EISDIR", path)
        elif path.endswith("/"):
            raise os_error("ENOTDIR", path)
        fd = self._next_fd
        self._next_fd += 1
        self._handles[fd] = _Handle(inode, self._files.get(inode) or _File(), mode, path)
        return fd

    def write(self, fd: int, data: bytes) -> int:
        handle = self._handle(fd)
        if handle.mode == "read":
            raise os_error("EBADF", handle.path)
        fault = self._enter("write", handle.path)
        accepted = data if fault is None or fault.exception else data[: fault.partial]
        file = handle.file
        offset = 0 if handle.mode == "lock" else len(file.data)
        if accepted:
            end = offset + len(accepted)
            file.data[offset:end] = accepted
            error = fault.error if fault is not None else ""
            self._record(
                Op("write", inode=handle.inode, offset=offset, data=bytes(accepted), error=error),
                fault if fault is not None and fault.exception else None,
            )
        if fault is not None and fault.error:
            raise os_error(fault.error, handle.path)
        return len(accepted)

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        handle = self._handle(fd)
        if handle.mode in ("create", "append"):
            raise os_error("EBADF", handle.path)
        if handle.inode in self._folders:
            raise os_error("EISDIR", handle.path)
        fault = self._enter("pread", handle.path)
        if fault is not None and fault.partial:
            count = min(count, fault.partial)
        return bytes(handle.file.data[offset : offset + count])

    def truncate(self, fd: int, size: int) -> None:
        handle = self._handle(fd)
        if handle.mode == "read":
            raise os_error("EINVAL", handle.path)
        after = self._enter("truncate", handle.path)
        data = handle.file.data
        if size < len(data):
            del data[size:]
        else:
            data.extend(bytes(size - len(data)))
        self._record(Op("truncate", inode=handle.inode, size=size), after)

    def fstat(self, fd: int) -> Stat:
        handle = self._handle(fd)
        if handle.inode in self._folders:
            return Stat("dir", 0, handle.inode)
        return Stat("file", len(handle.file.data), handle.inode)

    def fsync(self, fd: int) -> None:
        handle = self._handle(fd)
        file = handle.file
        fault = self._enter("fsync", handle.path)
        if file.late_error:
            file.late_error = False
            self._record(Op("fsync", inode=handle.inode, error="EIO"), None)
            raise os_error("EIO", handle.path)
        if fault is None or fault.exception:
            file.synced = bytes(file.data) if self.faults is not None else file.synced
            self._record(Op("fsync", inode=handle.inode), fault)
            return
        self._failing_sync(handle, fault)

    def fdatasync(self, fd: int) -> None:
        self.fsync(fd)

    def close(self, fd: int) -> None:
        if self._dead:
            raise ProcessKilled
        handle = self._handle(fd)
        fault = self.faults.hit("close", handle.path) if self.faults is not None else None
        del self._handles[fd]
        if handle.file.locked_by == fd:
            handle.file.locked_by = None
        self._record(Op("close", inode=handle.inode), None)
        if fault is not None and fault.error:
            raise os_error(fault.error, handle.path)

    def lock(self, fd: int) -> bool:
        handle = self._handle(fd)
        self._enter("lock", handle.path)
        if handle.file.locked_by not in (None, fd):
            return False
        handle.file.locked_by = fd
        return True

    def stat(self, path: str) -> Stat:
        self._enter("stat", path)
        inode = self._find(path)
        file = self._files.get(inode)
        return Stat("dir", 0, inode) if file is None else Stat("file", len(file.data), inode)

    def listdir(self, path: str) -> list[str]:
        self._enter("listdir", path)
        return list(self._folder(path))

    def rename(self, source: str, target: str) -> None:
        after = self._enter("rename", source)
        from_parent, from_name = self._parent_of(source)
        inode = self._folders[from_parent].get(from_name)
        if inode is None:
            raise os_error("ENOENT", source)
        to_parent, to_name = self._parent_of(target)
        self._check_rename(inode, self._folders[to_parent].get(to_name), source, target)
        if (from_parent, from_name) == (to_parent, to_name):
            return
        del self._folders[from_parent][from_name]
        self._folders[to_parent][to_name] = inode
        self._resolved.clear()
        self._record(
            Op(
                "rename",
                inode=inode,
                parent=from_parent,
                name=from_name,
                target_parent=to_parent,
                target_name=to_name,
            ),
            after,
        )

    def unlink(self, path: str) -> None:
        after = self._enter("unlink", path)
        parent, name = self._parent_of(path)
        inode = self._folders[parent].get(name)
        if inode is None:
            raise os_error("ENOENT", path)
        if inode in self._folders:
            raise os_error("EISDIR", path)
        del self._folders[parent][name]
        self._resolved.clear()
        self._record(Op("unlink", inode=inode, parent=parent, name=name), after)

    def rmdir(self, path: str) -> None:
        after = self._enter("rmdir", path)
        parent, name = self._parent_of(path)
        inode = self._folders[parent].get(name)
        if inode is None:
            raise os_error("ENOENT", path)
        if inode not in self._folders:
            raise os_error("ENOTDIR", path)
        if self._folders[inode]:
            raise os_error("ENOTEMPTY", path)
        del self._folders[parent][name]
        self._resolved.clear()
        self._record(Op("rmdir", inode=inode, parent=parent, name=name), after)

    def fsync_dir(self, path: str) -> None:
        after = self._enter("fsync_dir", path)
        inode = self._find(path)
        if inode not in self._folders:
            raise os_error("ENOTDIR", path)
        self._record(Op("fsync_dir", inode=inode), after)

    # --- for the harness ---------------------------------------------------------------------------------------

    def disk(self) -> Disk:
        """A copy of what is there now."""
        return Disk(
            files={inode: bytes(file.data) for inode, file in self._files.items()},
            folders={inode: dict(names) for inode, names in self._folders.items()},
        )

    def kill(self) -> None:
        """The process is gone: its descriptors close and its locks go, without a call of its own.  The next one may begin."""
        self._dead = False
        for fd, handle in self._handles.items():
            if handle.file.locked_by == fd:
                handle.file.locked_by = None
        self._handles = {}

    def die(self) -> NoReturn:
        """The process dies here.  Every later call raises ``ProcessKilled`` until ``kill`` has cleared it away."""
        self._dead = True
        raise ProcessKilled

    @property
    def dead(self) -> bool:
        return self._dead

    def evict(self) -> None:
        """The page cache drops what never became durable (after a failed sync), without a reboot."""
        for file in self._files.values():
            if file.doomed:
                file.data[:] = file.synced
                file.doomed = False

    def peek(self, path: str) -> bytes | None:
        """The bytes of a file, or None; no call of the product, so neither logged nor failed."""
        try:
            file = self._files.get(self._find(path))
        except OSError:
            return None
        return None if file is None else bytes(file.data)

    def files_under(self, path: str) -> list[tuple[str, bytes]]:
        """Every file below a folder with its bytes, sorted by path; none if the folder is not there."""
        try:
            top = self._find(path)
        except OSError:
            return []
        found: list[tuple[str, bytes]] = []
        waiting = [(path, top)] if top in self._folders else []
        while waiting:
            folder, inode = waiting.pop()
            for name, child in self._folders[inode].items():
                if child in self._folders:
                    waiting.append((f"{folder}/{name}", child))
                else:
                    found.append((f"{folder}/{name}", bytes(self._files[child].data)))
        return sorted(found)

    @property
    def open_files(self) -> int:
        return len(self._handles)

    # --- inside ------------------------------------------------------------------------------------------------

    def _enter(self, call: CallKind, path: str) -> DiskFault | None:
        """Apply the fault for this call, if any; returns it when the call still has to act on it."""
        if self._dead:
            raise ProcessKilled
        if self.faults is None:
            return None
        fault = self.faults.hit(call, path)
        if fault is None:
            return None
        if fault.exception:
            if fault.when == "before":
                raise EXCEPTIONS[fault.exception]
            return fault
        if call in ("write", "fsync") or (call == "pread" and fault.partial):
            return fault
        if fault.error:
            raise os_error(fault.error, path)
        return None

    def _record(self, op: Op, after: DiskFault | None) -> None:
        if self.log is not None:
            self.log.add(Op(**{**_fields(op), "site": call_site()}))
        if after is not None and after.exception and after.when == "after":
            raise EXCEPTIONS[after.exception]

    def _failing_sync(self, handle: _Handle, fault: DiskFault) -> None:
        file = handle.file
        if fault.dialect == "ext4-journal":
            file.late_error = True
            file.doomed = True
            self._record(Op("fsync", inode=handle.inode, error="LATE"), None)
            return
        if fault.dialect == "false-failure":
            self._record(Op("fsync", inode=handle.inode), None)
        else:
            self._record(Op("fsync", inode=handle.inode, error=fault.error or "EIO"), None)
        if fault.dialect == "ext4":
            file.doomed = True
        if fault.dialect == "btrfs":
            file.data[:] = file.synced
            self._record(Op("truncate", inode=handle.inode, size=len(file.synced)), None)
        raise os_error(fault.error or "EIO", handle.path)

    def _new_inode(self) -> int:
        inode = self._next_inode
        self._next_inode += 1
        return inode

    def _handle(self, fd: int) -> _Handle:
        handle = self._handles.get(fd)
        if handle is None:
            raise os_error("EBADF", str(fd))
        return handle

    def _find(self, path: str) -> int:
        found = self._resolved.get(path)
        if found is None:
            found = self._resolved[path] = self._walk(path)
        return found

    def _walk(self, path: str) -> int:
        inode = ROOT
        for name in path.split("/"):
            if not name:
                continue
            names = self._folders.get(inode)
            if names is None:
                raise os_error("ENOTDIR", path)
            found = names.get(name)
            if found is None:
                raise os_error("ENAMETOOLONG" if _too_long(name) else "ENOENT", path)
            inode = found
        if path.endswith("/") and inode not in self._folders:
            raise os_error("ENOTDIR", path)
        return inode

    def _folder(self, path: str) -> dict[str, int]:
        names = self._folders.get(self._find(path))
        if names is None:
            raise os_error("ENOTDIR", path)
        return names

    def _parent_of(self, path: str, *, wants_file: bool = False) -> tuple[int, str]:
        if not path.startswith("/"):
            raise os_error("ENOENT", path)
        folder, name = posixpath.split(path if wants_file else path.rstrip("/") or "/")
        inode = self._find(folder)
        if inode not in self._folders:
            raise os_error("ENOTDIR", path)
        if not name and not wants_file:
            raise os_error("EEXIST", path)
        if _too_long(name):
            raise os_error("ENAMETOOLONG", path)
        return inode, name

    def _check_rename(self, inode: int, existing: int | None, source: str, target: str) -> None:
        if inode in self._folders and (target.rstrip("/") + "/").startswith(source.rstrip("/") + "/"):
            if target.rstrip("/") != source.rstrip("/"):
                raise os_error("EINVAL", source)
            return
        if existing is None or existing == inode:
            return
        if inode in self._folders:
            if existing not in self._folders:
                raise os_error("ENOTDIR", target)
            if self._folders[existing]:
                raise os_error("ENOTEMPTY", target)
        elif existing in self._folders:
            raise os_error("EISDIR", target)


def _fields(op: Op) -> dict[str, Any]:
    return {name: getattr(op, name) for name in op.__struct_fields__}


def _too_long(name: str) -> bool:
    return len(name.encode("utf-8")) > NAME_BYTES_MAX
