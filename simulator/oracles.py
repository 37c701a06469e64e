"""Oracles: one function, one guarantee, stated as its docstring.

They see the record and what the product gave back, never the product's session code, its repair or the fake disk; the protocol violations they
judge were computed by ``protocol.check``.  An oracle that cannot apply to a recording (no replace in it, no spill) is not counted; one
that applies and could not be measured is ``not_run``, and that is never green.

A history is compared with the recorded ones *as a provider would take them*: a call that has no result yet may be missing from the loaded
history, if it is listed as trimmed.  ``settled`` computes that here, on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from msgspec.structs import replace

from pseudoclaude.messages import History, Message
from simulator.values import Loaded, Op, OracleName, Recording, Recovered, SessionRecord, Verdict


class Evidence:
    """One crash state of one session, with the bounds that hold at its crash point.

    ``acked``: the last step the product had promised; ``issued``: the last step it had begun.  ``excused``: the disk had lied about a sync,
    and nobody could keep what was promised on it (``excused_at``).
    """

    def __init__(
        self,
        recording: Recording,
        session: SessionRecord,
        recovered: Recovered,
        acked: int,
        issued: int,
        excused: bool = False,
    ) -> None:
        self.recording = recording
        self.session = session
        self.recovered = recovered
        self.acked = acked
        self.issued = issued
        self.excused = excused

    @cached_property
    def matches(self) -> list[int]:
        """Every step whose history is the loaded one."""
        loaded = self.recovered.loaded
        count = len(loaded.messages)
        return [
            step
            for step, history in enumerate(self.session.histories)
            if count <= len(history) <= count + 1 and _same(history, loaded)  # trimming takes one message at most
        ]


def no_raise(case: Evidence) -> str:
    """O1: loading, opening and appending never raise, whatever the disk holds."""
    looks = (case.recovered.loaded, case.recovered.reopened, case.recovered.usable)
    return next((f"{look.raised}" for look in looks if look.raised), "")


def protocol_valid(case: Evidence) -> str:
    """O2: what loads is a history the provider accepts when the user goes on, now and after the restart."""
    for look in (case.recovered.loaded, case.recovered.reopened, case.recovered.usable):
        if look.violations:
            return look.violations[0]
    return ""


def acknowledged_durable(case: Evidence) -> str | None:
    """O3: everything acknowledged before the crash is there."""
    if case.excused:
        return None
    if any(step >= case.acked for step in case.matches):
        return ""
    wanted, _ = settled(case.session.histories[case.acked])
    lost = _missing_from(wanted, case.recovered.loaded.messages)
    if lost is None:
        return ""
    return f"acknowledged and lost: message {lost} of the {len(wanted)} that stood after change {case.acked}"


def nothing_from_the_future(case: Evidence) -> str:
    """O4: nothing that was not yet issued is there."""
    if any(step <= case.issued for step in case.matches):
        return ""
    if case.matches:
        return f"the history of change {case.matches[0]} loads, but only {case.issued} were issued"
    known = [history for history in case.session.histories[: case.issued + 1]]
    for position, message in enumerate(case.recovered.loaded.messages):
        if position == 0 and message.role == "user" and case.recording.durability == "off":
            continue  # the beginning may be lost without a promise broken; loading then says so in a user message of its own
        if not any(_holds(history, message) for history in known):
            return f"message {position} was never issued before the crash"
    return ""


def prefix_without_holes(case: Evidence) -> str | None:
    """O5: the loaded history is the one after some change, minus exactly the trimmed calls: no hole, no reordering."""
    if case.excused:
        return None
    if case.matches or case.recovered.loaded.raised:
        return ""
    return f"{len(case.recovered.loaded.messages)} messages load that were never the history together"


def atomic_replace(case: Evidence) -> str | None:
    """O6: while a replace is in flight, the loaded history is exactly the one before or the one after: never empty, mixed or in part."""
    in_flight = [step for step in sorted(case.session.replaces) if case.acked < step <= case.issued]
    if not in_flight or case.recovered.loaded.raised:
        return None
    if any(case.acked <= step <= case.issued for step in case.matches):
        return ""
    loaded = case.recovered.loaded.messages
    step = in_flight[0]
    snapshot, _ = settled(case.session.histories[step])
    if len(loaded) < len(snapshot) and loaded == snapshot[: len(loaded)]:
        return f"{len(loaded)} of the {len(snapshot)} messages of the snapshot of change {step} load, without the rest"
    return f"{len(loaded)} messages load that are neither the history before the replace of change {step} nor the one after it"


def references_hold(case: Evidence) -> str:
    """O7: every spilled result that a loaded message names is there, with the bytes of the tool's own output."""
    for spill in case.recovered.loaded.spills:
        if spill.size < 0:
            return f"{spill.path} is named by the history and is not there"
        if spill.size != spill.bytes or spill.digest != spill.sha256:
            return f"{spill.path} has {spill.size} bytes with another digest than the preview says"
        if case.recording.originals and spill.digest not in case.recording.originals:
            return f"{spill.path} holds bytes that no tool gave back"
    return ""


