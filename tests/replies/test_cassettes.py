"""Cassettes as values, and the transport that answers from them."""

from __future__ import annotations

import base64
import gzip
import threading
from pathlib import Path

import pytest

from pseudoclaude.errors import ProviderUnavailable
from pseudoclaude.messages import Message
from pseudoclaude.ports import Request
from simulator.replies.cassettes import Cassette, load_cassette
from simulator.replies.differences import all_differences, first_difference, likeness
from simulator.replies.errors import CassetteMiss, CassetteUnreadable
from simulator.replies.replay import CassetteProvider, cassette_provider
from simulator.replies.script import StreamFault
from simulator.replies.transport import split_events
from tests.replies.build import HELLO, provider, recorded, sse

START = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}
TEXT = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
STOP = {"type": "message_stop"}


def _says(text: str) -> bytes:
    return sse(
        START,
        TEXT,
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        END,
        STOP,
    )


def _asks(text: str) -> Request:
    return Request((Message("user", text),))


def _cassette(*texts: str) -> Cassette:
    """One interaction a text: asked ``text``, it says ``text!``."""
    made = []
    for text in texts:
        one = recorded("anthropic", _says(f"{text}!"))
        made.append(one._replace(body={**one.body, "messages": [{"role": "user", "content": text}]}))
    return Cassette("loop.yaml", tuple(made))


# --- files -----------------------------------------------------------------------------------------------------

ONE = """
interactions:
- request: {body: '{"model": "m", "max_tokens": 8192, "messages": [{"role": "user", "content": "Hello"}]}', headers: {}, method: POST,
    uri: 'https://api.example/v1/messages'}
  response:
    body: {string: '{"model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}'}
    headers: {Content-Type: [application/json], Content-Length: ['7'], Transfer-Encoding: [chunked], Content-Encoding: [gzip]}
    status: {code: 200, message: OK}
version: 1
"""


