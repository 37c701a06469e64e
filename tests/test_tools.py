"""The real tools on real temporary folders."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pseudoclaude.errors import ToolFailed
from pseudoclaude.ports import Tool, ToolOutput
from pseudoclaude.protocol import check
from pseudoclaude.settings import Settings
from pseudoclaude.tools import project_tools
from pseudoclaude.tools.command import OUTPUT_BYTES_MAX
from pseudoclaude.tools.files import ASIDE, ENTRIES_MAX, PAGE_BYTES
from pseudoclaude.tools.search import HITS_MAX, LINE_BYTES_MAX


class Tools:
    """The tools of a project in a temporary folder, called by name."""

    def __init__(self, folder: Path, *, timeout: float = 10.0) -> None:
        self.project = folder / "project"
        self.spills = folder / "spills"
        self.project.mkdir()
        self.spills.mkdir()
        settings = Settings(tool_timeout_seconds=timeout)
        found = project_tools(self.project, settings=settings, also_readable=(self.spills,))
        self.by_name: dict[str, Tool] = {tool.spec.name: tool for tool in found}

    def run(self, name: str, **arguments: Any) -> ToolOutput:
        return self.by_name[name].run(arguments)

    def text(self, name: str, **arguments: Any) -> str:
        content = self.run(name, **arguments).content
        return content if isinstance(content, str) else content.decode("utf-8", "replace")

    def put(self, path: str, content: str | bytes) -> Path:
        place = self.project / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        return place


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(tmp_path)


# --- what the model is told ------------------------------------------------------------------------------------


def test_only_what_changes_something_says_so(tools: Tools) -> None:
    assert {name: tool.changes for name, tool in tools.by_name.items()} == {
        "read_file": False,
        "write_file": True,
        "edit_file": True,
        "list_files": False,
        "search": False,
        "run_command": True,
    }


def test_each_schema_is_an_object_that_providers_take(tools: Tools) -> None:
    for tool in tools.by_name.values():
        assert tool.spec.parameters["type"] == "object"
        assert tool.spec.parameters["additionalProperties"] is False
        assert all("description" in entry or "type" in entry for entry in tool.spec.parameters["properties"].values())
    names = list(tools.by_name)
    assert check("anthropic", [{"role": "user", "content": "Hi"}], context={"tools": names}) == []


@pytest.mark.parametrize(
    "arguments", [{}, {"path": 5}, {"path": "a", "line": 0}, {"path": "a", "line": "x"}, {"path": "a", "more": 1}]
)
def test_arguments_that_do_not_fit_are_refused_with_the_place(tools: Tools, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolFailed, match="arguments do not fit"):
        tools.by_name["read_file"].run(arguments)


def test_numbers_may_come_as_text(tools: Tools) -> None:
    tools.put("a", "one\ntwo\n")
    assert tools.text("read_file", path="a", line="2") == "two\n"


# --- paths -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../outside", "link/x", "\x00", "a\x00b"])
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"old": "a", "new": "b"}),
        ("list_files", {}),
        ("search", {"pattern": "x"}),
    ],
)
def test_no_path_leaves_the_project(tools: Tools, name: str, more: dict[str, Any], path: str) -> None:
    outside = tools.project.parent / "outside"
    outside.mkdir()
    (outside / "x").write_text("secret")
    (tools.project / "link").symlink_to(outside)
    with pytest.raises(ToolFailed, match=r"outside the project|NUL"):
        tools.run(name, path=path, **more)
    assert (outside / "x").read_text() == "secret"
    assert os.listdir(outside) == ["x"]


def test_spilled_results_may_be_read_and_searched_but_not_changed(tools: Tools) -> None:
    spilled = tools.spills / "call.txt"
    spilled.write_text("all of it")
    assert tools.text("read_file", path=str(spilled)) == "all of it"
    assert tools.text("search", path=str(spilled), pattern="all") == f"{spilled}:1: all of it"
    with pytest.raises(ToolFailed, match="outside the project"):
        tools.run("write_file", path=str(spilled), content="x")


def test_links_inside_the_project_are_followed_when_written(tools: Tools) -> None:
    target = tools.put("real.txt", "old")
    (tools.project / "link.txt").symlink_to("real.txt")
    tools.run("write_file", path="link.txt", content="new")
    assert target.read_text() == "new"
    assert (tools.project / "link.txt").is_symlink()


# --- read ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"plain\n", b"\xff\xfe\x00\n", "é🙂\r\n".encode(), b"no newline"])
def test_a_file_is_read_as_it_is(tools: Tools, content: bytes) -> None:
    tools.put("a", content)
    read = tools.run("read_file", path="a").content
    assert read == (content or "[The file is empty beyond byte 0; it has 0 bytes.]")


@pytest.mark.parametrize(
    "content",
    [b"".join(b"line %d\n" % i for i in range(20_000)), b"x" * 100_001, "🙂".encode() * 30_000, b"\xbf" * 90_000],
    ids=["lines", "one line", "wide", "only continuation bytes"],
)
def test_pages_joined_are_the_file(tools: Tools, content: bytes) -> None:
    tools.put("a", content)
    joined, offset = b"", 0
    while True:
        page = tools.run("read_file", path="a", offset=offset).content
        assert isinstance(page, bytes)
        assert len(page) <= PAGE_BYTES + 200
        body, notice, rest = page.rpartition(b"\n[Bytes ")
        joined += body if notice else page
        if not notice:
            break
        offset = int(rest.split(b"offset=")[1].split(b" ")[0])
    assert joined == content


def test_a_page_never_cuts_a_character(tools: Tools) -> None:
    tools.put("a", "x" + "🙂" * 30_000)
    page = tools.run("read_file", path="a").content
    assert isinstance(page, bytes)
    page.decode("utf-8")


def test_reading_can_start_at_a_line(tools: Tools) -> None:
    tools.put("a", "".join(f"{number}\n" for number in range(1, 101)))
    assert tools.text("read_file", path="a", line=99) == "99\n100\n"
    assert tools.text("read_file", path="a", line=500).startswith("[The file is empty beyond")


def test_a_page_stays_below_what_would_be_spilled(tools: Tools) -> None:
    assert Settings().result_limit_bytes > PAGE_BYTES + 200


def test_only_regular_files_are_read(tools: Tools) -> None:
    os.mkfifo(tools.project / "pipe")
    for path, words in [("pipe", "no regular file"), (".", "a folder"), ("nothing", "there is no file")]:
        with pytest.raises(ToolFailed, match=words):
            tools.run("read_file", path=path)


# --- write and edit --------------------------------------------------------------------------------------------


def test_a_write_makes_folders_and_says_what_it_did(tools: Tools) -> None:
    assert tools.text("write_file", path="a/b/c.txt", content="é") == "Wrote the new file a/b/c.txt (2 bytes)."
    assert tools.text("write_file", path="a/b/c.txt", content="") == "Replaced a/b/c.txt (0 bytes)."
    assert (tools.project / "a/b/c.txt").read_bytes() == b""
    assert os.listdir(tools.project / "a/b") == ["c.txt"]


def test_a_write_keeps_the_mode(tools: Tools) -> None:
    script = tools.put("run.sh", "old")
    script.chmod(0o751)
    tools.run("write_file", path="run.sh", content="new")
    assert stat.S_IMODE(script.stat().st_mode) == 0o751


def test_a_write_that_fails_changes_nothing_and_leaves_nothing(tools: Tools) -> None:
    tools.put("folder/x", "kept")
    with pytest.raises(ToolFailed, match="no regular file"):
        tools.run("write_file", path="folder", content="x")
    with pytest.raises(OSError, match=r"File name too long"):
        tools.run("write_file", path="n" * 300, content="x")
    assert sorted(os.listdir(tools.project)) == ["folder"]


def test_what_a_killed_write_left_is_in_nobodys_way(tools: Tools) -> None:
    tools.put(ASIDE, "half")
    tools.run("write_file", path="a", content="whole")
    assert os.listdir(tools.project) == ["a"]


def test_text_that_is_no_unicode_is_cleaned_before_it_is_written(tools: Tools) -> None:
    tools.run("write_file", path="a", content="ok \ud83d")
    assert (tools.project / "a").read_text() == "ok \ufffd"


def test_an_edit_leaves_every_other_byte_alone(tools: Tools) -> None:
    place = tools.put("a", b"\xff\xfe\r\nname = old\r\n\x00")
    assert tools.text("edit_file", path="a", old="old", new="né") == "Replaced 1 occurrence in a."
    assert place.read_bytes() == b"\xff\xfe\r\nname = n\xc3\xa9\r\n\x00"


@pytest.mark.parametrize(("old", "words"), [("zzz", "occurs 0 times"), ("a", "occurs 3 times"), ("", "is empty")])
def test_an_edit_that_is_not_clear_changes_nothing(tools: Tools, old: str, words: str) -> None:
    place = tools.put("a", "a a a")
    with pytest.raises(ToolFailed, match=words):
        tools.run("edit_file", path="a", old=old, new="b")
    assert place.read_text() == "a a a"


def test_all_occurrences_can_be_replaced(tools: Tools) -> None:
    place = tools.put("a", "a a a")
    assert tools.text("edit_file", path="a", old="a", new="b", all=True) == "Replaced 3 occurrences in a."
    assert place.read_text() == "b b b"


# --- list and search -------------------------------------------------------------------------------------------


def test_a_listing_is_sorted_and_says_what_is_what(tools: Tools) -> None:
    tools.put("b.txt", "12345")
    tools.put("a/inner.txt", "1")
    (tools.project / "link").symlink_to("b.txt")
    assert tools.text("list_files").split("\n") == ["a/", "b.txt  (5 bytes)", "link -> b.txt"]
    assert tools.text("list_files", recursive=True).split("\n")[:2] == ["a/", "a/inner.txt  (1 bytes)"]
    assert tools.text("list_files", path="a") == "inner.txt  (1 bytes)"


def test_a_recursive_listing_stays_out_of_version_control_and_links(tools: Tools) -> None:
    tools.put(".git/config", "x")
    (tools.project / "loop").symlink_to(".")
    assert tools.text("list_files", recursive=True).split("\n") == [".git/", "loop -> ."]


def test_a_long_listing_is_cut_and_says_so(tools: Tools) -> None:
    for number in range(ENTRIES_MAX + 1):
        (tools.project / f"{number:05}").touch()
    lines = tools.text("list_files").split("\n")
    assert len(lines) == ENTRIES_MAX + 1
    assert lines[-1].startswith("[More than 1,000 entries")


def test_a_search_gives_path_line_and_text(tools: Tools) -> None:
    tools.put("src/a.py", "import os\n\ndef main():\n    os.exit()\n")
    tools.put("src/b.txt", "os\n")
    assert tools.text("search", pattern=r"\bos\b").split("\n") == [
        "src/a.py:1: import os",
        "src/a.py:4:     os.exit()",
        "src/b.txt:1: os",
    ]
    assert tools.text("search", pattern="OS", glob="*.txt", ignore_case=True) == "src/b.txt:1: os"
    assert tools.text("search", pattern="^def", path="src/a.py") == "src/a.py:3: def main():"
    assert tools.text("search", pattern="nowhere") == "[No hits.]"


def test_a_search_leaves_out_what_is_no_text_and_says_so(tools: Tools) -> None:
    tools.put("a.bin", b"word\x00")
    tools.put(".git/x", "word")
    tools.put("latin", "wörd word".encode("latin-1"))
    assert tools.text("search", pattern="word").split("\n") == [
        "latin:1: w\ufffdrd word",
        "[1 files were left out: binary, unreadable, or larger than 5,000,000 bytes.]",
    ]


def test_hits_are_bounded_in_number_and_length(tools: Tools) -> None:
    tools.put("a", ("x" * 400 + "\n") * (HITS_MAX + 50))
    lines = tools.text("search", pattern="x").split("\n")
    assert len(lines) == HITS_MAX + 1
    assert lines[-1].startswith(f"[More than {HITS_MAX} hits")
    assert max(map(len, lines)) < LINE_BYTES_MAX + 20


def test_a_pattern_that_is_none_is_refused(tools: Tools) -> None:
    with pytest.raises(ToolFailed, match="no regular expression"):
        tools.run("search", pattern="(")


@pytest.mark.slow
def test_a_pattern_that_backtracks_for_ever_is_stopped(tools: Tools) -> None:
    tools.put("a", "a" * 80)
    assert "was stopped there" in tools.text("search", pattern=r"(?:a|aa)+c")


# --- run_command -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "output", "is_error"),
    [
        ("echo out; echo err >&2", b"out\nerr\n[Exit status 0.]", False),
        ("printf x; exit 3", b"x\n[Exit status 3.]", True),
        ("true", b"[Exit status 0.]", False),
        (r"printf '\377\000\n'", b"\xff\x00\n[Exit status 0.]", False),
        ("kill -SEGV $$", b"[Ended by signal 11 (Segmentation fault).]", True),
        ("cat", b"[Exit status 0.]", False),
        ("nonexistent-command 2>/dev/null", b"[Exit status 127.]", True),
    ],
)
def test_a_command_gives_its_output_and_how_it_ended(tools: Tools, command: str, output: bytes, is_error: bool) -> None:
    result = tools.run("run_command", command=command)
    assert result == ToolOutput(output, is_error)


def test_a_command_runs_in_the_project_folder_without_a_terminal(tools: Tools) -> None:
    assert tools.text("run_command", command="pwd").split("\n")[0] == str(tools.project.resolve())
    assert "not a tty" in tools.text("run_command", command="tty")


BEATING = "(while :; do echo x >> beat; sleep 0.02; done) &"
"""Goes on in the background, and can be seen to."""


def test_a_command_that_takes_too_long_is_stopped_with_all_it_started(tools: Tools) -> None:
    result = tools.run("run_command", command=f"{BEATING} echo started; sleep 60", timeout_seconds=0.1)
    assert result == ToolOutput(b"started\n[Stopped after 0.1 seconds; it had not ended.]", is_error=True)
    assert _nothing_beats(tools)


def test_what_a_command_leaves_in_the_background_is_ended(tools: Tools) -> None:
    assert tools.text("run_command", command=f"{BEATING} sleep 0.05; echo started") == "started\n[Exit status 0.]"
    assert _nothing_beats(tools)


def test_a_call_cannot_ask_for_more_time_than_the_settings_give(tmp_path: Path) -> None:
    result = Tools(tmp_path, timeout=0.1).run("run_command", command="sleep 60", timeout_seconds=1_000)
    assert result == ToolOutput(b"[Stopped after 0.1 seconds; it had not ended.]", is_error=True)


def test_ctrl_c_ends_the_command_with_all_it_started(tmp_path: Path) -> None:
    tools = Tools(tmp_path, timeout=120.0)

    def press() -> None:
        while not (tools.project / "beat").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()

    def run_to_the_end() -> None:
        result = tools.run("run_command", command=f"{BEATING} sleep 100")
        pytest.fail(f"it ended by itself: {result}")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            run_to_the_end()
    finally:
        signal.signal(signal.SIGINT, before)
    presser.join()
    assert _nothing_beats(tools)


@pytest.mark.slow
def test_output_without_end_keeps_its_beginning_and_its_end(tools: Tools) -> None:
    script = (
        "import sys\nsys.stdout.write('begin\\n')\nfor i in range(500): sys.stdout.write('x' * 100_000)\nprint('end')"
    )
    result = tools.run("run_command", command=f"{shlex.quote(sys.executable)} -S -c {shlex.quote(script)}")
    content = result.content
    assert isinstance(content, bytes)
    assert content.startswith(b"begin\nx")
    assert content.endswith(b"xend\n[Exit status 0.]")
    assert b"bytes left out" in content
    assert len(content) < OUTPUT_BYTES_MAX + 200_000


@pytest.mark.slow
def test_a_process_that_leaves_its_group_does_not_hold_the_result_back(tools: Tools) -> None:
    result = tools.text("run_command", command="setsid sh -c 'echo $$ > pid; exec sleep 8' & sleep 0.1; echo done")
    assert result.startswith("done\n")
    os.kill(int((tools.project / "pid").read_text()), 9)


def _nothing_beats(tools: Tools) -> bool:
    before = (tools.project / "beat").stat().st_size
    time.sleep(0.08)
    return before > 0 and (tools.project / "beat").stat().st_size == before
