"""Scenario: what one run does, which faults it meets, and what is expected.  A YAML file, decoded strictly.

Every mistake in a file is one line that names the file and the path in it; nothing is guessed.  The id of a scenario is ``suite/stem``:
the folder and the file name.  ``schema()`` is the JSON Schema that ``pseudosim schema`` prints for editors.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from pseudoclaude.settings import Settings
from simulator.disk.faults import CallKind, DiskFault
from simulator.replies.script import ProviderSpec
from simulator.values import OracleName

TOOL_BYTES_MAX = 64 << 20
DEFAULT_SUITES = "scenarios"


class ScenarioError(Exception):
    """A scenario that cannot be used: which file, where in it, and why."""


class ToolText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool that always gives back ``text``, ``repeat`` times; or the bytes that ``hex`` spells, which need not be UTF-8.

    ``raises``: it fails with that message instead.  ``kills``: the process is killed while it runs; the next step must be a ``restart``
    with ``kill: true``.
    """

    text: str = ""
    hex: str = ""
    repeat: int = 1
    is_error: bool = False
    raises: str = ""
    kills: bool = False

    def __post_init__(self) -> None:
        if self.repeat < 0:
            raise ValueError(f"repeat is {self.repeat}; it cannot be negative")
        if len(self.text.encode() or self.hex) * self.repeat > TOOL_BYTES_MAX:
            raise ValueError(
                f"repeat is {self.repeat}: more than {TOOL_BYTES_MAX:,} bytes of tool output are not simulated"
            )
        if self.text and self.hex:
            raise ValueError("a tool gives back text or hex, not both")
        try:
            bytes.fromhex(self.hex)
        except ValueError:
            raise ValueError(f"hex is {self.hex!r}; it is pairs of hexadecimal digits") from None

    @property
    def output(self) -> str | bytes:
        """What the tool gives back."""
        return bytes.fromhex(self.hex) * self.repeat if self.hex else self.text * self.repeat


class StoreFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files in the two stores of memory: name (``MEMORY.md``, ``build.md``) -> whole text.  In an edit, null removes the file."""

    project: dict[str, str | None] = {}
    user: dict[str, str | None] = {}

    def __post_init__(self) -> None:
        for name in (*self.project, *self.user):
            if "/" in name or not name.endswith(".md"):
                raise ValueError(f"{name!r} is no name for a file in a store of memory, such as MEMORY.md")


class KillAt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the process dies: while the model is ``asked``, or at the ``nth`` disk call of a kind after its answer, before the call."""

    call: CallKind | Literal["asked"] = "asked"
    nth: int = 1


class UpdateMeanwhile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to the memory update after a turn, which else runs at the turn's end.

    ``later``: it waits until the process ends, and is lost when that is a kill.  ``edit``: a person edits the stores while the model is asked.
    ``kill``: the process dies there; the next step must be a ``restart`` with ``kill: true``.
    """

    later: bool = False
    edit: StoreFiles = StoreFiles()
    kill: KillAt | None = None

    def __post_init__(self) -> None:
        if self.later and (self.kill or self.edit != StoreFiles()):
            raise ValueError("an update that waits (later) cannot be edited or killed in this step")


class UserStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user says something, and the turn runs to its end (or to the error in ``fails``)."""

    user: str
    fails: str = ""
    memory: UpdateMeanwhile = UpdateMeanwhile()


class CompactStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user asks for compaction, with ``compact`` as instructions (may be empty)."""

    compact: str
    fails: str = ""


class Restart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the process ends before the next one starts: ``kill`` closes nothing."""

    kill: bool = False
    dangling: Literal["trim", "answer"] = "answer"


class RestartStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The process ends and a new one resumes the session."""

    restart: Restart


class NewSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new session beside the old one."""

    name: str = ""


class NewSessionStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    new_session: NewSession


class EditStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person edits the stores of memory."""

    edit: StoreFiles


Step = UserStep | CompactStep | RestartStep | NewSessionStep | EditStep
_STEP_KEYS: dict[str, type[Step]] = {
    "user": UserStep,
    "compact": CompactStep,
    "restart": RestartStep,
    "new_session": NewSessionStep,
    "edit": EditStep,
}


class Crash(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which crashes to try.  ``during``: at every point of the run, or only inside replaces (their writes and syncs).

    ``again``: on every disk the product is also crashed during its recovery and the append after it, at every point.
    """

    models: tuple[Literal["kill", "posix-min"], ...] = ("kill", "posix-min")
    during: Literal["all", "replace"] = "all"
    again: bool = False


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes wrong.  ``disk`` faults hit the run itself; ``crash`` says where it is cut afterwards."""

    crash: Crash | None = None
    disk: tuple[DiskFault, ...] = ()


class Expect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``oracles``: all that apply, or a list.  ``facts``: numbers the run itself must show."""

    oracles: Literal["all"] | tuple[OracleName, ...] = "all"
    facts: dict[str, int] = {}