def test_a_file_replays_with_headers_that_are_not_true_of_the_body_dropped(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(ONE)
    replay = cassette_provider(file)
    assert (replay.dialect, replay.model) == ("anthropic", "m")
    assert replay.complete(HELLO).message.content == "Hi"
    assert replay.remaining == ()


def test_a_compressed_body_is_read(tmp_path: Path) -> None:
    raw = gzip.compress(b'{"model":"m","content":[],"stop_reason":"end_turn","usage":null}', mtime=0)
    start, end = ONE.index("body: {string"), ONE.index("    headers: {Content-Type")
    binary = "!!binary " + base64.b64encode(raw).decode()
    file = tmp_path / "one.yaml"
    file.write_text(ONE[:start] + f"body: {{string: {binary}}}\n" + ONE[end:])
    assert cassette_provider(file).complete(HELLO).message == Message("assistant", "", stop="end_turn")


UNUSABLE = {
    "empty": (b"", "is empty"),
    "only spaces": (b" \n ", "is empty"),
    "compressed": (gzip.compress(ONE.encode()), "is compressed"),
    "not YAML": (b"interactions: [", "not what vcrpy writes"),
    "not UTF-8": (b"\xff\xfe\x00", "not what vcrpy writes"),
    "a list": (b"- 1\n", "not what vcrpy writes"),
    "no interactions": (b"interactions: []\nversion: 1\n", "no interactions"),
    "another shape": (b"interactions: [{request: {}}]\n", "not what vcrpy writes"),
    "a dangerous tag": (b"interactions: !!python/object/apply:os.system ['true']\n", "not what vcrpy writes"),
    "no status": (ONE.replace("status: {code: 200, message: OK}", "state: 1").encode(), "cannot be used"),
}


@pytest.mark.parametrize(("data", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_file_that_cannot_be_used_is_named_in_one_line(tmp_path: Path, data: bytes, reason: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(data)
    with pytest.raises(CassetteUnreadable) as caught:
        load_cassette(file)
    assert reason in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_no_new_cassette(tmp_path: Path) -> None:
    with pytest.raises(CassetteUnreadable, match="No such file"):
        cassette_provider(tmp_path / "none.yaml")
    assert list(tmp_path.iterdir()) == []


def test_a_cassette_of_another_api_is_refused() -> None:
    with pytest.raises(CassetteUnreadable, match="asked for is openai-chat"):
        CassetteProvider(_cassette("a"), dialect="openai-chat")


# --- matching --------------------------------------------------------------------------------------------------


def test_each_recording_answers_once_in_order() -> None:
    replay = CassetteProvider(_cassette("a", "b", "a"), match="projection")
    assert [replay.complete(_asks(text)).message.content for text in ("b", "a")] == ["b!", "a!"]
    assert len(replay.remaining) == 1
    replay.complete(_asks("a"))
    with pytest.raises(CassetteMiss, match="already answered"):
        replay.complete(_asks("a"))


def test_strict_wants_the_whole_body_and_projection_the_conversation() -> None:
    with pytest.raises(CassetteMiss, match=r"first difference: body.max_tokens: recorded nothing, sent 8192"):
        CassetteProvider(_cassette("a")).complete(_asks("a"))
    replay = CassetteProvider(_cassette("a"), match="projection")
    assert replay.complete(_asks("a")).message.content == "a!"
    assert replay.differences == ("request 0: max_tokens: recorded nothing, sent 8192",)


def test_a_miss_names_the_nearest_recording_and_the_first_difference() -> None:
    with pytest.raises(CassetteMiss) as caught:
        CassetteProvider(_cassette("one", "two words", "three"), match="projection").complete(_asks("two worms"))
    assert "loop.yaml" in str(caught.value)
    assert "conversation[0][1]: recorded 'one', sent 'two worms'" in str(caught.value)
    assert "Nothing" not in str(caught.value.__cause__)


def test_two_threads_with_two_cassettes_do_not_meet() -> None:
    heard: dict[str, list[str]] = {"a": [], "b": []}

    def run(name: str) -> None:
        replay = CassetteProvider(_cassette(*[name] * 20), match="projection")
        heard[name] += [replay.complete(_asks(name)).message.content for _ in range(20)]

    threads = [threading.Thread(target=run, args=(name,)) for name in heard]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {"a": ["a!"] * 20, "b": ["b!"] * 20}


# --- streams ---------------------------------------------------------------------------------------------------


def test_events_arrive_one_by_one() -> None:
    body = _says("Hi")
    assert len(split_events(body)) == 5
    assert b"".join(split_events(body)) == body


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\n\n\n\n"])
def test_events_end_with_a_blank_line_of_any_kind(end: str) -> None:
    body = f"data: 1{end}data: 2{end}data: 3".encode()
    assert [event.split()[1] for event in split_events(body)] == [b"1", b"2", b"3"]


def test_only_the_chosen_request_is_cut() -> None:
    replay = CassetteProvider(_cassette("a", "b"), match="projection", fault=StreamFault(1, request=1))
    assert replay.complete(_asks("a")).message.content == "a!"
    with pytest.raises(ProviderUnavailable):
        replay.complete(_asks("b"))


def test_an_event_that_comes_twice_is_read_twice() -> None:
    replay = CassetteProvider(_cassette("a"), match="projection", fault=StreamFault(3, how="repeat"))
    assert replay.complete(_asks("a")).message.content == "a!a!"


def test_events_in_the_wrong_order_arrive_so() -> None:
    replay = CassetteProvider(_cassette("a"), match="projection", fault=StreamFault(1, how="swap"))
    with pytest.raises(ProviderUnavailable, match="a delta for block 0, which was never started"):
        replay.complete(_asks("a"))


def test_a_stream_of_many_lines_reads_as_one_event_each() -> None:
    text = "x" * 5_000
    assert provider("anthropic", _says(text)).complete(HELLO).message.content == text


# --- differences -----------------------------------------------------------------------------------------------


def test_differences_name_their_paths_in_reading_order() -> None:
    recorded_value, sent = {"a": [1, {"b": 2}], "c": True}, {"a": [1, {"b": 3}, 4], "c": 1}
    assert all_differences(recorded_value, sent, "body") == [
        "body.a[1].b: recorded 2, sent 3",
        "body.a[2]: recorded nothing, sent 4",
        "body.c: recorded True, sent 1",
    ]
    assert first_difference(recorded_value, recorded_value) == ""


def test_likeness_is_the_share_of_equal_leaves() -> None:
    assert likeness({"a": 1, "b": 2}, {"a": 1, "b": 2}) == 1.0
    assert likeness({"a": 1, "b": 2}, {"a": 1, "b": 3}) == 0.5
    assert likeness({"a": 1}, {"b": 1}) == 0.0
