"""From valid operations to changes: what each does to the notes as they are now, decided under the locks and before any write.

A create never overwrites: where its name is taken by another fact it gets the next free one.  An update keeps what it does not mention and
becomes a create where the note is gone.  A note that its owner edited between the model's reading and now is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from pseudoclaude.errors import MemoryFailed
from pseudoclaude.memory.index import note_line
from pseudoclaude.memory.journal import Change, resolved
from pseudoclaude.memory.notes import Note, digest, parse
from pseudoclaude.memory.operations import Level, Operation, fold
from pseudoclaude.memory.store import Store

Seen = Mapping[tuple[str, str], tuple[str, str, str]]
"""What the model read: (level, slug) to the note's digest, ``updated`` and ``source``.  An update changes all three, a person the first."""


class Plan(msgspec.Struct, frozen=True):
    """The changes to make, and a sentence for each operation that is not made."""

    changes: tuple[Change, ...]
    refused: tuple[str, ...]


def plan_changes(
    operations: Iterable[Operation], stores: Mapping[Level, Store], updated: str, source: str, seen: Seen
) -> Plan:
    """Resolve ``operations`` against the stores.  Raises ``MemoryFailed`` when a store they need cannot be read:
    an update of two stores is never made in one of them alone.
    """
    changes: dict[tuple[str, str], Change] = {}
    refused: list[str] = []
    names: dict[Level, list[str]] = {level: store.slugs() for level, store in stores.items()}
    for operation in operations:
        store = stores.get(operation.level)
        if store is None:
            raise MemoryFailed(
                f"the turn changes the {operation.level} memory, which cannot be reached",
                still_true="Nothing of the turn was applied to either store",
            )
        outcome = _one(operation, store, names[operation.level], updated, source, seen)
        if isinstance(outcome, str):
            refused.append(_sentence(operation, outcome))
        elif (outcome.level, outcome.slug) in changes:
            refused.append(_sentence(operation, "another operation of the same turn changes this note"))
        else:
            changes[outcome.level, outcome.slug] = outcome
            names[operation.level].append(outcome.slug)
    return Plan(tuple(changes.values()), tuple(refused))


def _one(operation: Operation, store: Store, names: list[str], updated: str, source: str, seen: Seen) -> Change | str:
    """The change, or why there is none."""
    slug = _existing(operation.slug, names)
    try:
        data = store.read(slug) if slug is not None else None
    except MemoryFailed as error:
        if error.__cause__ is not None:
            raise
        return error.what
    old = parse(slug, data) if slug is not None and data is not None else None
    if operation.action == "create":
        return _created(operation, old, names, updated, source)
    if old is None:
        if operation.action == "update" and operation.body:
            return _created(operation, None, names, updated, source)
        return "there is no such note"
    shown = seen.get((operation.level, old.slug))
    if shown is not None and shown[0] != digest(data) and shown[1:] == (old.updated, old.source):
        return "the note was edited by hand meanwhile"
    line_before = note_line(old.slug, old.name, old.description)
    change = Change(operation.action, operation.level, old.slug, digest(data), "", line_before=line_before)
    if operation.action == "delete":
        return change
    new = _updated(operation, old)
    if (new.name, new.description, new.body) == (old.name, old.description, old.body):
        return "the note says so already"
    change = msgspec.structs.replace(change, name=new.name, description=new.description, body=new.body)
    return resolved(change, updated, source)


def _created(operation: Operation, old: Note | None, names: list[str], updated: str, source: str) -> Change | str:
    if old is not None and (old.name, old.body) == (operation.name, operation.body):
        return "a note that says the same exists"
    slug = _free(operation.slug, names)
    change = Change(
        "create",
        operation.level,
        slug,
        "",
        "",
        name=operation.name or slug,
        description=operation.description,
        body=operation.body,
    )
    return resolved(change, updated, source)


def _updated(operation: Operation, old: Note) -> Note:
    return msgspec.structs.replace(
        old,
        name=operation.name or old.name,
        description=operation.description or old.description,
        body=operation.body or old.body,
    )


def _existing(slug: str, names: list[str]) -> str | None:
    """The stored name that ``slug`` means, also where a person chose other capitals or another normalization."""
    if slug in names:
        return slug
    wanted = fold(slug)
    return next((name for name in names if fold(name) == wanted), None)


def _free(slug: str, names: list[str]) -> str:
    taken = {fold(name) for name in names}
    if fold(slug) not in taken:
        return slug
    number = 2
    while fold(f"{slug}-{number}") in taken:
        number += 1
    return f"{slug}-{number}"


def _sentence(operation: Operation, reason: str) -> str:
    return f"{operation.action} of the {operation.level} note {operation.slug!r} not made: {reason}"
