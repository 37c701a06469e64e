"""Appending: what a caller is told, and what is there afterwards, whatever the disk or another process does."""

import posixpath

import pytest

from pseudoclaude.conversation import Conversation
from pseudoclaude.errors import NotDurable, SessionChanged, SessionClosed, SessionUnreadable, UnsupportedVersion
from pseudoclaude.session import SessionWriter, load
from pseudoclaude.session.records import encode_header
from pseudoclaude.settings import Durability
from simulator.disk import OpLog, SimFileSystem
from simulator.disk.faults import DiskFault
from tests.session.build import (
    FOLDER,
    HEADER,
    LOG,
    TS,
    assistant,
    bytes_of,
    calls,
    disk_of,
    line,
    loaded,
    log_of,
    machine,
    opened,
    replaced,
    result,
    resumed,
    user,
)

MARK = posixpath.join(FOLDER, "unsynced")


def fail(call: str, nth: int, error: str = "EIO", **more: object) -> DiskFault:
    return DiskFault(call, nth=nth, error=error, path_suffix="conversation.jsonl", **more)  # type: ignore[arg-type]


def grow(fs: SimFileSystem, data: bytes) -> None:
    fd = fs.open(LOG, "append")
    fs.write(fd, data)
    fs.close(fd)


# --- what is written -------------------------------------------------------------------------------------------


def test_the_first_append_writes_the_header_and_the_record_and_opening_writes_nothing():
    fs = machine(None)
    writer = opened(fs)
    assert fs.peek(LOG) is None
    writer.append_message(user("a"))
    assert bytes_of(fs) == encode_header("s", TS, "/project") + line(user("a"), 1)
    writer.close()


def test_numbers_go_on_where_the_log_ends_unknown_types_included():
    fs = machine(HEADER + line(user("a"), 1) + b'{"type":"future","n":2}\n')
    resumed(fs, assistant("b"))
    assert bytes_of(fs).endswith(line(assistant("b"), 3))


def test_a_replace_is_one_record_with_the_whole_snapshot():
    fs = machine(log_of(user("a")))
    with opened(fs) as writer:
        writer.append_replace("compact", [user("s"), assistant("é")])
    assert bytes_of(fs) == log_of(user("a")) + replaced([user("s"), assistant("é")], 2)
    assert loaded(bytes_of(fs)).messages == (user("s"), assistant("é"))


def test_the_model_is_written_when_it_changes_and_with_every_replace():
    fs = machine(None)
    with opened(fs) as writer:
        writer.model = "m\ud8001"
        writer.append_message(user("a"))
        writer.append_message(assistant("b"))
        writer.append_replace("compact", [user("s")])
    assert bytes_of(fs).count('"model":"m\ufffd1"'.encode()) == 2
    assert loaded(bytes_of(fs)).model == "m\ufffd1"


def test_batch_lines_say_what_was_durable_when_they_were_written():
    fs = machine(None)
    with opened(fs, durability="batch") as writer:
        writer.append_message(user("a"))
        writer.append_message(assistant("b"))
        writer.end_turn()
        writer.append_message(user("c"))
    said = [raw.rpartition(b'"s":')[2][:1] for raw in bytes_of(fs).splitlines()[1:]]
    assert said == [b"0", b"0", b"2"]


@pytest.mark.parametrize(("durability", "syncs"), [("always", 4), ("batch", 2), ("off", 0)])
def test_how_often_a_turn_of_two_messages_is_synced(durability: Durability, syncs: int):
    log = OpLog()
    fs = SimFileSystem(disk_of(log_of(user("a"))), log=log)
    with opened(fs, durability=durability) as writer:
        writer.append_message(assistant("b"))
        writer.append_message(user("c"))
        writer.append_message(assistant("d"))
        writer.end_turn()
    mine = [op for op in log.ops if op.kind == "fsync" and "logfile" in op.site]
    assert len(mine) == syncs


# --- recovery --------------------------------------------------------------------------------------------------


