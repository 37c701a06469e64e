"""What models answer instead of a clean list of operations: each entry with the notes that still come out of it, and why the rest does not.

``GOOD`` and ``OTHER`` stand for two valid operations; an entry is (kind, answer, slugs of what is accepted, words of each reason in order).
"""

from __future__ import annotations

import json
from typing import Any

GOOD = '{"action": "create", "level": "project", "slug": "good", "name": "Good", "description": "d", "body": "fact"}'
OTHER = '{"action": "update", "level": "user", "slug": "other", "body": "fact {with} [brackets] and \\"quotes\\""}'

NFC, NFD = "Gelée", "gele\u0301e"

Entry = tuple[str, str, list[str], list[str]]


def changed(**members: Any) -> str:
    """``GOOD`` with some members changed; None takes one away."""
    value = {**json.loads(GOOD), **members}
    return json.dumps({key: member for key, member in value.items() if member is not None})


WRAPPED: list[Entry] = [
    ("empty answer", "", [], []),
    ("white space", " \n\t ", [], []),
    ("nothing to do", "[]", [], []),
    ("nothing to do, wrapped", '{"operations": []}', [], []),
    ("prose", "There is nothing to remember.", [], ["no JSON"]),
    ("list", f"[{GOOD}, {OTHER}]", ["good", "other"], []),
    ("fenced", f"```json\n[{GOOD}]\n```", ["good"], []),
    ("fenced without a language", f"```\n[{GOOD}]\n```", ["good"], []),
    ("fence not closed", f"```json\n[{GOOD}]", ["good"], []),
    ("two fences", f"```json\n[{GOOD}]\n```\nand\n```json\n[{OTHER}]\n```", ["good", "other"], []),
    ("prefixed", f"Here are the operations:\n[{GOOD}]", ["good"], []),
    ("followed by prose", f"[{GOOD}]\nI hope this helps.", ["good"], []),
    ("braces in the prose", f"For {{this turn}}: [{GOOD}]", ["good"], ["not JSON"]),
    ("a footnote in the prose", f"As said [1]: [{GOOD}]", ["good"], ["a number, not an object"]),
    ("one object", GOOD, ["good"], []),
    ("JSON lines", f"{GOOD}\n{OTHER}", ["good", "other"], []),
    ("wrapped in operations", f'{{"operations": [{GOOD}, {OTHER}]}}', ["good", "other"], []),
    ("byte order mark", f"\ufeff[{GOOD}]", ["good"], []),
    ("CRLF", f"[{GOOD},\r\n{OTHER}]\r\n", ["good", "other"], []),
    ("trailing comma", f"[{GOOD}, {OTHER},]", ["good", "other"], []),
    ("missing comma", f"[{GOOD} {OTHER}]", ["good", "other"], []),
    ("cut off in the second", f"[{GOOD}, {OTHER[:60]}", ["good"], ["not closed"]),
    ("cut off after the first", f"[{GOOD},", ["good"], []),
    ("wrapped and cut off", f'{{"operations": [{GOOD}, {OTHER[:40]}', ["good"], ["not closed"]),
    (
        "wrapped, one broken",
        f'{{"operations": [{GOOD}, {{"action": create}}, {OTHER}]}}',
        ["good", "other"],
        ["not JSON"],
    ),
    ("one with single quotes", f"[{{'action': 'create'}}, {GOOD}]", ["good"], ["not JSON"]),
    ("one with a comment", f'[{{"action": "create" // new\n}}, {GOOD}]', ["good"], ["not JSON"]),
    (
        "one quoted inside a broken one",
        f'[{{"action": "create", body: {json.dumps(OTHER)}}}, {GOOD}]',
        ["good"],
        ["not JSON"],
    ),
    ("nested inside a broken one", f'[{{"action": oops, "extra": {OTHER}}}, {GOOD}]', ["good"], ["not JSON"]),
    ("line break in a string", '[{"action":"create","level":"user","slug":"a","body":"one\ntwo"}]', ["a"], []),
    ("too deep", "[" * 5_000 + GOOD + "]" * 5_000, [], ["nested too deeply"]),
    ("too deep in one member", f'[{GOOD}, {{"action": {"[" * 5_000}{"]" * 5_000}}}]', [], ["nested too deeply"]),
    ("endless number", f'[{{"action": {"9" * 5_000}}}, {GOOD}]', ["good"], ["a number that is too long"]),
    ("too much", " " * 1_000_001, [], ["characters"]),
]

