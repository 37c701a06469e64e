"""Must show: every recording replays through our adapters, and text, calls, usage, stop and error class equal the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simulator.replies.cassettes import Recorded
from tests.providers import corpus
from tests.providers.corpus import Case
from tests.providers.wire_truth import anthropic_blocks

CASES = corpus.cases()


@pytest.mark.parametrize("case", [*CASES, *corpus.fetched_cases()], ids=str)
def test_the_reply_equals_the_wire(case: Case) -> None:
    reason = corpus.skip_reason(case)
    if reason is not None:
        pytest.skip(reason)
    expected, outcome = corpus.expected(case), corpus.replay(case)
    if expected.error == "StreamInterrupted":
        assert (outcome.said.error, outcome.said.text) == (expected.error, expected.text)
        assert outcome.heard == expected.text
        return
    assert outcome.said == expected
    assert outcome.heard == expected.text


@pytest.mark.parametrize("case", [case for case in CASES if corpus.skip_reason(case) is None], ids=str)
def test_native_is_what_came_and_only_where_something_would_be_lost(case: Case) -> None:
    reply, received = corpus.replay(case).reply, corpus.recorded(case)
    if reply is None:
        return
    native, blocks = reply.message.native, _received_blocks(received)
    lossless = {_kind(block) for block in blocks} <= {"text", "tool_use", "message", "function_call"}
    if native is None:
        assert lossless
    elif received.dialect == "openai-chat":
        assert reply.message.stop == "refusal" or "function_call" in native.payload
    else:
        assert json.loads(json.dumps(native.payload)) == blocks
        assert (native.provider, native.api) == (
            ("anthropic", "messages") if received.dialect == "anthropic" else ("openai", "responses")
        )


def _received_blocks(received: Recorded) -> list[Any]:
    if received.dialect == "openai-chat":
        return []
    if received.streams and received.dialect == "anthropic":
        return anthropic_blocks(received)
    if received.streams:
        last = [line for line in received.reply.decode().splitlines() if line.startswith("data:")][-1]
        return list(json.loads(last[5:])["response"]["output"])
    body = json.loads(received.reply)
    return list(body["content"] if received.dialect == "anthropic" else body["output"])


def _kind(block: Any) -> str:
    return str(block["type"])


def test_the_recordings_are_there_in_full() -> None:
    if not CASES:
        pytest.skip("needs the shared folder")
    judged = [case for case in CASES if corpus.skip_reason(case) is None]
    assert (len(CASES), len(judged)) == (185, 180)
