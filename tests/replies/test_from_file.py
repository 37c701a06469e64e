"""Scripts and cassettes as providers of the command line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from pkgutil import resolve_name

import pytest

from simulator.replies.errors import ScriptUnreadable
from simulator.replies.from_file import cassette_from_file, read_script, script_from_file
from tests.replies.build import HELLO

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "scenarios" / "cassettes" / "recordings"


def _file(folder: Path, text: str) -> str:
    file = folder / "script.yaml"
    file.write_text(text)
    return str(file)


def test_the_part_alone(tmp_path: Path) -> None:
    provider = script_from_file(_file(tmp_path, "script: [{text: Hi}]\nmodel: m\n"))
    assert (provider.dialect, provider.model, provider.complete(HELLO).message.content) == ("anthropic", "m", "Hi")


def test_a_whole_scenario_also_says_the_dialect(tmp_path: Path) -> None:
    text = "why: x\nsettings: {dialect: openai-chat}\nprovider: {script: [{text: Hi}]}\nsteps: [{user: a}]\n"
    provider = script_from_file(_file(tmp_path, text), "another")
    assert (provider.dialect, provider.model) == ("openai-chat", "another")


def test_a_cassette() -> None:
    provider = cassette_from_file(str(OWN / "anthropic_tool_loop.yaml"))
    assert (provider.dialect, provider.model) == ("anthropic", "emulated-model")


MISTAKES = [
    ("script: [", "is not YAML"),
    ("- a\n", "Expected `object`, got `array`"),
    ("scrpt: []\n", "unknown field `scrpt`"),
    ("script: [{txt: a}]\n", "unknown field `txt` - at `$.script[0]`"),
    ("provider: {script: [{txt: a}]}\n", "unknown field `txt` - at `$.provider.script[0]`"),
    ("provider: {}\nsettings: {dialect: morse}\n", "at `$.settings.dialect`"),
    ("provider: {}\nsettings: {context_window: 5}\n", "too small"),
    ("", "Expected `object`, got `null`"),
]


@pytest.mark.parametrize(("text", "sentence"), MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_a_mistake_is_one_line_with_file_and_path(text: str, sentence: str, tmp_path: Path) -> None:
    file = _file(tmp_path, text)
    with pytest.raises(ScriptUnreadable) as caught:
        read_script(file)
    assert sentence in str(caught.value)
    assert file in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ScriptUnreadable, match="No such file"):
        read_script(tmp_path / "none.yaml")


def test_the_entry_points_lead_to_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = {name: resolve_name(target) for name, target in project["entry-points"]["pseudoclaude.providers"].items()}
    assert points == {"script": script_from_file, "cassette": cassette_from_file}
