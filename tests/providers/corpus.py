"""The real recordings as cases: each model request rebuilt from the recorded messages and replayed through our adapter.

They are those of the shared folder, and those that ``pseudosim corpus fetch`` brought, where ``PSEUDOCLAUDE_CORPUS`` names its cache.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pseudoclaude.errors import ProviderError, StreamInterrupted
from pseudoclaude.messages import Message, ToolResult
from pseudoclaude.ports import Reply, Request, ToolSpec
from simulator.replies.cassettes import Cassette, Recorded, load_cassette
from simulator.replies.corpus import recordings
from simulator.replies.errors import CassetteUnreadable
from simulator.replies.projection import read_history, system_text
from simulator.replies.replay import CassetteProvider
from simulator.replies.script import StreamFault
from tests.providers.wire_truth import Truth, truth, value
from tests.shared import shared_folder

FOLDER = "cassettes/real"
UNREADABLE = "anthropic__messages__plain__err400__dd_trace_py__anthropic_completion_error.yaml"
"""Its request was malformed on purpose (content is a list of strings): the reply is judged under another request."""


class Case(NamedTuple):
    """One interaction of one file."""

    file: str
    position: int
    features: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file.removesuffix('.yaml')}-{self.position}"


def cases() -> list[Case]:
    """Every interaction of every recording; empty where the shared folder is absent."""
    folder = shared_folder()
    if folder is None:
        return []
    with (folder / FOLDER / "PROVENANCE.tsv").open(encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    return [
        Case(row["file"], position, tuple(filter(None, row["features"].split(", "))))
        for row in rows
        for position in range(int(row["interactions"]))
    ]


def fetched_cases(folder: str | Path | None = None) -> Iterator[Case]:
    """Every interaction of every fetched recording that can be read; none where no cache is named."""
    folder = folder or os.environ.get("PSEUDOCLAUDE_CORPUS")
    for path in recordings(Path(folder)) if folder else ():
        try:
            count = len(cassette(str(path)).interactions)
        except CassetteUnreadable:
            continue  # ``corpus fetch`` has named it
        yield from (Case(str(path), position, ()) for position in range(count))


@cache
def cassette(file: str) -> Cassette:
    """``file`` is absolute, or lies in the shared folder."""
    return load_cassette((shared_folder() or Path()) / FOLDER / file)


def recorded(case: Case) -> Recorded:
    return cassette(case.file).interactions[case.position]


def skip_reason(case: Case) -> str | None:
    """Why a recording is not judged, or None."""
    one = recorded(case)
    if one.dialect is None:
        return f"{Path(one.path).name} is no request for a reply: we never make it"
    if one.reply.startswith(b"{") and isinstance(_content(one), dict):
        return f"{one.host} answers with an object where the API promises text"
    return None


def _content(one: Recorded) -> Any:
    """What stands where the text of a whole Chat reply belongs."""
    choices = json.loads(one.reply).get("choices") or [{}]
    return (choices[0].get("message") or {}).get("content")


def provider(case: Case, *, cut: StreamFault | None = None) -> CassetteProvider:
    only = cassette(case.file).only(case.position)
    if case.file == UNREADABLE:
        body = {**recorded(case).body, "messages": [{"role": "user", "content": "Hello"}]}
        only = Cassette(only.path, (only.interactions[0]._replace(body=body),))
    return CassetteProvider(only, match="projection", fault=cut)


def request(case: Case) -> Request:
    """What the recorded client asked, in canonical form."""
    one = recorded(case)
    if case.file == UNREADABLE:
        return Request((Message("user", "Hello"),))
    assert one.dialect is not None
    return Request(
        read_history(one.dialect, one.body), system=system_text(one.dialect, one.body), tools=declared_tools(one)
    )


def declared_tools(one: Recorded) -> tuple[ToolSpec, ...]:
    """The recorded client tools; what a server runs itself is not ours to declare."""
    specs = []
    for tool in one.body.get("tools") or ():
        spec = tool.get("function", tool)
        schema = spec.get("input_schema") or spec.get("parameters")
        if isinstance(schema, dict) and "name" in spec:
            specs.append(ToolSpec(spec["name"], spec.get("description") or "", schema))
    return tuple(specs)


class Outcome(NamedTuple):
    """What came out of the adapter, in the same words as ``Truth``; ``reply`` when there was one."""

    said: Truth
    heard: str
    reply: Reply | None


def replay(case: Case) -> Outcome:
    heard: list[str] = []
    try:
        reply = provider(case).complete(request(case), heard.append)
    except StreamInterrupted as error:
        return Outcome(Truth(text=error.partial.content, error="StreamInterrupted"), "".join(heard), None)
    except ProviderError as error:
        said = Truth(error=type(error).__name__, retryable=error.retryable, retry_after=error.retry_after)
        return Outcome(said, "".join(heard), None)
    message, usage = reply.message, reply.usage
    said = Truth(
        text=message.content,
        calls=tuple((call.id, call.name, value(call.arguments)) for call in message.tool_calls),
        usage=None
        if usage is None
        else (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens),
        stop=message.stop,
    )
    return Outcome(said, "".join(heard), reply)


def expected(case: Case) -> Truth:
    return truth(recorded(case))


def tool_message(call_id: str, content: str, *, is_error: bool = False) -> Message:
    return Message("tool", tool_result=ToolResult(call_id, content, is_error=is_error))
