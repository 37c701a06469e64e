"""Catalog: where sessions lie, and what is there.  Only ``delete_session`` changes anything.

``<home>/projects/<slug>-<hash of path>/sessions/<id>/``.  The slug is for people, the hash keeps two projects apart whatever their paths
look like (``/x/a-b`` and ``/x/a/b``, two names in other scripts, names longer than a file name may be).  Which path a project folder
stands for is said by the ``cwd`` in the headers of its logs; there is no register that could disagree with them.

A session is listed whatever state its log is in, and also where the log is lost and spilled results are left.  A folder with neither was
opened and never used: it holds no data, so it is neither listed nor the latest.  Names that begin with a dot are sessions in the making or
in removal, and are not listed.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from itertools import islice

import msgspec

from pseudoclaude.errors import SessionError, SessionMissing, SessionUnreadable, listing
from pseudoclaude.messages import Message
from pseudoclaude.ports import FileSystem, Stat
from pseudoclaude.session.folders import take_lock
from pseudoclaude.session.leftovers import DELETING, changing, remove_tree
from pseudoclaude.session.loader import LOCK_NAME, LOG_NAME, LoadResult, load_log
from pseudoclaude.session.reading import HEAD_BYTES, LogReader, chunks
from pseudoclaude.session.records import HeaderFacts, Line, decode_header_facts, decode_line, segments
from pseudoclaude.session.spills import has_spills
from pseudoclaude.text import clean, cut_graphemes

SLUG_CHARS_MAX = 40
TITLE_BYTES_MAX = 80
LATEST = "latest"
_NOT_SLUG = re.compile(r"[^A-Za-z0-9]+")


class SessionInfo(msgspec.Struct, frozen=True):
    """One session as a list shows it.

    ``created`` and ``modified`` are Unix seconds, ``size`` the bytes of the log, ``state`` that of ``LoadResult`` or ``unreadable``.
    """

    id: str
    folder: str
    title: str = ""
    created: float = 0.0
    modified: float = 0.0
    model: str = ""
    size: int = 0
    state: str = "missing"
    messages: int = 0
    cwd: str = ""
    forked_from: str = ""


def project_folder(home: str, project: str) -> str:
    """The folder of the project at the absolute path ``project``: stable, and different for different paths."""
    path = clean(posixpath.normpath(project))
    slug = _NOT_SLUG.sub("-", posixpath.basename(path)).strip("-")[:SLUG_CHARS_MAX].strip("-")
    digest = hashlib.sha256(path.encode("utf-8")).hexdigest()[:16]
    return posixpath.join(home, "projects", f"{slug or 'project'}-{digest}")


def session_folder(home: str, project: str, session_id: str) -> str:
    """The folder of one session of a project.  The session is made by the first append of a writer that opens it."""
    return posixpath.join(project_folder(home, project), "sessions", session_id)


def list_sessions(home: str, fs: FileSystem, *, project: str | None = None) -> tuple[SessionInfo, ...]:
    """The sessions of one project, or of all, the newest id first.  Raises ``SessionUnreadable`` when a folder cannot be listed."""
    infos = [describe_session(folder, fs) for folder in _folders(home, fs, project) if _holds_something(folder, fs)]
    return tuple(sorted(infos, key=lambda info: (posixpath.basename(info.folder), info.folder), reverse=True))


def find_session(home: str, key: str, fs: FileSystem, *, project: str | None = None) -> str:
    """The folder of the session whose id is ``key`` or, if only one does, begins with it; ``latest`` is the newest that is listed.

    Raises ``SessionMissing`` when there is none, or more than one; nothing is created.
    """
    folders = _folders(home, fs, project)
    names = sorted(folders, key=lambda folder: (posixpath.basename(folder), folder))
    if key == LATEST:
        found = list(islice((folder for folder in reversed(names) if _holds_something(folder, fs)), 1))
    else:
        exact = [folder for folder in names if posixpath.basename(folder) == key]
        found = exact or [folder for folder in names if key and posixpath.basename(folder).startswith(key)]
    if len(found) == 1:
        return found[0]
    if found:
        what = f"{len(found)} sessions have an id that begins with {key!r}: {listing([posixpath.basename(f) for f in found])}"
    else:
        what = f"there is no session {key!r}" if key != LATEST else "there is no session yet"
    raise SessionMissing(
        what,
        where=project or home,
        still_true="Nothing was created or changed",
        do_next="`pseudoclaude sessions list` names them, with --all those of other projects",
    )


def describe_session(folder: str, fs: FileSystem) -> SessionInfo:
    """What one session folder holds; an unreadable or damaged log is a state, never an error."""
    name = posixpath.basename(folder)
    log = posixpath.join(folder, LOG_NAME)
    try:
        loaded = load_log(folder, fs, check_spills=False)
        stat = _stat(log, fs)
        facts, first = _head(log, fs) if stat is not None else (HeaderFacts(), None)
    except (SessionUnreadable, OSError):
        return SessionInfo(name, folder, title="(cannot be read)", state="unreadable")
    modified = stat.modified if stat is not None else 0.0
    return SessionInfo(
        id=name,
        folder=folder,
        title=_title(first, loaded),
        created=float(facts.created) or modified,
        modified=modified,
        model=loaded.model,
        size=loaded.size,
        state=loaded.state,
        messages=len(loaded.messages),
        cwd=facts.cwd,
        forked_from=facts.forked_from,
    )


def header_facts(folder: str, fs: FileSystem) -> HeaderFacts:
    """What the header of a session says of it; defaults where there is no header.  Raises ``OSError`` when it cannot be read."""
    return _head(posixpath.join(folder, LOG_NAME), fs)[0]


def delete_session(home: str, folder: str, fs: FileSystem, *, owner: str) -> tuple[str, ...]:
    """Remove one whole session folder of the catalog; the paths that are gone, relative to it.

    The folder leaves the catalog with one rename before anything in it is removed, so that a crash leaves no half session.  Links are removed, never
    followed.  Raises ``SessionLocked`` while a process has it open, ``SessionError`` for a folder that is not a session of this catalog.
    """
    _check_is_session(home, folder, fs)
    parent, name = posixpath.split(folder)
    try:
        with changing(parent, owner, fs):
            lock_fd = take_lock(posixpath.join(folder, LOCK_NAME), owner, fs, durable=False)
            try:
                aside = posixpath.join(parent, DELETING + name)
                fs.rename(folder, aside)
                removed = tuple(remove_tree(aside, fs))
                fs.fsync_dir(parent)
            finally:
                fs.close(lock_fd)
    except OSError as error:
        raise SessionError(
            f"the session could not be removed completely: {error.strerror or error}",
            where=folder,
            still_true="It is whole, or gone from the list with a part of it left in a folder beside it named .deleting-…",
            do_next="Check the permissions of the folder; the next removal or fork clears what is left",
        ) from error
    return removed


# --- inside ----------------------------------------------------------------------------------------------------


def _folders(home: str, fs: FileSystem, project: str | None) -> list[str]:
    projects = posixpath.join(home, "projects")
    parents = [posixpath.join(projects, name) for name in _names(projects, fs)]
    if project is not None:
        parents = [project_folder(home, project)]
    found = []
    for parent in parents:
        sessions = posixpath.join(parent, "sessions")
        for name in _names(sessions, fs):
            folder = posixpath.join(sessions, name)
            if _is_folder(folder, fs):
                found.append(folder)
    return found


def _holds_something(folder: str, fs: FileSystem) -> bool:
    """Whether a log or spilled results are there; one that cannot be looked at is listed, and says so itself."""
    try:
        return _stat(posixpath.join(folder, LOG_NAME), fs) is not None or has_spills(folder, fs)
    except OSError:
        return True


def _stat(path: str, fs: FileSystem) -> Stat | None:
    try:
        return fs.stat(path)
    except FileNotFoundError:
        return None


def _is_folder(path: str, fs: FileSystem) -> bool:
    """Whether a real folder stands there, not a link to one; one that cannot be looked at is listed, and says so itself."""
    try:
        return fs.stat(path).kind == "dir"
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _names(folder: str, fs: FileSystem) -> list[str]:
    try:
        return sorted(name for name in fs.listdir(folder) if not name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SessionUnreadable(
            f"the sessions cannot be listed: {error.strerror or error}",
            where=folder,
            still_true="They are not missing, and nothing was changed",
            do_next="Check the permissions of this folder",
        ) from error


def _head(log: str, fs: FileSystem) -> tuple[HeaderFacts, Message | None]:
    """The facts of the header, and the first thing the user said, as far as the beginning of the log tells."""
    fd = fs.open(log, "read")
    try:
        size = fs.fstat(fd).size
        reader = LogReader(fd, fs, size)
        facts = decode_header_facts(reader.head()) if reader.header() is not None else HeaderFacts()
        data = b"".join(chunks(fd, fs, 0, min(size, HEAD_BYTES)))
    finally:
        fs.close(fd)
    for _, raw, is_nul in segments(data):
        line = None if is_nul else decode_line(raw)
        said = line.message if isinstance(line, Line) else None
        if said is not None and said.role == "user" and said.content.strip():
            return facts, said
    return facts, None


def _title(first: Message | None, loaded: LoadResult) -> str:
    said = first or next((message for message in loaded.messages if message.role == "user" and message.content), None)
    if said is None:
        return "(nothing was said)"
    text = " ".join(said.content.split())
    cut = cut_graphemes(text, TITLE_BYTES_MAX)
    return cut if cut == text else cut + "…"


def _check_is_session(home: str, folder: str, fs: FileSystem) -> None:
    """A session of this catalog is ``home/projects/X/sessions/Y``, each of these a real folder."""
    sessions, name = posixpath.split(folder)
    project = posixpath.dirname(sessions)
    projects = posixpath.join(home, "projects")
    shaped = (
        posixpath.normpath(folder) == folder
        and bool(name)
        and posixpath.basename(sessions) == "sessions"
        and posixpath.dirname(project) == projects
    )
    try:
        real = shaped and all(fs.stat(path).kind == "dir" for path in (projects, project, sessions, folder))
    except FileNotFoundError as error:
        raise SessionMissing("there is no such session", where=folder, still_true="Nothing was removed") from error
    except OSError as error:
        raise SessionUnreadable(
            f"the session cannot be looked at: {error.strerror or error}",
            where=folder,
            still_true="Nothing was removed",
            do_next="Check the permissions of the folders above it",
        ) from error
    if not real:
        raise SessionError(
            "this is not a session of the catalog, so it is not removed",
            where=folder,
            still_true="Nothing was removed",
            do_next="`pseudoclaude sessions list` names what can be removed",
        )
