"""Two thousand turns; what the tests assert is printed by ``python -m tests.compact.long_session``."""

import pytest

from tests.compact.long_session import run, window_settings


@pytest.mark.slow
@pytest.mark.parametrize("window", [128_000, 200_000])
def test_a_long_session_stays_under_the_window_and_a_check_does_not_get_dearer(tmp_path, window):
    played = run(window_settings(window), 2_000, tmp_path)
    assert played.turns == 2_000
    assert played.summaries > 50
    assert played.spilled > 1_000
    assert played.largest <= window - 8_192
    tenth = len(played.idle_seconds) // 10
    early, late = (sorted(part)[tenth // 2] for part in (played.idle_seconds[:tenth], played.idle_seconds[-tenth:]))
    assert late < 3 * early
