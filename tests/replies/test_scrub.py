"""A secret is found however it is written, and a text without one is not touched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.memory.secrets import find_secret
from pseudoclaude.messages import Usage
from simulator.replies.scrub import REDACTED, TextScrubber
from simulator.replies.wire_events import Numbered, stream_events
from tests.replies.build import DIALECTS, spec

KNOWN = 'pa"ss\\wörd\n🙂 one'
"""A known secret that JSON and a URL spell differently."""
SHAPES = [
    "sk-ant-api03-" + "Zq9" * 8,
    "hf_" + "abcdefghijklm" * 2,
    "xoxb-123456789012-abcdefghijkl",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "glpat-" + "abcdefghijklmnopqrst",
    "github_pat_" + "abcdefghijklmnopqrstuv",
    "ASIA" + "ABCDEFGHIJKLMNOP",
    "sk_live_" + "abcdefghijklmnop1234",
    "postgres://user:pa55word@host/db",
    "Authorization: token abcdef0123456789abcd",
    "x-api-key: abcdefghijk",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/IBAAKCAQEA\nq9Zx==\n-----END RSA PRIVATE KEY-----",
]
SCRUB = TextScrubber([KNOWN])


def strings(value: Any) -> list[str]:
    """Every string of a JSON value, and of the JSON that a string holds."""
    if isinstance(value, dict):
        return [text for pair in value.items() for item in pair for text in strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    if not isinstance(value, str):
        return []
    try:
        inner = json.loads(value)
    except ValueError:
        return [value]
    return [value, *(strings(inner) if not isinstance(inner, str | int | float) else [])]


@pytest.mark.parametrize("secret", [KNOWN, *SHAPES])
@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_secret_in_json_at_any_depth(secret: str, depth: int, ascii_only: bool) -> None:
    text = f"before {secret} after"
    for _ in range(depth):
        text = json.dumps({"note": text, "n": 1.50, "also": [text]}, ensure_ascii=ascii_only)
    kept = SCRUB.body(text)
    for _ in range(depth):
        kept = json.loads(kept)["note"]
    assert kept.startswith("before REDACTED")
    assert secret not in kept
    assert find_secret(kept) is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"password": "hunter2hunter2"}', '{"password": "REDACTED"}'),
        (r'{"a": "{\"password\": \"hunter2hunter2\"}"}', r'{"a": "{\"password\": \"REDACTED\"}"}'),
        (r"Sent {\"password\": \"hunter2hunter2\"} off", r"Sent {\"password\": \"REDACTED\"} off"),
        ('{"password": 12345678, "n": 12345678}', '{"password": 0, "n": 12345678}'),
        ('{"secret": ["one", "two"], "b": "two"}', '{"secret": ["REDACTED", "REDACTED"], "b": "two"}'),
        ('{"password": "first", "password": "second"}', '{"password": "REDACTED", "password": "REDACTED"}'),
        ('{"db_token": "a1b2c3d4e5"}', '{"db_token": "REDACTED"}'),
        ('{"path": "a.md", "password": "hunter2hun', '{"path": "a.md", "password": "REDACTED'),
        ('{"password": {"type": "string", "description": "Yours"}}', None),
        ('{"password": "", "token": null, "max_tokens": 8192}', None),
        ('{"x" : [1.50, 1e5, "\\u00fc"],\n "x": "[1] see \\"below\\""}', None),
        ('[note] he said "so": {', None),
    ],
)
def test_what_stands_under_a_name_like_password(text: str, kept: str | None) -> None:
    assert SCRUB.body(text) == (text if kept is None else kept)


@settings(derandomize=True, deadline=None, max_examples=60, database=None)
@given(
    text=st.text(max_size=60),
    secret=st.sampled_from([KNOWN, *SHAPES[:8]]),
    again=st.booleans(),
)
def test_a_clean_text_stays_and_a_planted_one_is_clean_after(text: str, secret: str, again: bool) -> None:
    body = json.dumps({"content": text}, ensure_ascii=again)
    assert json.loads(SCRUB.body(body)) == {"content": SCRUB.text(text)}
    planted = SCRUB.body(json.dumps({"content": f"{text} {secret} {text}"}, ensure_ascii=again))
    assert secret not in json.loads(planted)["content"]


# --- streams ---------------------------------------------------------------------------------------------------


def sse(events: list[Any]) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def delta(dialect: str, piece: str, kind: str) -> dict[str, Any]:
    if dialect == "anthropic":
        inner = {"type": "text_delta", "text": piece}
        inner = inner if kind == "text" else {"type": "input_json_delta", "partial_json": piece}
        return {"type": "content_block_delta", "index": 1, "delta": inner}
    if dialect == "openai-chat":
        call = {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
        return {"choices": [{"index": 0, "delta": {"content": piece} if kind == "text" else call}]}
    name = "output_text" if kind == "text" else "function_call_arguments"
    return {"type": f"response.{name}.delta", "item_id": "i", "output_index": 0, "delta": piece}


def piece_of(dialect: str, event: dict[str, Any], kind: str) -> str:
    if dialect == "anthropic":
        return str(event["delta"]["text" if kind == "text" else "partial_json"])
    if dialect == "openai-chat":
        inner = event["choices"][0]["delta"]
        return str(inner["content"] if kind == "text" else inner["tool_calls"][0]["function"]["arguments"])
    return str(event["delta"])


def events_of(body: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["text", "arguments"])
@pytest.mark.parametrize("secret", [KNOWN, SHAPES[0], "hunter2hunter2"])
def test_a_secret_cut_in_any_way_is_out_of_the_joined_text(dialect: str, kind: str, secret: str) -> None:
    whole = json.dumps({"path": "a", "password": secret}) if kind == "arguments" else f"A key {secret} é"
    if kind == "text" and secret == "hunter2hunter2":
        whole = f"password: {secret}"
    clean = SCRUB.text(whole)
    assert REDACTED in clean
    cuts = [[whole[:at], whole[at:]] for at in range(len(whole) + 1)]
    for size in (1, 2, 3, 5, 12):
        cuts.append([whole[at : at + size] for at in range(0, len(whole), size)])
    for pieces in cuts:
        kept = SCRUB.body(sse([{"type": "ping"}, *(delta(dialect, piece, kind) for piece in pieces)]))
        events = events_of(kept)
        assert len(events) == len(pieces) + 1
        assert "".join(piece_of(dialect, event, kind) for event in events[1:]) == clean


def test_two_texts_that_take_turns_are_two_texts() -> None:
    key = SHAPES[0]
    one, two = delta("anthropic", key[:9], "text"), {**delta("anthropic", "other ", "text"), "index": 2}
    three, four = delta("anthropic", key[9:], "text"), {**delta("anthropic", "words", "text"), "index": 2}
    texts = [piece_of("anthropic", event, "text") for event in events_of(SCRUB.body(sse([one, two, three, four])))]
    assert (texts[0] + texts[2], texts[1], texts[3]) == (REDACTED, "other ", "words")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_without_a_secret_keeps_its_bytes_and_one_with_has_it_nowhere(dialect: str) -> None:
    def stream(text: str) -> str:
        call = {"id": "c", "name": "n", "arguments": {"note": text, "nested": json.dumps({"p": text})}}
        entry = spec({"text": text, "tool_calls": [call]}).script[0]
        return "".join(e.encode().decode() for e in stream_events(dialect, Numbered(entry, 1, "m", Usage(1, 1))))

    clean = stream("risk-free 世界 🙂\u2028 text")
    assert SCRUB.body(clean) == clean
    assert SCRUB.body(clean.replace("\n", "\r\n")) == clean.replace("\n", "\r\n")
    for secret in (KNOWN, SHAPES[1]):
        kept = SCRUB.body(stream(f"say {secret} twice"))
        found = strings(events_of(kept))
        assert "say" in "".join(found)
        assert not [text for text in found if secret in text or find_secret(text)]


def test_lines_that_are_no_data_and_data_that_is_no_json_are_scrubbed_as_text() -> None:
    body = f": {SHAPES[0]}\nevent: x\ndata: {{broken {SHAPES[1]}\n\ndata: [DONE]\n\n"
    assert SCRUB.body(body) == ": REDACTED\nevent: x\ndata: {broken REDACTED\n\ndata: [DONE]\n\n"


def test_half_a_character_in_a_scrubbed_stream_can_be_written() -> None:
    kept = SCRUB.body(sse([delta("openai-chat", piece, "text") for piece in (SHAPES[0], " \ud83d", "\ude42")]))
    assert kept.encode()
    joined = "".join(piece_of("openai-chat", event, "text") for event in events_of(kept))
    assert joined.encode("utf-16", "surrogatepass").decode("utf-16") == "REDACTED 🙂"