def test_a_recover_record_is_written_before_the_first_append_and_only_if_repair_changed_something():
    data = log_of(user("a"), calls("c"))
    fs = machine(data)
    resumed(fs)
    assert bytes_of(fs) == data
    resumed(fs, user("b"))
    assert bytes_of(fs)[len(data) :].startswith(b'{"type":"replace","n":3,"ts":1764547200,"reason":"recover"')
    assert b'"dangling":"trim"' in bytes_of(fs)
    fs = machine(HEADER + line(user("a"), 1) + b"garbage\n")
    resumed(fs, assistant("b"))
    assert b"recover" not in bytes_of(fs)


def test_a_trimmed_call_does_not_come_back_after_the_next_message_and_a_second_load():
    fs = machine(log_of(user("a"), calls("c1", text="thinking")))
    first = resumed(fs, user("b"))
    assert [call.id for call in first.truncated] == ["c1"]
    second = resumed(fs, assistant("d"))
    assert second.truncated == ()
    assert second.messages[-1] == user("b")
    assert not any(message.tool_calls for message in loaded(bytes_of(fs)).messages)
    assert loaded(bytes_of(fs)).messages[:2] == first.messages


class OneBadRead(SimFileSystem):
    """A disk that gives wrong bytes for the ``nth`` reading of the log, and right ones before and after."""

    reads = 0
    nth = 0

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        data = super().pread(fd, count, offset)
        self.reads += b'"call_id"' in data
        return data.replace(b'"call_id"', b'"call_iX"') if self.reads == self.nth else data


@pytest.mark.parametrize("nth", [1, 2])
def test_one_bad_read_is_not_made_permanent(nth: int):
    whole = log_of(user("a"), calls("c"), result("c", "r"), *([calls("d")] if nth == 2 else []))
    fs = OneBadRead(disk_of(whole))
    fs.nth = nth
    writer = opened(fs)
    with pytest.raises(SessionUnreadable, match="two readings"):
        writer.append_message(user("n"))
    assert bytes_of(fs) == whole
    writer.abandon()
    assert resumed(fs).messages[:3] == (user("a"), calls("c"), result("c", "r"))


def test_a_read_error_is_never_a_missing_session():
    fs = machine(log_of(user("a")), DiskFault("pread", nth=1, error="EIO"), DiskFault("stat", nth=9, error="EACCES"))
    with pytest.raises(SessionUnreadable, match="not missing"):
        load(FOLDER, fs=fs)


def test_the_confirmation_survives_a_header_that_was_written_before_the_disk_was_full():
    data = line(user("a"), 1) + line(calls("c"), 2)
    fs = machine(data, *(fail("write", n, "ENOSPC") for n in (2, 3)))
    with opened(fs) as writer:
        with pytest.raises(NotDurable):
            writer.append_message(user("b"))
        writer.append_message(user("c"))
    assert loaded(bytes_of(fs)).messages == (user("a"), user("b"), user("c"))


# --- another file ----------------------------------------------------------------------------------------------


def test_a_log_that_grew_by_itself_is_refused_before_anything_is_written():
    fs = machine(log_of(user("a")))
    writer = opened(fs)
    grow(fs, b"x\n")
    before = bytes_of(fs)
    with pytest.raises(SessionChanged, match="bytes"):
        writer.append_message(user("b"))
    assert bytes_of(fs) == before
    writer.abandon()


def swap(fs: SimFileSystem) -> bytes:
    """Put a copy of the log in its place."""
    data = bytes_of(fs)
    fs.rename(LOG, "/s/old")
    fs.close(fs.open(LOG, "create"))
    grow(fs, data)
    return data


def test_another_file_under_the_same_name_is_refused_before_anything_is_written():
    fs = machine(log_of(user("a")))
    writer = opened(fs)
    before = swap(fs)
    with pytest.raises(SessionChanged, match="another file"):
        writer.append_message(user("b"))
    assert bytes_of(fs) == before
    writer.abandon()


