import hashlib
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.compact.spill import SpillFolder, file_name
from pseudoclaude.errors import SpillFailed
from pseudoclaude.messages import Spill
from pseudoclaude.realworld import RealFileSystem
from simulator.disk import DiskFault, FaultPlan, OpLog, SimFileSystem

HOSTILE_IDS = [
    "../../etc/x", "a/b", "C:\\x", "CON", "", ".", "..", "x" * 4_000, "call_1", "CALL_1", "call_1 ", "é", "e\u0301", "a\x00b",
    "toolu_0123456789abcdef_1", "toolu_0123456789abcdef_2",
]  # fmt: skip


def test_every_id_gets_its_own_file_inside_the_folder(tmp_path):
    folder = SpillFolder(RealFileSystem(), str(tmp_path))
    spills = [folder.store(call_id, "the same text") for call_id in HOSTILE_IDS]
    names = [os.path.basename(spill.path) for spill in spills]
    assert len({name.casefold() for name in names}) == len(HOSTILE_IDS)
    assert sorted(os.listdir(tmp_path)) == ["tool-results"]
    assert sorted(os.listdir(tmp_path / "tool-results")) == sorted(names)
    assert max(len(name.encode()) for name in names) <= 255


@settings(derandomize=True, deadline=None, max_examples=60, database=None)
@given(call_id=st.text(max_size=300), content=st.text(max_size=300))
def test_bytes_come_back_exactly_for_any_id_and_text(tmp_path_factory, call_id, content):
    call_id, content = (text.encode("utf-8", "replace").decode() for text in (call_id, content))
    root = tmp_path_factory.getbasetemp() / "any-id"
    root.mkdir(exist_ok=True)
    spill = SpillFolder(RealFileSystem(), str(root), sync=False).store(call_id, content)
    data = (root / spill.path).read_bytes()
    assert data == content.encode()
    assert (spill.bytes, spill.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert (root / spill.path).resolve().parent == (root / "tool-results").resolve()


def test_a_reused_id_with_other_content_gets_another_file(tmp_path):
    folder = SpillFolder(RealFileSystem(), str(tmp_path))
    first, second = folder.store("call_0", "x"), folder.store("call_0", "y")
    assert (tmp_path / first.path).read_text() == "x"
    assert (tmp_path / second.path).read_text() == "y"
    assert folder.store("call_0", "x") == first


def test_files_and_folders_are_private(tmp_path):
    before = os.umask(0o022)
    try:
        spill = SpillFolder(RealFileSystem(), str(tmp_path)).store("c", "secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / spill.path).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "tool-results").stat().st_mode) == 0o700


def test_other_content_in_the_place_is_never_overwritten(tmp_path):
    folder = SpillFolder(RealFileSystem(), str(tmp_path))
    place = tmp_path / "tool-results" / file_name("c", hashlib.sha256(b"text").hexdigest())
    place.parent.mkdir()
    for damaged in ("", "tex", "TEXT", "text and more"):
        place.write_text(damaged)
        spill = folder.store("c", "text")
        assert place.read_text() == damaged
        assert (tmp_path / spill.path).read_text() == "text"


def test_a_link_in_the_place_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("text")
    place = tmp_path / "session" / "tool-results" / file_name("c", hashlib.sha256(b"text").hexdigest())
    place.parent.mkdir(parents=True)
    place.symlink_to(outside)
    (place.parent / "spill.tmp").symlink_to(outside)
    spill = SpillFolder(RealFileSystem(), str(tmp_path / "session")).store("c", "text")
    assert place.is_symlink()
    assert outside.read_text() == "text"
    written = tmp_path / "session" / spill.path
    assert not written.is_symlink()
    assert written.read_text() == "text"


def test_a_link_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "session").mkdir()
    (tmp_path / "session" / "tool-results").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SpillFailed, match="ENOTDIR"):
        SpillFolder(RealFileSystem(), str(tmp_path / "session")).store("c", "text")
    assert os.listdir(tmp_path / "elsewhere") == []


