"""What ``pseudoclaude check`` tells of twenty damaged logs; ``python -m tests.session.damaged_logs`` prints it."""

import json

import pytest

from pseudoclaude.protocol import check as check_wire
from tests.session.damaged_logs import DAMAGED, WHOLE, DamagedLog, report, write_logs


def test_there_are_twenty():
    assert len({damaged.name for damaged in DAMAGED}) == 20


@pytest.mark.parametrize("damaged", DAMAGED, ids=[damaged.name for damaged in DAMAGED])
def test_a_reader_is_told_what_was_lost_and_where_and_that_nothing_was_changed(tmp_path, damaged: DamagedLog):
    session = next(path for one, path in write_logs(tmp_path) if one is damaged)
    before = {path: path.read_bytes() for path in session.rglob("*") if path.is_file()}
    status, text = report(session)
    assert status == damaged.status
    assert "The file was not changed." in text
    for words in damaged.tells:
        assert words in text
    if damaged.data != WHOLE[:-1]:
        assert "byte " in text
    assert {path: path.read_bytes() for path in session.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("damaged", DAMAGED, ids=[damaged.name for damaged in DAMAGED])
def test_the_report_as_json_holds_a_history_the_provider_takes(tmp_path, damaged: DamagedLog):
    session = next(path for one, path in write_logs(tmp_path) if one is damaged)
    status, text = report(session, as_json=True)
    told = json.loads(text)
    assert list(told) == ["id", "state", "messages", "findings", "truncated"]
    assert check_wire("anthropic", [*told["messages"], {"role": "user", "content": "go on"}]) == []
    assert status == any(not finding["settled"] for finding in told["findings"])
