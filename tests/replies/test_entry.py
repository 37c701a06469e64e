"""Scripts and cassettes as the command line names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pseudoclaude.messages import Message
from pseudoclaude.ports import Request
from simulator.replies.entry import MEMORY_REQUESTS_MAX, ScriptUnreadable, cassette, read_script, script
from simulator.replies.errors import CassetteUnreadable, ScriptExhausted

HELLO = Request((Message("user", "Hello"),))
REMEMBER = Request((Message("user", "Hello"),), purpose="memory")
RECORDINGS = Path(__file__).resolve().parents[2] / "scenarios" / "cassettes" / "recordings"


def _file(folder: Path, text: str) -> str:
    file = folder / "script.yaml"
    file.write_text(text)
    return str(file)


def test_the_provider_part_of_a_scenario_and_a_whole_one(tmp_path: Path) -> None:
    part, dialect = read_script(_file(tmp_path, "script: [{text: Hi}]\nmodel: m\n"))
    assert (part.script[0].text, part.model, dialect) == ("Hi", "m", "anthropic")
    whole = "why: x\nsettings: {dialect: openai-chat}\nprovider: {script: [{text: Hi}]}\nsteps: [{user: x}]\n"
    part, dialect = read_script(_file(tmp_path, whole))
    assert (part.script[0].text, dialect) == ("Hi", "openai-chat")


def test_a_script_that_says_nothing_of_memory_remembers_nothing(tmp_path: Path) -> None:
    provider = script(_file(tmp_path, "script: [{text: Hi}]\n"))
    assert MEMORY_REQUESTS_MAX > 100
    assert [provider.complete(request).message.content for request in (REMEMBER, HELLO, REMEMBER)] == ["[]", "Hi", "[]"]
    with pytest.raises(ScriptExhausted):
        provider.complete(HELLO)


def test_a_script_with_a_memory_is_taken_at_its_word(tmp_path: Path) -> None:
    provider = script(_file(tmp_path, "script: [{text: Hi}]\nmemory: [{text: once}]\n"))
    assert provider.complete(REMEMBER).message.content == "once"
    with pytest.raises(ScriptExhausted):
        provider.complete(REMEMBER)


@pytest.mark.slow
def test_a_cassette_is_a_provider_by_itself_and_in_a_script(tmp_path: Path) -> None:
    file = RECORDINGS / "anthropic_tool_loop.yaml"
    assert cassette(str(file)).dialect == script(_file(tmp_path, f"cassette: {file}\n")).dialect
    with pytest.raises(CassetteUnreadable):
        cassette(str(tmp_path / "nothing.yaml"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1", "not YAML"),
        ("hello", "cannot be used"),
        ("script: [{txt: Hi}]", "txt"),
        ("provider: {script: [{text: 5}]}", "$.provider.script[0].text"),
        ("provider: {}\nsettings: {dialect: klingon}", "$.settings.dialect"),
        ("script: [{fail: {status: 5}}]", "fail.status"),
    ],
)
def test_a_file_that_is_none_names_the_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ScriptUnreadable) as caught:
        read_script(_file(tmp_path, text))
    assert words in str(caught.value)
    assert "script.yaml" in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ScriptUnreadable, match="No such file"):
        read_script(tmp_path / "nothing.yaml")
