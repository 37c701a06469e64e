"""Where sessions lie, what a list says of them, forks and removal."""

import hashlib
import os

import pytest

from pseudoclaude.errors import SessionError, SessionLocked, SessionMissing, SessionUnreadable, UnsupportedVersion
from pseudoclaude.messages import Message, Spill, ToolResult
from pseudoclaude.realworld import RealFileSystem
from pseudoclaude.session import SessionWriter, load
from pseudoclaude.session.catalog import (
    delete_session,
    describe_session,
    find_session,
    list_sessions,
    project_folder,
    session_folder,
)
from pseudoclaude.session.export import to_jsonl, to_markdown
from pseudoclaude.session.fork import fork_session
from pseudoclaude.session.leftovers import changing
from simulator.build import DiskBuilder
from simulator.crash import crash_states
from simulator.disk import OpLog, SimFileSystem
from simulator.disk.faults import DiskFault, FaultPlan
from simulator.values import ROOT, Disk, Recording
from simulator.world import SimClock, SimIds
from tests.session.build import HEADER, assistant, calls, line, log_of, user

HOME, PROJECT = "/h", "/p"
EMPTY = Disk({}, {ROOT: {}})


def put(fs: SimFileSystem, name: str, data: bytes, project: str = PROJECT) -> str:
    """A session folder with this log."""
    folder = session_folder(HOME, project, name)
    SessionWriter.open(folder, fs=fs, clock=SimClock(), ids=SimIds(0)).close()
    fd = fs.open(f"{folder}/conversation.jsonl", "create")
    fs.write(fd, data)
    fs.close(fd)
    return folder


@pytest.mark.parametrize("name", ["a-b", "日本", "", "..", "x" * 300, "a\udce9", "CON", "-"])
def test_a_project_folder_is_one_plain_name_below_255_bytes(name):
    folder = project_folder(HOME, f"/x/{name}")
    assert folder.startswith("/h/projects/")
    assert "/" not in folder.removeprefix("/h/projects/")
    assert len(folder.removeprefix("/h/projects/").encode()) < 255
    assert folder == project_folder(HOME, f"/x/{name}")


def test_the_same_place_written_differently_is_one_project():
    assert project_folder(HOME, "/x//a/") == project_folder(HOME, "/x/a")


def test_a_list_shows_every_session_whatever_its_log_is_the_newest_first():
    fs = SimFileSystem(EMPTY)
    put(fs, "1", log_of(user("  What\nis   it?"), assistant("b")))
    put(fs, "2", b"garbage\n")
    put(fs, "3", b"")
    put(fs, "4", b'{"type":"session","version":9}\n')
    put(fs, "5", log_of(user("é" * 90), calls("c")))
    fs.mkdir(f"{project_folder(HOME, PROJECT)}/sessions/.forking-6")
    put(fs, "7", log_of(user("elsewhere")), project="/q")
    infos = list_sessions(HOME, fs, project=PROJECT)
    assert [(info.id, info.state) for info in infos] == [
        ("5", "repaired"),
        ("4", "unsupported"),
        ("3", "empty"),
        ("2", "damaged"),
        ("1", "clean"),
    ]
    assert [info.title for info in infos][::4] == ["é" * 40 + "…", "What is it?"]
    assert (infos[4].messages, infos[4].cwd, infos[4].created) == (2, "/project", 1_764_547_200)
    assert [info.id for info in list_sessions(HOME, fs)] == ["7", "5", "4", "3", "2", "1"]
    assert list_sessions("/none", fs) == ()


