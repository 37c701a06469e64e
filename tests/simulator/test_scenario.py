"""Scenario files: every mistake is one line that names the file and the path in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.scenario import ScenarioError, find_scenarios, load_scenario, schema

GOOD = """
why: a test
tools: {look: {text: "x"}}
provider: {script: [{text: "hi"}]}
steps: [{user: "go"}]
"""


def _write(folder: Path, text: str) -> Path:
    path = folder / "suite" / "name.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_scenario_is_named_by_its_suite_and_file(tmp_path: Path) -> None:
    scenario = load_scenario(_write(tmp_path, GOOD))
    assert scenario.id == "suite/name"
    assert len(scenario.content_hash) == 8
    assert scenario.faults.crash is not None
    assert scenario.faults.crash.models == ("kill", "posix-min")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (GOOD + "surprise: 1\n", "surprise"),
        (GOOD.replace("why: a test", "why: 7"), "$.why"),
        (GOOD.replace('{text: "x"}', '{text: "x", repeat: many}'), "$.tools"),
        (GOOD.replace('{text: "x"}', '{text: "x", repeat: -1}'), "repeat is -1"),
        (GOOD.replace('[{user: "go"}]', '[{user: "go"}, {usre: "again"}]'), "$.steps[1]"),
        (GOOD.replace('[{user: "go"}]', "[{user: 5}]"), "$.steps[0].user"),
        (GOOD.replace('[{user: "go"}]', "[{restart: {kil: true}}]"), "$.steps[0].restart"),
        (GOOD.replace('[{user: "go"}]', "[]"), "$.steps"),
        (GOOD.replace('[{text: "hi"}]', '[{text: "hi", fail: {status: 42}}]'), "42"),
        (GOOD.replace('[{text: "hi"}]', '[{txt: "hi"}]'), "$.provider.script[0]"),
        (GOOD + "settings: {durability: sometimes}\n", "$.settings.durability"),
        (GOOD + "settings: {context_window: 1000}\n", "1,000 tokens is too small"),
        (GOOD + "expect: {oracles: [O99]}\n", "O99"),
        (GOOD + "faults: {crash: {models: [ext9]}}\n", "ext9"),
        (GOOD + "faults: {disk: [{call: teleport}]}\n", "teleport"),
        (GOOD.replace("why: a test", "why: a test\nwhy: twice"), "stands twice"),
        ("why: [unclosed", "line 1"),
        ("- just a list", "object"),
        ("\udc80".encode("utf-8", "surrogatepass").decode("latin-1"), "name.yaml"),
    ],
)
def test_a_mistake_is_one_line_with_the_file_and_the_path(tmp_path: Path, text: str, where: str) -> None:
    path = _write(tmp_path, text)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    message = str(caught.value)
    assert str(path) in message
    assert where in message
    assert "\n" not in message


def test_a_missing_path_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.yaml", tmp_path):
        with pytest.raises(ScenarioError, match=str(path)):
            find_scenarios((str(path),))


def test_the_project_s_scenarios_load_and_their_schema_names_every_member() -> None:
    root = Path(__file__).resolve().parents[2] / "scenarios"
    scenarios = [load_scenario(path) for path in find_scenarios((str(root),))]
    assert {"append_replace/spilled_result", "cassettes/anthropic_tool_loop"} <= {scenario.id for scenario in scenarios}
    assert all(scenario.why for scenario in scenarios)
    assert {"why", "settings", "tools", "provider", "steps", "faults", "expect", "memory"} == set(
        schema()["$defs"]["_Document"]["properties"]
    )