def recovery_idempotent(case: Evidence) -> str:
    """O9: opening changes no byte, and a second look gives what the first gave.

    A session that carries the mark of a failed sync is the exception: what it shows may not be on the disk, and opening writes it again.
    """
    first, second = case.recovered.loaded, case.recovered.reopened
    if second.raised or first.raised:
        return ""
    if not case.recovered.untouched and not case.recovered.marked:
        return "opening for append changed bytes of the session"
    if (first.messages, first.truncated, first.findings) != (second.messages, second.truncated, second.findings):
        return "a second look gives another history or other findings than the first"
    return ""


def usable_afterwards(case: Evidence) -> str:
    """O11: after recovery a message can be appended, and the restart gives what was loaded plus what was appended."""
    recovered = case.recovered
    if recovered.usable.raised or recovered.reopened.raised:
        return ""
    if recovered.usable.messages != (*recovered.loaded.messages, recovered.probe):
        return "after recovery and one append, the restart does not give what was loaded plus what was appended"
    if recovered.open_files:
        return f"{recovered.open_files} files were left open"
    return ""


Judge = Callable[[Evidence], str | None]

BOUND_ORACLES: Mapping[OracleName, Judge] = {
    "O3": acknowledged_durable,
    "O4": nothing_from_the_future,
    "O5": prefix_without_holes,
    "O6": atomic_replace,
}
"""These depend on the crash point, not only on the disk."""

DISK_ORACLES: Mapping[OracleName, Judge] = {
    "O1": no_raise,
    "O2": protocol_valid,
    "O7": references_hold,
    "O9": recovery_idempotent,
    "O11": usable_afterwards,
}
ORACLES: Mapping[OracleName, Judge] = {**BOUND_ORACLES, **DISK_ORACLES}


def applicable(recording: Recording, session: SessionRecord) -> frozenset[OracleName]:
    """The oracles that mean something for this recording, derived from the record alone."""
    names = set(ORACLES)
    if not session.replaces:
        names.discard("O6")
    if not any(
        message.tool_result and message.tool_result.spill for history in session.histories for message in history
    ):
        names.discard("O7")
    if recording.durability == "off":
        names -= {"O3", "O5"}
    return frozenset(names)


def judge(name: OracleName, case: Evidence) -> Verdict | None:
    """One oracle's word on one case; None when the case says nothing about its guarantee."""
    broken = ORACLES[name](case)
    if broken is None:
        return None
    return Verdict(name, "broken" if broken else "held", broken)


def bounds_at(ops: tuple[Op, ...], folder: str, point: int, *, power: bool) -> tuple[int, int]:
    """``(acknowledged, issued)``: the last step promised before ``point``, and the last one begun."""
    return bounds_along(ops[:point], folder, power=power)[-1]