def test_a_log_that_cannot_be_read_is_listed_as_that_and_a_folder_that_cannot_raises():
    fs = SimFileSystem(EMPTY)
    put(fs, "1", log_of(user("a")))
    fs.faults = FaultPlan((DiskFault("open", error="EIO", path_suffix="jsonl", sticky=True),))
    assert list_sessions(HOME, fs)[0].state == "unreadable"
    fs.faults = FaultPlan((DiskFault("stat", error="EIO", path_suffix="sessions/1/conversation.jsonl", sticky=True),))
    assert list_sessions(HOME, fs)[0].state == "unreadable"
    fs.faults = FaultPlan((DiskFault("stat", error="EIO", path_suffix="projects"),))
    with pytest.raises(SessionUnreadable, match="Nothing was removed"):
        delete_session(HOME, session_folder(HOME, PROJECT, "1"), fs, owner="me")
    fs.faults = FaultPlan((DiskFault("listdir", error="EACCES"),))
    with pytest.raises(SessionUnreadable, match="not missing"):
        list_sessions(HOME, fs)


def test_the_title_is_what_was_said_first_also_after_a_compaction():
    fs = SimFileSystem(EMPTY)
    folder = put(fs, "1", log_of(user("first words")))
    with SessionWriter.open(folder, fs=fs, clock=SimClock(), ids=SimIds(0)) as writer:
        writer.append_replace("compact", [user("a summary")])
    assert describe_session(folder, fs).title == "first words"


def test_a_session_is_found_by_its_id_by_a_beginning_that_no_other_has_or_as_the_latest():
    fs = SimFileSystem(EMPTY)
    for name in ("20251201-aa", "20251201-ab", "20251202-c", "20251202-cc"):
        put(fs, name, log_of(user("a")))

    def found(key: str) -> str:
        return find_session(HOME, key, fs, project=PROJECT).rpartition("/")[2]

    assert found("20251201-aa") == found("20251201-aa") == "20251201-aa"
    assert found("20251202-c") == "20251202-c"
    assert found("latest") == "20251202-cc"
    for key, words in (("20251201", "2 sessions"), ("x", "no session 'x'"), ("", "no session"), ("../x", "no session")):
        with pytest.raises(SessionMissing, match=words):
            found(key)
    with pytest.raises(SessionMissing, match="no session yet"):
        find_session(HOME, "latest", fs, project="/other")


def test_a_folder_that_was_opened_and_never_used_is_no_session_but_lost_history_is():
    fs = SimFileSystem(EMPTY)
    put(fs, "1", log_of(user("a")))
    SessionWriter.open(session_folder(HOME, PROJECT, "3"), fs=fs, clock=SimClock(), ids=SimIds(0)).close()
    fs.mkdir(session_folder(HOME, PROJECT, "4"))
    assert [info.id for info in list_sessions(HOME, fs, project=PROJECT)] == ["1"]
    assert find_session(HOME, "latest", fs, project=PROJECT).endswith("/1")
    assert find_session(HOME, "3", fs, project=PROJECT).endswith("/3")  # by its name it can still be removed
    lost = session_folder(HOME, PROJECT, "2")
    for folder in (lost, f"{lost}/tool-results"):
        fs.mkdir(folder)
    fs.close(fs.open(f"{lost}/tool-results/x.txt", "create"))
    assert [(info.id, info.state) for info in list_sessions(HOME, fs)] == [("2", "damaged"), ("1", "clean")]
    assert find_session(HOME, "latest", fs, project=PROJECT) == lost
    fs.faults = FaultPlan((DiskFault("listdir", error="EIO", path_suffix="sessions/4/tool-results", sticky=True),))
    assert next(info.id for info in list_sessions(HOME, fs)) == "4", "what cannot be looked at is listed"


# --- fork ------------------------------------------------------------------------------------------------------


def with_spill(fs: SimFileSystem, content: bytes = b"full text") -> str:
    digest = hashlib.sha256(b"full text").hexdigest()
    told = ToolResult("c", "preview", spill=Spill("tool-results/x.txt", 9, digest))
    folder = put(fs, "1", log_of(user("a"), calls("c"), Message("tool", tool_result=told), calls("d")))
    fs.mkdir(f"{folder}/tool-results")
    fd = fs.open(f"{folder}/tool-results/x.txt", "create")
    fs.write(fd, content)
    fs.close(fd)
    return folder


