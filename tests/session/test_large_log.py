"""A resume reads the end of a large log; ``python -m tests.session.large_log`` measures it on 1 GiB."""

import pytest

from tests.session.large_log import MIB, TAIL_BYTES, measure, write_log

pytestmark = pytest.mark.slow


def test_a_resume_costs_what_lies_behind_the_last_snapshot_not_what_the_log_is(tmp_path):
    path, small = tmp_path / "conversation.jsonl", tmp_path / "small.jsonl"
    write_log(path, 48 * MIB)
    write_log(small, TAIL_BYTES + 1)
    fast, full, alone = measure(path, scan_all=False), measure(path, scan_all=True), measure(small, scan_all=True)
    assert fast.digest == full.digest
    assert 0 < path.stat().st_size - fast.scanned_from < 2 * TAIL_BYTES
    assert full.scanned_from == 0
    assert fast.seconds < full.seconds / 4
    assert fast.peak_kib < alone.peak_kib + 8 * 1024
