"""Token: a crash state as one line of text that rebuilds the exact disk on another machine.

``cs1:append_replace/spilled_result:1a2b3c4d:s0:product:posix-min:c41:k1011:torn-7-1200-1300-nul``

Scenario id, hash of its file, seed, variant, model, crash point, which of the pending changes were kept (in the order of the log), and the
tear: shape, position of the torn write among the pending changes, bytes kept, bytes reached, fill.  ``d3`` in place of a tear: the
rename at that position shows under both names.  A crash during recovery follows after ``+``, in the same form from the model on; ``2.`` before
it: the recovery of the second session of the recording.
"""

from __future__ import annotations

import re

import msgspec

from simulator.crash import changes_of, pending
from simulator.values import MUTATIONS, CrashState, Op, Recording, Tear

_TOKEN = re.compile(
    r"cs1:(?P<scenario>[^:]+):(?P<hash>[0-9a-f]{8}):s(?P<seed>-?\d{1,18}):(?P<variant>[a-z0-9_]+):(?P<first>[^+]+)(?:\+(?:(?P<session>[1-9]\d{0,5})\.)?(?P<second>.+))?"
)
_STATE = re.compile(
    r"(?P<model>kill|posix-min):c(?P<point>\d+):k(?P<kept>[01]*)(?::(?:d(?P<doubled>\d+)|(?P<shape>torn|hole)-(?P<op>\d+)-(?P<bytes>\d+)-(?P<reach>\d+)-(?P<fill>nul|stale|old)))?"
)


class TokenError(Exception):
    """A token that is not one, or not of this scenario."""


class Token(msgspec.Struct, frozen=True):
    """A token taken apart; ``first`` and ``second`` are the encoded crash states, ``session`` (from 0) is the one whose recovery is crashed."""

    scenario: str
    content_hash: str
    seed: int
    variant: str
    first: str
    second: str = ""
    session: int = 0


def token_of(recording: Recording, state: CrashState) -> str:
    """The token of a crash state of this recording."""
    head = f"cs1:{recording.scenario}:{recording.content_hash}:s{recording.seed}:{recording.variant}"
    return f"{head}:{encode_state(recording.ops, state)}"


def token_of_recovery(
    recording: Recording, state: CrashState, folder: str, ops: tuple[Op, ...], later: CrashState
) -> str:
    """The token of a crash of the recovery of the session in ``folder`` from ``state``; ``ops`` are those of that recovery."""
    number = 1 + [session.folder for session in recording.sessions].index(folder)
    return f"{token_of(recording, state)}+{f'{number}.' if number > 1 else ''}{encode_state(ops, later)}"


def parse_token(text: str) -> Token:
    """Raises ``TokenError`` for anything that is no token."""
    match = _TOKEN.fullmatch(text.strip())
    if match is None:
        raise TokenError(
            f"not a token: {text.strip()[:80]!r}; a token looks like cs1:suite/name:1a2b3c4d:s0:product:kill:c41:k1011"
        )
    return Token(
        match["scenario"],
        match["hash"],
        int(match["seed"]),
        match["variant"],
        match["first"],
        match["second"] or "",
        int(match["session"] or 1) - 1,
    )


def encode_state(ops: tuple[Op, ...], state: CrashState) -> str:
    """One crash state, relative to the ops it crashes."""
    choices = choices_at(ops, state.model, state.point)
    kept = set(state.kept)
    bits = "".join("1" if index in kept else "0" for index in choices)
    text = f"{state.model}:c{state.point}:k{bits}"
    if state.doubled is not None:
        return f"{text}:d{choices.index(state.doubled)}"
    if state.tear is None:
        return text
    tear = state.tear
    return f"{text}:{tear.shape}-{choices.index(tear.op)}-{tear.kept}-{tear.reach}-{tear.fill}"


def decode_state(ops: tuple[Op, ...], text: str) -> CrashState:
    """The crash state that ``text`` encodes.  Raises ``TokenError`` when it does not fit the ops."""
    match = _STATE.fullmatch(text)
    if match is None:
        raise TokenError(f"not a crash state: {text[:80]!r}")
    point = int(match["point"])
    if point > len(ops):
        raise TokenError(f"the run has {len(ops)} operations, the token names a crash at {point}")
    model = match["model"]
    choices = choices_at(ops, model, point)
    if len(match["kept"]) != len(choices):
        raise TokenError(f"{len(choices)} changes are pending at {point}, the token speaks of {len(match['kept'])}")
    kept = [index for index, bit in zip(choices, match["kept"], strict=True) if bit == "1"]
    if model == "kill":
        kept = changes_of(ops[:point]) + kept
    if match["doubled"] and int(match["doubled"]) >= len(choices):
        raise TokenError(f"no change {match['doubled']} is pending at {point}")
    doubled = choices[int(match["doubled"])] if match["doubled"] else None
    if not match["shape"]:
        return CrashState(model, point, tuple(kept), doubled=doubled)
    shape = "torn" if match["shape"] == "torn" else "hole"
    fill = {"nul": "nul", "stale": "stale", "old": "old"}[match["fill"]]
    torn, kept_bytes, reach = int(match["op"]), int(match["bytes"]), int(match["reach"])
    if torn >= len(choices) or not kept_bytes <= reach <= len(ops[choices[torn]].data):
        raise TokenError(
            f"the tear {match['shape']}-{torn}-{kept_bytes}-{reach} does not fit a write that is pending at {point}"
        )
    tear = Tear(choices[torn], shape, kept_bytes, reach, fill)  # type: ignore[arg-type]
    return CrashState(model, point, tuple(kept), tear)


def choices_at(ops: tuple[Op, ...], model: str, point: int) -> list[int]:
    """The changes a crash at ``point`` may keep or lose, in the order of the log."""
    waiting = [] if model == "kill" else pending(ops, point)
    if point < len(ops) and ops[point].kind in MUTATIONS:
        waiting = [*waiting, point]
    return waiting