def test_a_fork_has_the_history_and_the_spilled_results_and_names_its_source():
    fs = SimFileSystem(EMPTY)
    source = with_spill(fs)
    before = fs.files_under(source)
    with SessionWriter.open(source, fs=fs, clock=SimClock(), ids=SimIds(0)):
        target = fork_session(source, fs, SimClock(), SimIds(0))
    forked = load(target, fs=fs)
    assert forked.state == "clean"
    assert forked.messages[:3] == load(source, fs=fs).messages[:3]
    assert forked.messages[-1].tool_result is not None
    assert forked.messages[-1].tool_result.origin == "interrupted"
    assert describe_session(target, fs).forked_from == "s"
    assert fs.files_under(source) == before
    assert fs.listdir(target.rpartition("/")[0]).count("1") == 1
    assert fs.open_files == 0


def test_a_fork_of_a_session_whose_spilled_result_is_damaged_says_the_same_as_its_source():
    fs = SimFileSystem(EMPTY)
    target = fork_session(with_spill(fs, b"other"), fs, SimClock(), SimIds(0))
    assert [finding.kind for finding in load(target, fs=fs).findings] == ["missing_spill"]


def test_a_fork_is_whole_or_not_listed_after_a_crash_at_any_point_and_durable_once_it_returned():
    fs = SimFileSystem(EMPTY)
    source = with_spill(fs)
    base = fs.disk()
    log = OpLog()
    fork_session(source, SimFileSystem(base, log=log), SimClock(), SimIds(0))
    recording = Recording("fork", "", 0, "", base, tuple(log.ops), (), "anthropic", "always")
    builder = DiskBuilder(recording)
    states = listed = 0
    for state in crash_states(recording, "posix-min", tears="ends"):
        after = SimFileSystem(builder.build(state))
        states += 1
        infos = {info.id: info for info in list_sessions(HOME, after)}
        infos.pop("1")
        assert state.point < len(log.ops) or infos
        for info in infos.values():
            listed += 1
            forked = load(info.folder, fs=after)
            assert (forked.state, len(forked.messages)) == ("clean", 5), state
    assert states > 50
    assert listed


@pytest.mark.parametrize("call", ["mkdir", "write", "fsync", "fsync_dir", "rename", "open"])
def test_a_fork_that_fails_leaves_the_source_and_lists_nothing(call):
    fs = SimFileSystem(EMPTY)
    source = with_spill(fs)
    before = fs.files_under(source)
    nth = {"open": 5, "write": 2}.get(call, 1)
    fs.faults = FaultPlan((DiskFault(call, nth=nth, error="ENOSPC"),))
    with pytest.raises(SessionError, match="could not be forked"):
        fork_session(source, fs, SimClock(), SimIds(0))
    assert fs.files_under(source) == before
    assert [info.id for info in list_sessions(HOME, fs)] == ["1"]
    assert fs.open_files == 0
    target = fork_session(source, fs, SimClock(), SimIds(1))
    assert sorted(fs.listdir(target.rpartition("/")[0])) == [".lock", "1", target.rpartition("/")[2]]


def test_what_is_not_there_or_too_new_is_not_forked():
    fs = SimFileSystem(EMPTY)
    with pytest.raises(SessionMissing):
        fork_session(session_folder(HOME, PROJECT, "none"), fs, SimClock(), SimIds(0))
    with pytest.raises(UnsupportedVersion):
        fork_session(put(fs, "1", b'{"type":"session","version":9}\n'), fs, SimClock(), SimIds(0))


# --- export and removal ----------------------------------------------------------------------------------------


def test_an_export_as_json_lines_loads_as_a_log_again(tmp_path):
    fs = SimFileSystem(EMPTY)
    loaded = load(with_spill(fs), fs=fs)
    (tmp_path / "conversation.jsonl").write_text(to_jsonl(loaded))
    assert load(tmp_path).messages == loaded.messages


