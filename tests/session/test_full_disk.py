"""A disk that is full and then freed; ``python -m tests.session.full_disk`` prints it."""

import pytest

from tests.session.full_disk import FullDisk, _simulated, full_disk


@pytest.mark.parametrize("run", [_simulated, full_disk], ids=["simulated", "real where a mount is allowed"])
def test_what_was_refused_is_saved_in_order_when_there_is_space_again(run):
    done: FullDisk = run()
    assert done.saved > 3
    assert done.refused == 2
    assert "No space left" in done.told or "ENOSPC" in done.told
    assert done.in_order
    assert done.unsettled == 0
