"""One fault at a time, at every call: the same object goes on, a new process looks, and every later crash is survived."""

import pytest

from pseudoclaude.settings import Durability
from simulator.disk.faults import DiskFault
from tests.session.build import bytes_of, loaded
from tests.session.faults import Driven, drive, swept, told


def test_two_unsaved_records_are_synced_one_by_one_so_that_the_second_is_never_alone():
    driven = drive(DiskFault("open", nth=2, error="EIO"))
    assert len(told(driven)) == 1
    assert swept(driven).broken == 0


QUICK = [
    DiskFault("write", nth=3, error="ENOSPC", partial=7),
    DiskFault("write", nth=4, error="EIO", partial=20),
    DiskFault("write", nth=3, partial=9),
    *(DiskFault("fsync", nth=4, error="EIO", dialect=dialect) for dialect in ("ext4", "btrfs", "false-failure")),
    *(
        DiskFault(call, nth=4, exception="KeyboardInterrupt", when=w)
        for call in ("write", "fsync")
        for w in ("before", "after")
    ),
]


@pytest.mark.parametrize("fault", QUICK, ids=lambda fault: f"{fault.call} {fault.nth} {fault.error}{fault.exception}")
def test_after_a_fault_the_same_object_goes_on_and_every_later_crash_is_survived(fault: DiskFault):
    driven = drive(fault)
    assert driven.fs.faults.fired
    assert driven.closed
    assert loaded(bytes_of(driven.fs)).messages == driven.histories[-1]
    assert driven.fs.open_files == 0
    assert _broken(driven) == []


def _broken(driven: Driven, durability: Durability = "always") -> list[tuple[str, str]]:
    """Opening writes where the mark of a failed sync is found, so O9 is left out."""
    failures = swept(driven, durability=durability).failures
    return [(failure.message, failure.token) for failure in failures if failure.oracle != "O9"]


CALLS = ["mkdir", "open", "write", "pread", "fsync", "close", "lock", "stat", "unlink", "fsync_dir"]


def _modes(call: str, durability: Durability) -> list[dict[str, object]]:
    errors: list[dict[str, object]] = [{"error": "EIO"}]
    if call == "write":
        errors = [{"error": "ENOSPC", "partial": n} for n in (0, 7)] + [{"error": "EIO", "partial": 20}, {"partial": 9}]
    elif call == "fsync":
        errors = [{"error": "EIO", "dialect": dialect} for dialect in ("ext4", "false-failure")]
        # A file that falls back when a sync fails takes along what a batch had not synced yet: nobody can keep that through a kill.
        errors += [{"error": "EIO", "dialect": "btrfs"}] if durability == "always" else []
    return errors + [{"exception": "KeyboardInterrupt", "when": when} for when in ("before", "after")]


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["always", "batch"])
@pytest.mark.parametrize("call", CALLS)
def test_one_fault_at_every_call_then_every_crash(call: str, durability: Durability):
    fired = 0
    before = (
        (DiskFault("fsync", nth=3, error="EIO"),) if call == "unlink" else ()
    )  # the mark is removed only after a failed sync
    for mode in _modes(call, durability):
        for nth in range(1, 40 if durability == "always" else 12):
            driven = drive(*before, DiskFault(call, nth=nth, **mode), durability=durability)  # type: ignore[arg-type]
            if driven.fs.faults.fired == len(before):
                break
            fired += 1
            assert driven.closed, mode
            assert loaded(bytes_of(driven.fs)).messages == driven.histories[-1], (mode, nth)
            assert _broken(driven, durability) == [], (mode, nth)
    assert fired


@pytest.mark.parametrize("pair", [(2, 3), (3, 5), (4, 4)])
def test_two_write_errors_near_each_other(pair: tuple[int, int]):
    driven = drive(*(DiskFault("write", nth=n, error="ENOSPC", partial=5) for n in pair))
    assert loaded(bytes_of(driven.fs)).messages == driven.histories[-1]
    assert _broken(driven) == []
