"""Prints how the real recordings fare, by feature: ``python -m tests.providers.corpus_table [CACHE]``.

``CACHE`` is a folder that ``pseudosim corpus fetch`` has filled; without it, the recordings of the shared folder are judged.

Features are read off each recorded interaction; one interaction counts under each of its features.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from simulator.replies.cassettes import Recorded
from tests.providers import corpus
from tests.providers.corpus import Case
from tests.providers.wire_truth import Truth

MARKS: dict[str, tuple[str, ...]] = {
    "thinking or reasoning": ('"type":"thinking"', '"type":"reasoning"'),
    "redacted thinking": ('"type":"redacted_thinking"',),
    "server tools": ('"type":"server_tool_use"', '"type":"web_search_call"', '"type":"custom_tool_call"'),
    "compaction block": ('"type":"compaction"',),
    "legacy function_call": ('"function_call":{',),
}
REQUEST_MARKS: dict[str, tuple[str, ...]] = {
    "request with tool results": ('"tool_result"', '"role":"tool"', '"function_call_output"'),
    "request with images or documents": ('"type":"image', '"type":"document', '"input_image"', '"input_audio"'),
    "request with thinking": ('"type":"thinking"', '"type":"redacted_thinking"', '"type":"reasoning"'),
    "continues on the server": ('"previous_response_id":"',),
}


class Row:
    """One line of the table."""

    def __init__(self) -> None:
        self.equal = self.different = self.skipped = 0


def features(one: Recorded, expected: Truth | None) -> Iterator[str]:
    """What an interaction shows."""
    yield f"API: {one.dialect or 'other endpoint'}"
    yield "delivery: streaming" if one.streams else "delivery: plain"
    if one.status != 200:
        yield f"status {one.status}"
    reply, request = _squeezed(one.reply), _squeezed(repr(one.body).encode())
    yield from (name for name, marks in MARKS.items() if any(mark in reply for mark in marks))
    yield from (name for name, marks in REQUEST_MARKS.items() if any(mark in request for mark in marks))
    if one.dialect == "openai-chat" and any(mark in reply for mark in ('"index":1,"delta"', '"index":1,"message"')):
        yield "several choices"
    if expected is not None:
        yield from _said(one, expected)


def _said(one: Recorded, expected: Truth) -> Iterator[str]:
    if expected.error is not None:
        yield f"error: {expected.error}"
        if one.status == 200:
            yield "error inside a stream of status 200"
        elif expected.retryable is False and one.status in (429, 500):
            yield "429 or 500 that no retry helps"
        return
    if len(expected.calls) > 1:
        yield "parallel tool calls"
    elif expected.calls:
        yield "single tool call"
    yield f"stop: {expected.stop}"
    if not expected.text and not expected.calls:
        yield "neither text nor calls"
    if not expected.text.isascii():
        yield "text beyond ASCII"
    if expected.usage is not None and any(expected.usage[2:]):
        yield "cache tokens"


def table(cases: Iterable[Case]) -> tuple[dict[str, Row], list[str], list[str]]:
    """Rows by feature, the reasons of what was skipped, and the names of what differs."""
    rows: dict[str, Row] = {}
    reasons: list[str] = []
    different: list[str] = []
    for case in cases:
        reason = corpus.skip_reason(case)
        verdict = "skipped" if reason is not None else "equal" if _equal(case) else "different"
        if reason is not None:
            reasons.append(f"{case}: {reason}")
        if verdict == "different":
            different.append(str(case))
        expected = None if reason is not None else corpus.expected(case)
        for feature in ("all interactions", *features(corpus.recorded(case), expected)):
            row = rows.setdefault(feature, Row())
            setattr(row, verdict, getattr(row, verdict) + 1)
    return rows, reasons, different


def _equal(case: Case) -> bool:
    expected, said = corpus.expected(case), corpus.replay(case).said
    if expected.error == "StreamInterrupted":
        return (said.error, said.text) == (expected.error, expected.text)
    return said == expected


def _squeezed(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace('": ', '":').replace("': ", "':").replace("'", '"')


def main() -> int:
    rows, reasons, different = table(corpus.fetched_cases(sys.argv[1]) if sys.argv[1:] else corpus.cases())
    if not rows:
        sys.stdout.write("There are no recordings; set PSEUDOCLAUDE_SHARED, or name a cache that is filled.\n")
        return 2
    sys.stdout.write(f"{'feature':<42}{'equal':>7}{'differs':>9}{'skipped':>9}\n")
    for feature, row in sorted(rows.items()):
        sys.stdout.write(f"{feature:<42}{row.equal:>7}{row.different:>9}{row.skipped:>9}\n")
    for line in [*(f"skipped  {reason}" for reason in reasons), *(f"DIFFERS  {name}" for name in different)]:
        sys.stdout.write(line + "\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
