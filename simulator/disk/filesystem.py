"""SimFileSystem: ``ports.FileSystem`` in memory, with every call in one log.

It is the *running* view: what programs see through the page cache while the machine is up.  What a power cut leaves of it is not
decided here but in ``crash.py``, from the log.  Results and error classes equal those of a real POSIX file system and of pyfakefs; the
``conformance`` command compares all three on generated scripts of calls.

Allowed faults are those of ``faults.py``.  A descriptor number is given out once, so that a call on a closed one is always an error.
Symbolic links do not exist here; tests of links use a real folder.
"""

from __future__ import annotations

from typing import NoReturn

import msgspec

from pseudoclaude.ports import OpenMode, Stat
from simulator.disk.faults import CallKind, DiskFault, FaultPlan, finish, os_error
from simulator.disk.files import File, Handle
from simulator.disk.names import NOT_THERE, Names, check_encodable
from simulator.disk.oplog import OpLog, call_site
from simulator.values import ROOT, Disk, Op, names_of


class ProcessKilled(BaseException):
    """The simulated process is dead: nothing it still tries takes effect.  Not an ``Exception``, since no program can catch its own death."""


class SimFileSystem:
    """A file system in memory.  ``log`` None records nothing, which is what makes thousands of recoveries a second possible."""

    def __init__(
        self,
        disk: Disk | None = None,
        *,
        log: OpLog | None = None,
        faults: FaultPlan | None = None,
        paths: dict[str, int] | None = None,
    ) -> None:
        disk = disk or Disk.empty()
        self.log = log
        self._dead = False
        self._faults = faults
        self._watched = faults is not None
        """A call may end otherwise than in success or the caller's own mistake."""
        self._files = {inode: File(data) for inode, data in disk.files.items()}
        self._names = Names(disk.folders, paths)
        self.touched: set[int] = set()
        """Inodes that were written, cut, made, renamed or unlinked; the harness empties it to watch what happens next."""
        self._folders = self._names.folders
        self._folder_locks: dict[int, File] = {}
        """Stand-ins for the folders that were opened; they hold only a lock."""
        self._next_inode = max([*self._files, *self._folders, ROOT]) + 1
        self._handles: dict[int, Handle] = {}
        self._next_fd = 3

    # --- the port ----------------------------------------------------------------------------------------------

    def mkdir(self, path: str) -> None:
        after = self._enter("mkdir", path) if self._watched else None
        parent, name = self._names.parent_of(path, at_root="EEXIST")
        if self._names.entry(parent, name, path) is not None:
            raise os_error("EEXIST", path)
        inode = self._new_inode()
        self._names.add_folder(parent, name, inode)
        self.touched.add(inode)
        self._record(Op("mkdir", inode=inode, parent=parent, name=name))
        if after is not None:
            finish(after)

    def open(self, path: str, mode: OpenMode) -> int:
        after = self._enter("open", path) if self._watched else None
        inode = self._names.known.get(path, 0)
        if mode == "create" or inode not in self._files:
            inode = self._named(path, mode)
        fd = self._next_fd
        self._next_fd += 1
        file = self._files.get(inode) or self._folder_locks.setdefault(inode, File())
        self._handles[fd] = Handle(inode, file, mode, path)
        if after is not None:
            finish(after)
        return fd

    def _named(self, path: str, mode: OpenMode) -> int:
        """What ``open`` finds under a name, or makes."""
        parent, name = self._names.parent_of(path, at_root="")
        makes = mode in ("create", "lock")
        if makes and name and path.endswith("/"):
            raise os_error("EISDIR", path)
        inode = self._names.entry(parent, name, path) if name else parent
        if inode is None:
            if not makes:
                raise os_error("ENOENT", path)
            inode = self._new_inode()
            self._files[inode] = File()
            self._names.add(parent, name, inode)
            self.touched.add(inode)
            if self.log is not None:
                self._record(Op("create", inode=inode, parent=parent, name=name))
        elif mode == "create":
            raise os_error("EEXIST", path)
        elif inode in self._folders:
            if mode != "read":
                raise os_error("EISDIR", path)
        elif path.endswith("/"):
            raise os_error("ENOTDIR", path)
        else:
            self._names.known[path] = inode
        return inode

    def write(self, fd: int, data: bytes) -> int:
        handle = self._handles.get(fd) or self._no_handle(fd)
        if handle.mode == "read":
            raise os_error("EBADF", handle.path)
        fault = self._enter("write", handle.path) if self._watched else None
        accepted = data if fault is None or fault.exception else data[: fault.partial]
        file = handle.file
        offset = handle.position if handle.mode == "lock" else len(file.data)
        if accepted:
            end = handle.position = offset + len(accepted)
            if offset > len(file.data):
                file.data.extend(bytes(offset - len(file.data)))
            file.data[offset:end] = accepted
            self.touched.add(handle.inode)
            if self.log is not None:
                error = fault.error if fault is not None else ""
                self._record(Op("write", inode=handle.inode, offset=offset, data=bytes(accepted), error=error))
        if fault is not None and fault.error:
            raise os_error(fault.error, handle.path)
        if fault is not None:
            finish(fault)
        return len(accepted)

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        if count < 0 or offset < 0:
            raise os_error("EINVAL", str(fd))
        handle = self._handles.get(fd) or self._no_handle(fd)
        if handle.mode in ("create", "append"):
            raise os_error("EBADF", handle.path)
        if handle.inode in self._folders:
            raise os_error("EISDIR", handle.path)
        fault = self._enter("pread", handle.path) if self._watched else None
        if fault is not None:
            count = min(count, fault.partial or count)
            finish(fault)
        return bytes(handle.file.data[offset : offset + count])

    def truncate(self, fd: int, size: int) -> None:
        if size < 0:
            raise os_error("EINVAL", str(fd))
        handle = self._handles.get(fd) or self._no_handle(fd)
        if handle.mode == "read":
            raise os_error("EINVAL", handle.path)
        after = self._enter("truncate", handle.path) if self._watched else None
        handle.file.resize(size)
        self.touched.add(handle.inode)
        self._record(Op("truncate", inode=handle.inode, size=size))
        if after is not None:
            finish(after)

    def fstat(self, fd: int) -> Stat:
        handle = self._handles.get(fd) or self._no_handle(fd)
        if handle.inode in self._folders:
            return Stat("dir", 0, handle.inode)
        return Stat("file", len(handle.file.data), handle.inode)

    def fsync(self, fd: int) -> None:
        handle = self._handles.get(fd) or self._no_handle(fd)
        if handle.inode in self._folders:
            after = self._enter("fsync_dir", handle.path) if self._watched else None
            self._record(Op("fsync_dir", inode=handle.inode))
            if after is not None:
                finish(after)
            return
        file = handle.file
        fault = self._enter("fsync", handle.path) if self._watched else None
        if file.late_error:
            file.late_error = False
            file.lose()
            self._record(Op("fsync", inode=handle.inode, error="EIO"))
            raise os_error("EIO", handle.path)
        if fault is None or fault.exception:
            if self._faults is not None:
                file.sync()
            if self.log is not None:
                self._record(Op("fsync", inode=handle.inode))
            if fault is not None:
                finish(fault)
            return
        self._failing_sync(handle, fault)

    def fdatasync(self, fd: int) -> None:
        self.fsync(fd)

    def close(self, fd: int) -> None:
        handle = self._handles.get(fd) or self._no_handle(fd)
        fault = self._faults.hit("close", handle.path) if self._faults is not None else None
        del self._handles[fd]
        if handle.file.locked_by == fd:
            handle.file.locked_by = None
        if self.log is not None:
            self._record(Op("close", inode=handle.inode))
        if fault is not None and fault.error:
            raise os_error(fault.error, handle.path)
        if fault is not None:
            finish(fault)

    def lock(self, fd: int) -> bool:
        handle = self._handles.get(fd) or self._no_handle(fd)
        after = self._enter("lock", handle.path) if self._watched else None
        free = handle.file.locked_by in (None, fd)
        if free:
            handle.file.locked_by = fd
        if after is not None:
            finish(after)
        return free

    def stat(self, path: str) -> Stat:
        after = self._enter("stat", path) if self._watched else None
        inode = self._names.known.get(path, NOT_THERE)
        if inode == NOT_THERE:
            inode = self._names.find(path)
        if after is not None:
            finish(after)
        file = self._files.get(inode)
        return Stat("dir", 0, inode) if file is None else Stat("file", len(file.data), inode)

    def listdir(self, path: str) -> list[str]:
        after = self._enter("listdir", path) if self._watched else None
        names = list(self._names.folder(path))
        if after is not None:
            finish(after)
        return names

    def rename(self, source: str, target: str) -> None:
        after = self._enter("rename", source) if self._watched else None
        check_encodable(source, target)
        from_parent, from_name = self._names.parent_of(source, at_root="EBUSY")
        to_parent, to_name = self._names.parent_of(target, at_root="EBUSY")
        inode = self._names.entry(from_parent, from_name, source)
        if inode is None:
            raise os_error("ENOENT", source)
        existing = self._names.entry(to_parent, to_name, target)
        self._names.check_rename(inode, existing, source, target)
        if existing != inode:
            self._names.remove(from_parent, from_name)
            self._names.add(to_parent, to_name, inode)
            self.touched.add(inode)
            op = Op("rename", inode=inode, parent=from_parent, name=from_name)
            self._record(msgspec.structs.replace(op, target_parent=to_parent, target_name=to_name))
        if after is not None:
            finish(after)

    def unlink(self, path: str) -> None:
        after = self._enter("unlink", path) if self._watched else None
        parent, name = self._names.parent_of(path, at_root="EISDIR")
        inode = self._names.entry(parent, name, path)
        if inode is None:
            raise os_error("ENOENT", path)
        if inode in self._folders:
            raise os_error("EISDIR", path)
        if path.endswith("/"):
            raise os_error("ENOTDIR", path)
        self._names.remove(parent, name)
        self.touched.add(inode)
        self._record(Op("unlink", inode=inode, parent=parent, name=name))
        if after is not None:
            finish(after)

    def rmdir(self, path: str) -> None:
        after = self._enter("rmdir", path) if self._watched else None
        parent, name = self._names.parent_of(path, at_root="EBUSY")
        inode = self._names.entry(parent, name, path)
        if inode is None:
            raise os_error("ENOENT", path)
        if inode not in self._folders:
            raise os_error("ENOTDIR", path)
        if self._folders[inode]:
            raise os_error("ENOTEMPTY", path)
        self._names.remove(parent, name)
        self.touched.add(inode)
        self._record(Op("rmdir", inode=inode, parent=parent, name=name))
        if after is not None:
            finish(after)

    def fsync_dir(self, path: str) -> None:
        after = self._enter("fsync_dir", path) if self._watched else None
        inode = self._names.known.get(path, NOT_THERE)
        if inode not in self._folders:
            inode = self._names.find(path)
            if inode not in self._folders:
                raise os_error("ENOTDIR", path)
        if self.log is not None:
            self._record(Op("fsync_dir", inode=inode))
        if after is not None:
            finish(after)

    # --- for the harness ---------------------------------------------------------------------------------------

    def disk(self) -> Disk:
        """A copy of what is there now."""
        return Disk(
            files={inode: bytes(file.data) for inode, file in self._files.items()},
            folders={inode: dict(names) for inode, names in self._folders.items()},
        )

    def kill(self) -> None:
        """The process is gone: its descriptors close and its locks go, without a call of its own.  The next one may begin."""
        self._close_all()
        self._dead = False
        self._watched = self._faults is not None

    def die(self) -> NoReturn:
        """The process dies here.  Every later call raises ``ProcessKilled`` until ``kill`` has cleared it away."""
        self._close_all()
        self._dead = self._watched = True
        raise ProcessKilled

    @property
    def dead(self) -> bool:
        return self._dead

    @property
    def faults(self) -> FaultPlan | None:
        """What goes wrong from here on."""
        return self._faults

    @faults.setter
    def faults(self, faults: FaultPlan | None) -> None:
        self._faults = faults
        self._watched = self._dead or faults is not None

    def evict(self) -> None:
        """The page cache drops what never became durable (after a failed sync), without a reboot."""
        for file in self._files.values():
            if file.lost:
                file.data[:] = file.synced
                file.lost = []

    def peek(self, path: str) -> bytes | None:
        """The bytes of a file, or None; no call of the product, so neither logged nor failed."""
        try:
            file = self._files.get(self._names.find(path))
        except OSError:
            return None
        return None if file is None else bytes(file.data)

    def files_under(self, path: str) -> list[tuple[str, bytes]]:
        """Every file below a folder with its bytes, sorted by path; none if the folder is not there."""
        found = [(name, inode) for name, inode, _ in names_of(self._folders) if name.startswith(f"{path}/")]
        return sorted((name, bytes(self._files[inode].data)) for name, inode in found if inode in self._files)

    def changed_besides(self, path: str) -> bool:
        """Did any file but ``path`` change since ``touched`` was emptied?"""
        try:
            spared = self._names.find(path)
        except OSError:
            spared = 0
        return any(inode != spared and inode not in self._folders for inode in self.touched)

    @property
    def open_files(self) -> int:
        return len(self._handles)

    # --- inside ------------------------------------------------------------------------------------------------

    def _enter(self, call: CallKind, path: str) -> DiskFault | None:
        """Apply the fault for this call, if any; returns it when the call still has to act on it."""
        if self._dead:
            raise ProcessKilled
        return None if self._faults is None else self._faults.strike(call, path)

    def _record(self, op: Op) -> None:
        if self.log is not None:
            self.log.add(msgspec.structs.replace(op, site=call_site()))

    def _failing_sync(self, handle: Handle, fault: DiskFault) -> None:
        file, dialect = handle.file, fault.dialect
        file.fail_sync(dialect)
        error = {"ext4-journal": "LATE", "false-failure": ""}.get(dialect, fault.error or "EIO")
        self._record(Op("fsync", inode=handle.inode, error=error))
        if dialect == "btrfs":
            self._record(Op("truncate", inode=handle.inode, size=len(file.synced)))
        if dialect != "ext4-journal":
            raise os_error(fault.error or "EIO", handle.path)

    def _close_all(self) -> None:
        for fd, handle in self._handles.items():
            if handle.file.locked_by == fd:
                handle.file.locked_by = None
        self._handles = {}

    def _new_inode(self) -> int:
        self._next_inode += 1
        return self._next_inode - 1

    def _no_handle(self, fd: int) -> NoReturn:
        if self._dead:
            raise ProcessKilled
        raise os_error("EBADF", str(fd))