class Scenario(msgspec.Struct, frozen=True):
    """One scenario.  ``id`` is ``suite/stem``; ``content_hash`` the first 8 hex digits of the file's SHA-256; ``folder`` where relative
    file names in it start."""

    id: str
    content_hash: str
    folder: str
    why: str
    settings: Settings
    tools: dict[str, ToolText]
    provider: ProviderSpec
    steps: tuple[Step, ...]
    faults: Faults
    expect: Expect
    memory: StoreFiles | None = None
    """What stands in the stores of memory before the run."""

    @property
    def remembers(self) -> bool:
        """Whether memory takes part."""
        return self.memory is not None or bool(self.provider.memory)


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    why: str
    provider: ProviderSpec
    steps: tuple[dict[str, Any], ...]
    settings: Settings = Settings()
    tools: dict[str, ToolText] = {}
    faults: Faults = Faults(crash=Crash())
    expect: Expect = Expect()
    memory: StoreFiles | None = None

    def __post_init__(self) -> None:
        if self.memory is not None and None in (*self.memory.project.values(), *self.memory.user.values()):
            raise ValueError("null removes a file, and before the run there is none - at `$.memory`")


def load_scenario(path: str | Path) -> Scenario:
    """Read one scenario file.  Raises ``ScenarioError``, one line that says where the mistake is."""
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ScenarioError(f"{file}: cannot be read: {error.strerror or error}") from error
    try:
        document = msgspec.convert(_yaml(data), _Document)
        steps = tuple(_step(step, index) for index, step in enumerate(document.steps))
        if not steps:
            raise ScenarioError("a scenario needs at least one step - at `$.steps`")
    except (yaml.YAMLError, msgspec.ValidationError, ScenarioError, ValueError) as error:
        raise ScenarioError(f"{file}: {_one_line(error)}") from error
    except RecursionError as error:
        raise ScenarioError(f"{file}: nested deeper than a reader can follow") from error
    return Scenario(
        id=f"{file.resolve().parent.name}/{file.stem}",
        content_hash=hashlib.sha256(data).hexdigest()[:8],
        folder=str(file.resolve().parent),
        why=document.why,
        settings=document.settings,
        tools=document.tools,
        provider=document.provider,
        steps=steps,
        faults=document.faults,
        expect=document.expect,
        memory=document.memory,
    )


def find_scenarios(paths: tuple[str, ...]) -> list[Path]:
    """All scenario files under ``paths`` (files or folders), sorted.  Raises ``ScenarioError`` for a path that holds none."""
    found: dict[Path, None] = {}
    for name in paths:
        path = Path(name)
        if path.is_dir():
            files = sorted(p for p in path.rglob("*.yaml") if p.parent.name != "recordings")
        elif path.exists():
            files = [path]
        else:
            raise ScenarioError(f"{name}: no such file or folder")
        if not files:
            raise ScenarioError(f"{name}: holds no scenario (*.yaml)")
        found.update(dict.fromkeys(files))
    return list(found)


def schema() -> dict[str, Any]:
    """JSON Schema of a scenario file."""
    (document, *steps), components = msgspec.json.schema_components(
        [_Document, *_STEP_KEYS.values()], ref_template="#/$defs/{name}"
    )
    components["_Document"]["properties"]["steps"] = {"type": "array", "minItems": 1, "items": {"anyOf": steps}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **document,
        "$defs": dict(sorted(components.items())),
    }


def _yaml(data: bytes) -> Any:
    return yaml.load(data, Loader=_StrictLoader)


class _StrictLoader(yaml.SafeLoader):
    """YAML without its surprise of keeping the last of two equal keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return dict(super().construct_mapping(node, deep))


def _step(value: dict[str, Any], index: int) -> Step:
    keys = [key for key in value if key in _STEP_KEYS]
    if len(keys) != 1:
        known = ", ".join(_STEP_KEYS)
        raise ScenarioError(
            f"a step has exactly one of {known}; this one has {', '.join(map(str, value)) or 'none'} - at `$.steps[{index}]`"
        )
    if keys[0] == "compact" and value["compact"] is None:
        value = {**value, "compact": ""}
    try:
        return msgspec.convert(value, _STEP_KEYS[keys[0]])
    except msgspec.ValidationError as error:
        raise ScenarioError(str(error).replace("`$", f"`$.steps[{index}]")) from error


def _one_line(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"not YAML: {error.problem} - at line {mark.line + 1}, column {mark.column + 1}"
    line = " ".join(str(error).split())
    return line if "`$" in line or not isinstance(error, msgspec.ValidationError) else f"{line} - at `$`"