def test_the_history_is_not_written_again_into_another_file_after_a_failed_sync():
    fs = machine(log_of(user("a")), *(fail("fsync", n) for n in (2, 3)))
    writer = opened(fs)
    with pytest.raises(NotDurable):
        writer.append_message(assistant("b"))
    before = swap(fs)
    with pytest.raises(SessionChanged, match="another file"):
        writer.append_message(user("c"))
    assert bytes_of(fs) == before
    assert fs.peek(MARK) == b""
    writer.abandon()


def test_a_log_that_is_gone_is_refused_and_not_made_again():
    fs = machine(log_of(user("a")))
    writer = opened(fs)
    fs.unlink(LOG)
    with pytest.raises(SessionChanged, match="gone"):
        writer.append_message(user("b"))
    assert fs.peek(LOG) is None
    writer.abandon()


def test_a_newer_format_is_not_opened_and_not_a_byte_of_the_log_changes():
    data = b'{"type":"session","version":2,"id":"s"}\n' + line(user("a"), 1)
    fs = machine(data)
    with pytest.raises(UnsupportedVersion, match="version 2"):
        opened(fs)
    assert bytes_of(fs) == data
    assert fs.open_files == 0


def test_a_closed_writer_refuses_and_closing_twice_is_nothing():
    fs = machine(None)
    writer = opened(fs)
    writer.close()
    writer.close()
    with pytest.raises(SessionClosed):
        writer.append_message(user("a"))
    assert fs.open_files == 0


# --- failing disks ---------------------------------------------------------------------------------------------


def test_records_that_could_not_be_written_are_written_in_order_before_anything_newer():
    fs = machine(log_of(user("a")), *(fail("write", n, "ENOSPC", partial=10) for n in range(1, 5)))
    with opened(fs) as writer:
        for text in "bc":
            with pytest.raises(NotDurable, match="ENOSPC"):
                writer.append_message(user(text))
        assert writer.unsaved == 2
        writer.append_message(user("d"))
        assert writer.unsaved == 0
    got = loaded(bytes_of(fs))
    assert got.messages == tuple(map(user, "abcd"))
    assert got.unsettled == ()


def test_close_raises_while_something_is_unsaved_and_can_be_tried_again():
    fs = machine(log_of(user("a")), fail("write", 1, "ENOSPC", sticky=True))
    writer = opened(fs)
    with pytest.raises(NotDurable):
        writer.append_message(user("b"))
    with pytest.raises(NotDurable):
        writer.close()
    fs.faults.clear()
    writer.close()
    assert loaded(bytes_of(fs)).messages == (user("a"), user("b"))


def test_after_a_failed_sync_the_whole_history_is_written_again_through_a_new_descriptor():
    fs = machine(log_of(user("a")), fail("fsync", 2))
    with opened(fs) as writer:
        writer.append_message(assistant("b"))
        assert fs.peek(MARK) is None
    recover = bytes_of(fs).splitlines()[-1]
    assert recover.startswith(b'{"type":"replace","n":3,')
    assert b'"reason":"recover"' in recover
    assert loaded(bytes_of(fs)).messages == (user("a"), assistant("b"))


def test_while_syncs_fail_the_mark_stays_and_the_next_process_writes_the_history_again_when_it_opens():
    fs = machine(log_of(user("a")), *(fail("fsync", n) for n in (2, 3)))
    writer = opened(fs)
    with pytest.raises(NotDurable, match="synced") as caught:
        writer.append_message(assistant("b"))
    assert caught.value.unsaved == writer.unsaved == 1
    assert fs.peek(MARK) == b""
    fs.kill()
    before = bytes_of(fs)
    with opened(fs) as second:
        assert fs.peek(MARK) is None
        assert bytes_of(fs).startswith(before)
        assert b'"reason":"recover"' in bytes_of(fs)[len(before) :]
        assert second.loaded.messages == (user("a"), assistant("b"))


def test_what_the_page_cache_drops_after_a_failed_sync_is_written_again():
    fs = machine(log_of(user("a")), *(fail("fsync", n) for n in (2, 3)))
    writer = opened(fs)
    with pytest.raises(NotDurable):
        writer.append_message(assistant("b"))
    fs.evict()
    assert loaded(bytes_of(fs)).messages == (user("a"),)
    writer.append_message(user("c"))
    writer.close()
    assert loaded(bytes_of(fs)).messages == (user("a"), assistant("b"), user("c"))
    assert loaded(bytes_of(fs)).unsettled == ()


