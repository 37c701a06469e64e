"""Again: a crash of the recovery.

The recovery from a crash state, with the append after it, is a run like any other: it becomes a recording of its own, is crashed at every
point, and is recovered again (oracle O10).  What must not be lost changes on the way: until the session is open, what the first run had
promised; from then on, what was found.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pseudoclaude.messages import History
from simulator.disk import OpLog
from simulator.oracles import Evidence, bounds_along, bounds_at
from simulator.recover import OPENED
from simulator.values import CrashState, Disk, Mark, Op, Recording, Recovered, SessionRecord


class Promises:
    """What the recovery in a second recording had promised at each of its points, and what it had begun."""

    def __init__(self, recording: Recording) -> None:
        session = recording.sessions[0]
        self._told = [f"{len(history)}{history[-1:]!r}" for history in session.histories]
        self._along = {power: bounds_along(recording.ops, session.folder, power=power) for power in (False, True)}
        self._texts: dict[tuple[int, int], str] = {}

    def at(self, state: CrashState) -> tuple[tuple[int, int], str]:
        """The bounds that hold at a state, and the histories between them as text that equal ones share."""
        bounds = self._along[state.model != "kill"][state.point]
        text = self._texts.get(bounds)
        if text is None:
            text = self._texts[bounds] = "|".join(self._told[bounds[0] : bounds[1] + 1])
        return bounds, text


def second_recording(
    recording: Recording, state: CrashState, session: SessionRecord, disk: Disk, recovered: Recovered, log: OpLog
) -> tuple[Recording, int] | None:
    """The run that recovered from ``disk`` and appended one message, with its ``log``, as a recording, and the point where it begins.

    None when that run raised, which the oracles of the first crash report.  After a kill the machine goes on: what was pending is visible
    and still not durable.  After a power cut the disk is all there is, and what is found on it is durable.
    """
    if recovered.loaded.raised or recovered.reopened.raised:
        return None
    bounds = bounds_at(recording.ops, session.folder, state.point, power=True)
    found = _as_recorded(session, recovered.loaded.messages, Evidence(recording, session, recovered, *bounds).matches)
    earlier = session.histories[bounds[0] : bounds[1] + 1] if state.model == "kill" else (found,)
    before = tuple(_as_it_happened(recording.ops, state)) if state.model == "kill" else ()
    shift = len(earlier) - OPENED
    begin = Op("issue", mark=Mark(session.folder, shift + OPENED))
    second = msgspec.structs.replace(
        recording,
        base=recording.base if state.model == "kill" else disk,
        ops=(*before, begin, *[_shifted(op, shift) for op in log.ops]),
        sessions=(
            SessionRecord(
                session.folder,
                (*earlier, found, recovered.loaded.messages, (*recovered.loaded.messages, recovered.probe)),
            ),
        ),
    )
    return second, len(before) + 1


def _as_recorded(session: SessionRecord, loaded: History, matches: list[int]) -> History:
    """The recorded history that the loaded one is, with the calls that loading trimmed; they are trimmed again after the next crash."""
    return session.histories[matches[-1]] if matches else loaded


def _shifted(op: Op, shift: int) -> Op:
    if op.mark is None:
        return op
    return msgspec.structs.replace(op, mark=msgspec.structs.replace(op.mark, step=op.mark.step + shift))


def _as_it_happened(ops: tuple[Op, ...], state: CrashState) -> Iterator[Op]:
    """The calls up to a kill, the interrupted write as far as it got.  Marks of the first run are left out."""
    for index in range(state.point):
        if ops[index].kind not in ("issue", "ack"):
            yield ops[index]
    if state.point < len(ops) and state.point in state.kept:
        op = ops[state.point]
        if state.tear is not None:
            op = msgspec.structs.replace(op, data=op.data[: state.tear.kept])
        yield op
