"""``pseudoclaude sessions``: list, show, fork, export and delete what was said before."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Literal, TextIO

import msgspec

from pseudoclaude.commands.check import history_lines
from pseudoclaude.commands.screen import visible
from pseudoclaude.commands.streams import for_reader
from pseudoclaude.commands.words import count
from pseudoclaude.ports import Clock, FileSystem, Ids
from pseudoclaude.session.catalog import SessionInfo, delete_session, describe_session, find_session, list_sessions
from pseudoclaude.session.export import to_jsonl, to_markdown
from pseudoclaude.session.fork import fork_session
from pseudoclaude.session.loader import load_log

ExportFormat = Literal["jsonl", "markdown"]
NONE_HERE = "No session of this project yet. `pseudoclaude sessions list --all` shows those of other projects."


class Shelf(msgspec.Struct, frozen=True):
    """Where sessions are looked for: the home of PseudoClaude, and a project (None: all of them)."""

    home: str
    project: str | None
    fs: FileSystem


def list_all(shelf: Shelf, *, as_json: bool, out: TextIO) -> int:
    """One line a session, the newest first.  Returns 0."""
    infos = list_sessions(shelf.home, shelf.fs, project=shelf.project)
    if as_json:
        print(for_reader(msgspec.json.format(msgspec.json.encode(infos), indent=2).decode(), out), file=out)
        return 0
    for info in infos:
        print(visible(_line(info, with_cwd=shelf.project is None)), file=out)
    if not infos:
        print("No session yet." if shelf.project is None else NONE_HERE, file=out)
    return 0


def show(shelf: Shelf, key: str, out: TextIO) -> int:
    """What one session holds.  Returns 0, or 1 when its log is damaged; raises ``SessionMissing``, ``SessionUnreadable``."""
    folder = find_session(shelf.home, key, shelf.fs, project=shelf.project)
    info = describe_session(folder, shelf.fs)
    loaded = load_log(folder, shelf.fs)
    print(visible(_line(info, with_cwd=True)), file=out)
    if info.forked_from:
        print(visible(f"forked from {info.forked_from}"), file=out)
    for text in history_lines(loaded.messages):
        print(visible(text), file=out)
    if loaded.unsettled:
        print(
            visible(f"It is {loaded.state}: `pseudoclaude check {shlex.quote(folder)}` tells what was found"), file=out
        )
    return 1 if loaded.state == "damaged" else 0


def fork(shelf: Shelf, key: str, clock: Clock, ids: Ids, out: TextIO) -> int:
    """A new session with the history of another.  Returns 0; raises ``SessionError``."""
    folder = find_session(shelf.home, key, shelf.fs, project=shelf.project)
    target = fork_session(folder, shelf.fs, clock, ids)
    print(visible(target.rpartition("/")[2]), file=out)
    return 0


def export(shelf: Shelf, key: str, form: ExportFormat, out: TextIO) -> int:
    """The history of a session on ``out``: exact, but visible on a terminal.  Returns 0; raises ``SessionMissing``, ``SessionUnreadable``."""
    folder = find_session(shelf.home, key, shelf.fs, project=shelf.project)
    loaded = load_log(folder, shelf.fs)
    text = to_jsonl(loaded) if form == "jsonl" else to_markdown(loaded, describe_session(folder, shelf.fs).title)
    out.write(for_reader(text, out))
    return 0


def delete(shelf: Shelf, key: str, ids: Ids, *, sure: bool, out: TextIO) -> int:
    """Remove one session and say what is gone.  Without ``sure`` it only says what would be; returns 1 then, else 0."""
    folder = find_session(shelf.home, key, shelf.fs, project=shelf.project)
    info = describe_session(folder, shelf.fs)
    if not sure:
        print(visible(_line(info, with_cwd=True)), file=out)
        print("Nothing was removed. Say --yes to remove this session for good.", file=out)
        return 1
    removed = delete_session(shelf.home, folder, shelf.fs, owner=ids.owner())
    print(visible(f"Removed session {info.id}, {count(len(removed), 'file')}:"), file=out)
    for name in removed:
        print(visible(f"  {name}"), file=out)
    return 0


def _line(info: SessionInfo, *, with_cwd: bool) -> str:
    when = datetime.fromtimestamp(info.modified, UTC).strftime("%Y-%m-%d %H:%M UTC") if info.modified else "no date"
    model = f", {info.model}" if info.model else ""
    state = "" if info.state == "clean" else f", {info.state.upper()}"
    where = f" [{info.cwd or 'unknown project'}]" if with_cwd else ""
    return f"{info.id}  {when}  {count(info.messages, 'message')}, {count(info.size, 'byte')}{model}{state}  {info.title}{where}"