ELEMENTS: list[Entry] = [
    ("null among them", f"[null, {GOOD}]", ["good"], ["null, not an object"]),
    ("a number among them", f"[{GOOD}, 42]", ["good"], ["a number, not an object"]),
    ("text among them", f'["create", {GOOD}]', ["good"], ["text, not an object"]),
    ("a list among them", f"[[], {GOOD}]", ["good"], ["a list, not an object"]),
    ("empty object", f"[{{}}, {GOOD}]", ["good"], ["the action is missing"]),
    ("unknown action", f"[{changed(action='merge')}, {OTHER}]", ["other"], ["the action is 'merge'"]),
    ("no level", f"[{changed(level=None)}, {OTHER}]", ["other"], ["the level is missing"]),
    ("unknown level", f"[{changed(level='global')}, {OTHER}]", ["other"], ["the level is 'global'"]),
    ("action is a list", f"[{changed(action=['create'])}, {OTHER}]", ["other"], ["action is a list, not text"]),
    ("body is an object", f"[{changed(body={'text': 'x'})}, {OTHER}]", ["other"], ["body is an object, not text"]),
    ("body is a number", f"[{changed(body=3)}, {OTHER}]", ["other"], ["body is a number, not text"]),
    ("body is NaN", GOOD.replace('"fact"', "NaN"), [], ["body is a number, not text"]),
    ("no body", f"[{changed(body=None)}, {OTHER}]", ["other"], ["without a body"]),
    ("blank body", f"[{changed(body=' ')}, {OTHER}]", ["other"], ["without a body"]),
    ("no slug and no name", f"[{changed(slug=None, name=None)}, {OTHER}]", ["other"], ["neither a slug nor a name"]),
    (
        "empty update",
        f"[{changed(action='update', body=None, name=None, description=None)}, {OTHER}]",
        ["other"],
        ["changes nothing"],
    ),
    ("delete of nothing", '{"action": "delete", "level": "user"}', [], ["neither a slug nor a name"]),
    ("member given twice", GOOD.replace('"body"', '"body": "a", "body"'), [], ["'body' is given twice"]),
    (
        "body under two names",
        f"[{changed(content='another')}, {OTHER}]",
        ["other"],
        ["body is given twice with different values"],
    ),
    ("body too large", changed(body="x" * 20_001), [], ["20,001 bytes"]),
    ("capitals and spaces", changed(action=" Create ", level="PROJECT"), ["good"], []),
    (
        "other member names",
        '{"op": "create", "scope": "user", "title": "Tea Time", "content": "at five"}',
        ["tea-time"],
        [],
    ),
    ("unknown members", changed(confidence=0.9, reason="seen"), ["good"], []),
    ("null members", changed(description=None) + GOOD.replace("good", "b").replace('"d"', "null"), ["good", "b"], []),
    ("lone surrogate", changed(body="half \ud83d"), ["good"], []),
    (
        "more than fifty",
        "[" + ",".join(changed(slug=f"n{i}") for i in range(52)) + "]",
        [f"n{i}" for i in range(50)],
        ["more than 50"] * 2,
    ),
]

TOGETHER: list[Entry] = [
    ("the same twice", f"[{GOOD}, {GOOD}]", ["good"], ["the same as operation 1"]),
    ("two bodies for one note", f"[{GOOD}, {changed(body='newer')}]", ["good"], ["is replaced by operation 2"]),
    ("create and delete", f"[{GOOD}, {changed(action='delete')}]", ["good"], ["contradicts operation 1"]),
    ("delete and create", f"[{changed(action='delete')}, {GOOD}]", ["good"], ["contradicts operation 2"]),
    ("the same slug in two stores", f"[{GOOD}, {changed(level='user')}]", ["good", "good"], []),
    (
        "one name in two spellings",
        f"[{changed(slug=NFC)}, {changed(slug=NFD)}]",
        ["gelée"],
        ["the same as operation 1"],
    ),
]

REFUSED: list[Entry] = [
    (f"slug {slug!r}", f"[{changed(slug=slug)}, {OTHER}]", ["other"], [word])
    for slug, word in [
        ("../escape", "outside the store"),
        ("/abs", "outside the store"),
        ("a/../../b", "outside the store"),
        ("a\\b", "outside the store"),
        ("C:\\x", "outside the store"),
        ("..", "outside the store"),
        (".hidden", "outside the store"),
        ("a\x00b", "outside the store"),
        ("MEMORY", "reserved"),
        ("memory.md", "reserved"),
        ("ＭＥＭＯＲＹ", "reserved"),
        ("CON", "reserved"),
        ("nul.md", "reserved"),
        ("Com1", "reserved"),
    ]
]

CORPUS = WRAPPED + ELEMENTS + TOGETHER + REFUSED