def bounds_along(ops: tuple[Op, ...], folder: str, *, power: bool) -> list[tuple[int, int]]:
    """``bounds_at`` of every point, the end included."""
    acked = issued = 0
    along = [(0, 0)]
    for op in ops:
        mark = op.mark
        if mark is not None and mark.folder == folder:
            if op.kind == "issue":
                issued = max(issued, mark.step)
            elif mark.durable or not power:
                acked = max(acked, mark.step)
        along.append((acked, issued))
    return along


def excused_at(ops: tuple[Op, ...], point: int, *, power: bool) -> bool:
    """Has the disk lied, or dropped what it had taken, and has the product not had the chance to make up for it?

    Two ways of failing a sync leave that: a sync that returns 0 and is answered by an error only at the next one (FAULT-MODEL.md §2.5,
    ``ext4-journal``), and one that takes the unsynced bytes away from the cache too (``btrfs``), where it matters only after a kill.  It
    ends with the first acknowledgement after the error was seen.
    """
    return excused_along(ops, power=power)[point]


def excused_along(ops: tuple[Op, ...], *, power: bool) -> list[bool]:
    """``excused_at`` of every point, the end included."""
    lied = told = False
    along = [False]
    for index, op in enumerate(ops):
        if op.kind == "fsync" and op.error:
            took_back = index + 1 < len(ops) and ops[index + 1].kind == "truncate" and ops[index + 1].inode == op.inode
            told = op.error != "LATE" and (lied or (took_back and not power))
            lied = lied or op.error == "LATE" or told
        elif op.kind == "ack" and told:
            lied = told = False
        along.append(lied)
    return along


# --- comparing histories ---------------------------------------------------------------------------------------


def settled(history: History) -> tuple[History, tuple[str, ...]]:
    """``history`` without the calls that have no result in it, and the ids of those calls."""
    kept: list[Message] = []
    dropped: list[str] = []
    position = 0
    while position < len(history):
        message = history[position]
        position += 1
        results: list[Message] = []
        while message.tool_calls and position < len(history) and history[position].tool_result is not None:
            results.append(history[position])
            position += 1
        answered = _answered(message, results)
        open_calls = [call for call, has_result in zip(message.tool_calls, answered, strict=True) if not has_result]
        if open_calls:
            dropped += [call.id for call in open_calls]
            calls = tuple(call for call, has_result in zip(message.tool_calls, answered, strict=True) if has_result)
            stop = None if not calls and message.stop == "tool_use" else message.stop
            message = replace(message, tool_calls=calls, native=None, stop=stop)
        if not open_calls or message.content or message.tool_calls:
            kept.append(message)
        kept += results
    return tuple(kept), tuple(dropped)


def _answered(message: Message, results: list[Message]) -> list[bool]:
    """Which calls have a result.  Ids may be equal or empty, so each result answers the first call of its id that has none yet."""
    left = [result.tool_result.call_id for result in results if result.tool_result is not None]
    answered = []
    for call in message.tool_calls:
        answered.append(call.id in left)
        if answered[-1]:
            left.remove(call.id)
    return answered


def _same(history: History, loaded: Loaded) -> bool:
    if history == loaded.messages:
        return not loaded.truncated
    if not loaded.truncated:
        return False  # with nothing trimmed only an equal history is the same
    expected, dropped = settled(history)
    return expected == loaded.messages and dropped == loaded.truncated


def _missing_from(wanted: History, loaded: History) -> int | None:
    """Position in ``wanted`` of the first message that ``loaded`` does not hold in order; None if it holds all."""
    position = 0
    for index, message in enumerate(wanted):
        while position < len(loaded) and loaded[position] != message:
            position += 1
        if position == len(loaded):
            return index
        position += 1
    return None


def _holds(history: History, message: Message) -> bool:
    if message in history:
        return True
    return message in settled(history)[0]