def test_an_export_as_markdown_keeps_texts_apart_whatever_they_hold():
    fs = SimFileSystem(EMPTY)
    ticks = Message("tool", tool_result=ToolResult("c", "```\n````\nx", is_error=True))
    loaded = load(
        put(fs, "1", HEADER + b"".join([line(user("# a"), 1), line(calls("c"), 2), line(ticks, 3)]) + b"x"), fs=fs
    )
    text = to_markdown(loaded, "a")
    assert "`````\n```\n````\nx\n`````" in text
    assert "Error of call `c`" in text
    assert "## What is not here\n\n- byte " in text


def test_a_removed_session_is_gone_whole_and_said_file_by_file():
    fs = SimFileSystem(EMPTY)
    folder = with_spill(fs)
    put(fs, "2", log_of(user("b")))
    removed = delete_session(HOME, folder, fs, owner="me")
    assert removed == ("conversation.jsonl", "lock", "tool-results/x.txt")
    assert [info.id for info in list_sessions(HOME, fs)] == ["2"]
    assert sorted(fs.listdir(folder.rpartition("/")[0])) == [".lock", "2"]
    assert fs.open_files == 0


def test_sessions_are_made_and_removed_by_one_process_at_a_time():
    fs = SimFileSystem(EMPTY)
    folder = put(fs, "1", log_of(user("a")))
    with changing(folder.rpartition("/")[0], "pid 7 on host", fs):
        with pytest.raises(SessionLocked, match="the list of sessions is in use by pid 7"):
            fork_session(folder, fs, SimClock(), SimIds(0))
        with pytest.raises(SessionLocked, match="pid 7"):
            delete_session(HOME, folder, fs, owner="me")
    assert [info.id for info in list_sessions(HOME, fs)] == ["1"]


def test_a_session_in_use_is_not_removed():
    fs = SimFileSystem(EMPTY)
    folder = put(fs, "1", log_of(user("a")))
    with SessionWriter.open(folder, fs=fs, clock=SimClock(), ids=SimIds(0)), pytest.raises(SessionLocked):
        delete_session(HOME, folder, fs, owner="me")
    assert load(folder, fs=fs).messages == (user("a"),)


@pytest.mark.parametrize(
    "folder", ["/h", "/h/projects", "/h/projects/x/sessions", "/", "/h/projects/x/sessions/../../y"]
)
def test_what_is_no_session_of_the_catalog_is_not_removed(folder):
    fs = SimFileSystem(EMPTY)
    put(fs, "1", log_of(user("a")))
    with pytest.raises(SessionError):
        delete_session(HOME, folder, fs, owner="me")
    assert len(list_sessions(HOME, fs)) == 1


def test_links_are_removed_and_never_followed(tmp_path):
    fs, home = RealFileSystem(), str(tmp_path / "h")
    folder = session_folder(home, "/p", "1")
    with SessionWriter.open(folder) as writer:
        writer.append_message(user("a"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    os.symlink(outside, f"{folder}/tool-results")
    os.symlink(outside / "precious", f"{folder}/file")
    os.symlink(folder, f"{folder}-link")
    with pytest.raises(SessionError, match="not a session"):
        delete_session(home, f"{folder}-link", fs, owner="me")
    assert delete_session(home, folder, fs, owner="me") == ("conversation.jsonl", "file", "lock", "tool-results")
    assert (outside / "precious").read_text() == "x"


@pytest.mark.parametrize("point", ["unlink", "rmdir", "rename"])
def test_a_removal_that_fails_leaves_the_session_whole_or_out_of_the_list(point):
    fs = SimFileSystem(EMPTY)
    folder = with_spill(fs)
    fs.faults = FaultPlan((DiskFault(point, nth=1, error="EBUSY"),))
    with pytest.raises(SessionError, match="completely"):
        delete_session(HOME, folder, fs, owner="me")
    left = [info.state for info in list_sessions(HOME, fs)]
    assert left == (["repaired"] if point == "rename" else [])
    assert fs.open_files == 0
    delete_session(HOME, put(fs, "2", log_of(user("b"))), fs, owner="me")
    assert [name for name in fs.listdir(folder.rpartition("/")[0]) if name != "1"] == [".lock"]
