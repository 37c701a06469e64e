"""Fork: a new session that begins with the history of another.

The other is only read, and may be open in another process.  The new one is built aside, in a folder beside its later place: first the
spilled results, copied and synced, then the log (a header that names where it came from, and the whole history as one ``snapshot``), synced.
One rename makes it a session; the folder above is synced before the fork returns.  Until then nothing is listed.
"""

from __future__ import annotations

import posixpath

from pseudoclaude.errors import SessionError, SessionMissing, UnsupportedVersion
from pseudoclaude.ports import Clock, FileSystem, Ids
from pseudoclaude.session.catalog import header_facts
from pseudoclaude.session.folders import make_folders, sync_chain
from pseudoclaude.session.leftovers import FORKING, changing, clear
from pseudoclaude.session.loader import LOG_NAME, LoadResult, load_log
from pseudoclaude.session.logfile import LogFile
from pseudoclaude.session.reading import chunks
from pseudoclaude.session.records import encode_header, encode_replace
from pseudoclaude.session.spills import spill_problem, spills_of
from pseudoclaude.settings import Dangling


def fork_session(source: str, fs: FileSystem, clock: Clock, ids: Ids, *, dangling: Dangling = "answer") -> str:
    """Make a new session beside the one in the folder ``source``; its folder.

    A spilled result that is missing or damaged in the source is not copied; the fork keeps its preview and says the same as the source does.
    Raises ``SessionMissing``, ``SessionUnreadable``, ``UnsupportedVersion``, and ``SessionError`` when the disk does not take the copy: nothing is
    listed then, and the source is as it was.
    """
    loaded = load_log(source, fs, dangling=dangling)
    _check_forkable(source, loaded)
    sessions = posixpath.dirname(source)
    target_id = ids.session_id(clock.now())
    aside = posixpath.join(sessions, FORKING + target_id)
    target = posixpath.join(sessions, target_id)
    try:
        with changing(sessions, ids.owner(), fs):
            try:
                make_folders(aside, fs, durable=True)
                _fill(source, aside, target_id, loaded, fs, int(clock.now()))
                fs.rename(aside, target)
            except OSError:
                clear(sessions, fs)
                raise
            sync_chain(sessions, fs)
    except OSError as error:
        raise SessionError(
            f"the session could not be forked: {error.strerror or error}",
            where=aside,
            still_true="The source is as it was; a new session is listed whole or not at all",
            do_next="Free space or mend the disk, then fork again; that clears what is left of this try",
        ) from error
    return target


def _check_forkable(source: str, loaded: LoadResult) -> None:
    if loaded.state == "missing":
        raise SessionMissing("there is no session to fork", where=source, still_true="Nothing was created")
    if loaded.state == "unsupported":
        raise UnsupportedVersion(loaded.findings[0].text, where=source, still_true="Nothing was created")


def _fill(source: str, aside: str, target_id: str, loaded: LoadResult, fs: FileSystem, now: int) -> None:
    for spill in spills_of(loaded.messages):
        if not spill_problem(source, spill, fs):
            _copy(posixpath.join(source, spill.path), posixpath.join(aside, spill.path), fs)
    log = LogFile(posixpath.join(aside, LOG_NAME), fs, size=0, ends_open=False)
    try:
        log.attach()
        log.write_line(encode_header(target_id, now, header_facts(source, fs).cwd, loaded.id))
        log.write_line(encode_replace("snapshot", loaded.messages, 1, now, model=loaded.model))
        log.sync_data()
        log.sync_entry()
    finally:
        log.close()


def _copy(source: str, target: str, fs: FileSystem) -> None:
    """Copy one file, durably; nothing if the same content was copied before (two results may name one file)."""
    folder = posixpath.dirname(target)
    make_folders(folder, fs, durable=True)
    if posixpath.basename(target) in fs.listdir(folder):
        return
    reading = fs.open(source, "read")
    try:
        writing = fs.open(target, "create")
        try:
            for data in chunks(reading, fs, 0, fs.fstat(reading).size):
                rest = data
                while rest:
                    rest = rest[fs.write(writing, rest) :]
            fs.fsync(writing)
        finally:
            fs.close(writing)
    finally:
        fs.close(reading)
    fs.fsync_dir(folder)