def test_with_durability_off_the_mark_of_a_failed_sync_is_honoured_too():
    fs = machine(log_of(user("a")))
    fs.close(fs.open(MARK, "create"))
    opened(fs, durability="off").close()
    assert fs.peek(MARK) is None
    assert b"recover" in bytes_of(fs)


def test_closing_right_after_the_folder_could_not_be_synced_tries_again():
    log = OpLog()
    fs = machine(None, log=log)
    writer = opened(fs)
    fs.faults = machine(None, DiskFault("fsync_dir", nth=1, error="EIO")).faults
    with pytest.raises(NotDurable) as caught:
        writer.append_message(user("a"))
    assert caught.value.unsaved == 1
    writer.close()
    synced = [op.kind for op in log.ops if op.kind in ("fsync_dir", "create")]
    assert synced[-1] == "fsync_dir"


def test_a_file_made_by_a_call_that_was_cut_off_still_gets_its_name_synced():
    log = OpLog()
    fs = machine(None, log=log)
    writer = opened(fs)
    cut = DiskFault("open", nth=2, exception="KeyboardInterrupt", when="after", path_suffix="conversation.jsonl")
    fs.faults = machine(None, cut).faults
    with pytest.raises(KeyboardInterrupt):
        writer.append_message(user("a"))
    writer.append_message(user("b"))
    kinds_of_ops = [op.kind for op in log.ops]
    assert kinds_of_ops.index("fsync_dir", kinds_of_ops.index("write", kinds_of_ops.index("create") + 1)) > 0
    assert loaded(bytes_of(fs)).messages == (user("a"), user("b"))
    writer.close()


def test_a_failing_close_of_the_log_still_gives_the_lock_back():
    fs = machine(log_of(user("a")), DiskFault("close", nth=2, error="EIO", path_suffix="conversation.jsonl"))
    writer = opened(fs)
    with pytest.raises(NotDurable):
        writer.close()
    assert fs.open_files == 0
    opened(fs).close()


def test_a_hole_in_an_unsynced_batch_cuts_the_history_there_and_the_next_append_records_it():
    batch = [line(user(t), n, synced=1) for n, t in enumerate("abcd", 1)]
    fs = machine(HEADER + batch[0] + batch[1] + bytes(len(batch[2])) + batch[3])
    first = resumed(fs, user("e"))
    assert first.messages == (user("a"), user("b"))
    assert first.cut
    assert first.state == "repaired"
    again = loaded(bytes_of(fs))
    assert again.messages == (user("a"), user("b"), user("e"))
    assert again.unsettled == ()


def test_the_writer_is_a_subscriber_of_a_conversation():
    fs = machine(None)
    with opened(fs) as writer:
        assert isinstance(writer, SessionWriter)
        conversation = Conversation(hooks=writer.hooks())
        conversation.add_user("a")
        conversation.replace_messages("compact", [user("s")])
    assert loaded(bytes_of(fs)).messages == (user("s"),)
    assert len(bytes_of(fs).splitlines()) == 3


def test_a_folder_named_like_the_mark_of_a_failed_sync_says_nothing(tmp_path):
    folder = tmp_path / "s"
    with SessionWriter.open(folder) as writer:
        writer.append_message(user("a"))
    size = (folder / "conversation.jsonl").stat().st_size
    (folder / "unsynced").mkdir()
    for _ in range(3):
        SessionWriter.open(folder).close()
    assert (folder / "conversation.jsonl").stat().st_size == size
    assert load(folder).messages == (user("a"),)


def test_a_folder_named_like_the_lock_is_named_in_the_error(tmp_path):
    folder = tmp_path / "s"
    (folder / "lock").mkdir(parents=True)
    with pytest.raises(SessionUnreadable, match="lock"):
        SessionWriter.open(folder)