def test_all_names_taken_is_an_error_and_nothing_changes(tmp_path):
    name = file_name("c", hashlib.sha256(b"text").hexdigest())
    (tmp_path / "tool-results").mkdir()
    for variant in ["", *(f"-{number}" for number in range(2, 11))]:
        (tmp_path / "tool-results" / (name.removesuffix(".txt") + variant + ".txt")).write_text("damaged")
    with pytest.raises(SpillFailed, match="EEXIST"):
        SpillFolder(RealFileSystem(), str(tmp_path)).store("c", "text")
    assert len(os.listdir(tmp_path / "tool-results")) == 10


def test_what_a_crash_left_is_swept_once(tmp_path):
    leftover = tmp_path / "tool-results" / "spill.tmp"
    leftover.parent.mkdir()
    leftover.write_text("half")
    folder = SpillFolder(RealFileSystem(), str(tmp_path))
    folder.sweep()
    assert not leftover.exists()


def _disk(faults: tuple[DiskFault, ...] = ()) -> tuple[SimFileSystem, OpLog]:
    log = OpLog()
    fs = SimFileSystem(log=log, faults=FaultPlan(faults))
    fs.mkdir("/s")
    return fs, log


def test_the_order_of_calls_makes_file_name_and_folder_durable():
    fs, log = _disk()
    SpillFolder(fs, "/s").store("c", "text")
    kinds = [op.kind for op in log.ops]
    assert kinds == ["mkdir", "mkdir", "fsync_dir", "create", "write", "fsync", "close", "rename", "fsync_dir"]


def test_a_found_file_is_published_anew_with_its_folder_and_chain_entry():
    fs, log = _disk()
    SpillFolder(fs, "/s").store("c", "text")
    before = len(log.ops)
    SpillFolder(fs, "/s").store("c", "text")
    kinds = [op.kind for op in log.ops[before:]]
    assert kinds.count("fsync") == 1
    assert kinds.count("fsync_dir") == 2
    assert kinds[-2:] == ["rename", "fsync_dir"]


def test_durability_off_syncs_nothing():
    fs, log = _disk()
    SpillFolder(fs, "/s", sync=False).store("c", "text")
    assert not any(op.kind.startswith("fsync") for op in log.ops)


def test_short_writes_are_continued():
    fs, _ = _disk((DiskFault("write", partial=2), DiskFault("write", nth=2, partial=1)))
    spill = SpillFolder(fs, "/s").store("c", "a longer text")
    fd = fs.open(f"/s/{spill.path}", "read")
    assert fs.pread(fd, 100, 0) == b"a longer text"


@pytest.mark.parametrize("error", ["ENOSPC", "EACCES", "EIO"])
@pytest.mark.parametrize("call", ["mkdir", "open", "write", "fsync", "rename", "fsync_dir"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_failed_call_leaves_no_temporary_file_and_the_next_try_works(call, error, nth):
    fs, _ = _disk()
    fs.faults = FaultPlan((DiskFault(call, nth=nth, error=error, partial=2 if call == "write" else 0),))
    folder = SpillFolder(fs, "/s")
    outcomes: list[Spill] = []
    for attempt in range(2):
        failure = _failure_of(folder, f"c{attempt}", outcomes)
        if failure is not None:
            assert error in str(failure)
            assert "still in the history" in str(failure)
            assert "spill.tmp" not in _names(fs)
            outcomes.append(folder.store(f"c{attempt}", "a longer text"))
    assert fs.faults.fired == (0 if (call, nth) == ("mkdir", 2) else 1)
    assert len(_names(fs)) == 2
    for spill in outcomes:
        fd = fs.open(f"/s/{spill.path}", "read")
        assert fs.pread(fd, 100, 0) == b"a longer text"


def _failure_of(folder: SpillFolder, call_id: str, outcomes: list[Spill]) -> SpillFailed | None:
    try:
        outcomes.append(folder.store(call_id, "a longer text"))
    except SpillFailed as failure:
        return failure
    return None


def _names(fs: SimFileSystem) -> list[str]:
    return sorted(fs.listdir("/s/tool-results")) if "tool-results" in fs.listdir("/s") else []
