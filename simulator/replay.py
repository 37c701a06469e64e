"""Replay: a token -> the exact disk of that verdict, what the run was doing, what loads from it, and the oracles again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from simulator.again import second_recording
from simulator.build import build_disk
from simulator.disk import OpLog
from simulator.memory_sweep import look_at
from simulator.oracles import ORACLES, Evidence, applicable, bounds_at, excused_at, judge
from simulator.planted import PLANTED, product_of
from simulator.record import record
from simulator.recover import Recoverer
from simulator.scenario import Scenario, load_scenario
from simulator.token import Token, TokenError, choices_at, decode_state, parse_token
from simulator.values import (
    MEMORY,
    MUTATIONS,
    TURNS,
    CrashState,
    Disk,
    Loaded,
    Op,
    Recording,
    Recovered,
    SessionRecord,
    visible,
)

TEXT_SHOWN = 60


class ReplayError(Exception):
    """A replay that cannot be made: what is wrong with the token, the scenario or the folder."""


def replay_token(text: str, *, scenarios: Path, keep: Path | None) -> Iterator[tuple[str, bool]]:
    """Lines to print, each with whether it reports a broken oracle.  Raises ``ReplayError``."""
    try:
        token = parse_token(text)
        scenario = _scenario(token, scenarios)
        recording, state, recoverer = _rebuild(token, scenario)
    except TokenError as error:
        raise ReplayError(str(error)) from error
    disk = build_disk(recording, state)
    if keep is not None:
        _write_out(disk, keep)
    yield (
        f"{token.scenario}, variant {token.variant}, model {state.model}: crash at operation {state.point} of {len(recording.ops)}",
        False,
    )
    yield "", False
    yield "Operations (C certified, K kept, D dropped, T torn, > interrupted):", False
    for line in timeline(recording.ops, state):
        yield line, False
    for session in recording.sessions:
        yield from _session(recording, session, state, recoverer.recover(disk, session.folder))
    if not token.second:
        yield from _memory(recording, state, disk, scenario)
    if keep is not None:
        yield "", False
        for path, data in visible(disk):
            if data is not None:
                yield f"{Path(keep, path.lstrip('/'))}: {len(data)} bytes", False


def timeline(ops: tuple[Op, ...], state: CrashState) -> Iterator[str]:
    """One line an operation up to the crash, with its fate."""
    open_choices = set(choices_at(ops, state.model, state.point))
    kept = set(state.kept)
    names: dict[int, str] = {}
    for index, op in enumerate(ops[: state.point + 1]):
        if op.name:
            names[op.inode] = op.target_name or op.name
        if index == state.point and op.kind not in MUTATIONS:
            break
        fate = " "
        if op.kind in MUTATIONS:
            fate = "C" if index not in open_choices else ("K" if index in kept else "D")
            if state.tear is not None and state.tear.op == index:
                fate = "T"
        mark = ">" if index == state.point else " "
        yield f"{mark}{index:4} {fate} {_describe(op, names.get(op.inode, f'inode {op.inode}'))}"


def _describe(op: Op, name: str) -> str:
    if op.mark is not None:
        what = {MEMORY: "change of memory", TURNS: "turn handed to memory"}.get(op.mark.folder, "change")
        return f"{op.kind} {what} {op.mark.step}"
    what = {
        "write": f"{name} [{op.offset}, {op.offset + len(op.data)})",
        "truncate": f"{name} to {op.size}",
        "rename": f"{op.name} -> {op.target_name}",
    }.get(op.kind, op.name or name)
    error = f" failed: {op.error}" if op.error else ""
    return f"{op.kind} {what}{error}  {op.site}"


def _scenario(token: Token, scenarios: Path) -> Scenario:
    file = scenarios / f"{token.scenario}.yaml"
    if not file.exists():
        raise ReplayError(f"{file}: no such scenario; --scenarios names the folder that holds the suites")
    scenario = load_scenario(file)
    if scenario.content_hash != token.content_hash:
        raise ReplayError(
            f"{token.scenario} has changed since this token was made (its hash is {scenario.content_hash}, the token says {token.content_hash})"
        )
    return scenario


def _rebuild(token: Token, scenario: Scenario) -> tuple[Recording, CrashState, Recoverer]:
    if token.variant != "product" and token.variant not in PLANTED:
        raise ReplayError(f"there is no planted variant {token.variant!r}; variants are {', '.join(PLANTED)}")
    recording = record(scenario, seed=token.seed, variant=token.variant)
    state = decode_state(recording.ops, token.first)
    recoverer = Recoverer(product_of(token.variant), scenario.settings)
    if not token.second:
        return recording, state, recoverer
    if token.session >= len(recording.sessions):
        raise TokenError(f"the run has {len(recording.sessions)} sessions, the token names number {token.session + 1}")
    session = recording.sessions[token.session]
    disk, log = build_disk(recording, state), OpLog()
    recovered = recoverer.recover(disk, session.folder, log)
    second = second_recording(recording, state, session, disk, recovered, log)
    if second is None:
        raise ReplayError("the recovery that this token crashes does not come to an append")
    return second[0], decode_state(second[0].ops, token.second), recoverer


def _session(
    recording: Recording, session: SessionRecord, state: CrashState, recovered: Recovered
) -> Iterator[tuple[str, bool]]:
    power = state.model != "kill"
    acked, issued = bounds_at(recording.ops, session.folder, state.point, power=power)
    excused = excused_at(recording.ops, state.point, power=power)
    loaded = recovered.loaded
    yield "", False
    yield f"{session.folder}: acknowledged up to change {acked}, issued up to {issued}", False
    if loaded.raised:
        yield f"  loading raised {loaded.raised}", False
    yield (
        f"  loads as {loaded.state}, {len(loaded.messages)} messages, findings: {_findings(loaded)}",
        False,
    )
    for message in loaded.messages:
        result = message.tool_result
        text = message.content if result is None else f"[{result.call_id}] {result.content}"
        calls = "".join(f" call {call.name}[{call.id}]" for call in message.tool_calls)
        yield f"    {message.role:9} {text[:TEXT_SHOWN]!r}{calls}", False
    case = Evidence(recording, session, recovered, acked, issued, excused)
    names = applicable(recording, session)
    for name in sorted(ORACLES, key=lambda oracle: (oracle[0], int(oracle[1:]))):
        verdict = judge(name, case) if name in names else None
        if verdict is not None:
            yield (
                f"  {name:4} {verdict.outcome}{': ' + verdict.message if verdict.message else ''}",
                verdict.outcome == "broken",
            )


def _findings(loaded: Loaded) -> str:
    return ", ".join(f"{found.kind}@{found.offset}+{found.length}" for found in loaded.findings) or "none"


def _memory(recording: Recording, state: CrashState, disk: Disk, scenario: Scenario) -> Iterator[tuple[str, bool]]:
    remembered, verdicts = look_at(recording, state, disk, product_of(recording.variant), scenario)
    yield "", False
    yield "Memory and the run:", False
    if remembered is not None and remembered.raised:
        yield f"  a start raised {remembered.raised}", False
    if remembered is not None:
        for path, data in sorted(remembered.notes.items()):
            yield f"    {path}: {len(data)} bytes, {data[:TEXT_SHOWN].decode('utf-8', 'replace')!r}", False
        yield f"  turns taken up by a start with a model: {remembered.taken}", False
    for verdict in verdicts:
        words = f": {verdict.message}" if verdict.message else ""
        yield f"  {verdict.oracle:4} {verdict.outcome}{words}", verdict.outcome == "broken"


def _write_out(disk: Disk, folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ReplayError(
            f"{folder}: not empty; a disk is only rebuilt into a new or empty folder, so that nothing of yours is overwritten"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for path, data in visible(disk):
        target = folder / path.lstrip("/")
        if data is None:
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(data)
