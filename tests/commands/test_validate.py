"""``validate``: would a provider refuse this?"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from pseudoclaude.commands.validate import validate

GOOD = [{"role": "user", "content": "Hi"}]
BAD = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}]},
]


def judge(folder: Path, document: object, dialect: str = "anthropic", *, as_json: bool = False) -> tuple[int, str, str]:
    file = folder / "request.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    out, err = io.StringIO(), io.StringIO()
    return validate(str(file), dialect, as_json=as_json, out=out, err=err), out.getvalue(), err.getvalue()


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses"])
def test_a_valid_history_exits_0(tmp_path: Path, dialect: str) -> None:
    status, out, err = judge(tmp_path, GOOD, dialect)
    assert (status, err) == (0, "")
    assert out.endswith(f": 1 message for {dialect}: valid\n")


def test_violations_exit_1_with_rule_place_and_repair(tmp_path: Path) -> None:
    status, out, _ = judge(tmp_path, {"messages": BAD, "model": "m"})
    assert status == 1
    assert "A20 at messages[1]" in out
    assert "repair:" in out


def test_json_says_the_same_to_programs(tmp_path: Path) -> None:
    status, out, _ = judge(tmp_path, BAD, as_json=True)
    report = json.loads(out)
    assert status == 1
    assert {"A20"} <= {found["rule"] for found in report["violations"]}
    assert report["messages"] == 2


@pytest.mark.parametrize("document", ["", "{", "5", '{"x": []}'])
def test_what_cannot_be_judged_exits_2(tmp_path: Path, document: str) -> None:
    status, out, err = judge(tmp_path, document)
    assert (status, out) == (2, "")
    assert "cannot be judged" in err


def test_a_missing_file_and_an_unknown_dialect_exit_2(tmp_path: Path) -> None:
    err = io.StringIO()
    assert validate(str(tmp_path / "no"), "anthropic", as_json=False, out=io.StringIO(), err=err) == 2
    assert "cannot be read: No such file" in err.getvalue()
    status, _, words = judge(tmp_path, GOOD, "klingon")
    assert status == 2
    assert "unknown dialect 'klingon'" in words
