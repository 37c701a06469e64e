"""``pseudosim record SCENARIO``: run a scenario's steps against the emulator or a real provider, and keep the HTTP traffic, scrubbed.

With the emulator the scenario's ``script`` is what it answers, and the same scenario gives the same file again, byte for byte.  The product,
its system prompt and the scenario's tools are those of any run, so that a scenario that names the cassette sends exactly the recorded
requests.  A real provider is asked each thing once: time stands still in a simulated run, and a retry would not wait.
"""

from __future__ import annotations

from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from msgspec.structs import replace

from pseudoclaude.errors import PseudoClaudeError
from pseudoclaude.ports import Provider
from pseudoclaude.providers.by_name import ADAPTERS, make_adapter
from simulator.record import RunBroken, record
from simulator.replies.emulator import running_emulator
from simulator.replies.recording import PUBLIC_ADDRESSES, recording
from simulator.scenario import Scenario, ScenarioError, load_scenario
from simulator.world import World

EMULATOR = "emulator"
EMULATOR_KEY = "emulator-needs-no-key"
EMULATOR_MODEL = "emulated-model"


def record_cassette(
    scenario_file: str | Path,
    out: str | Path,
    *,
    provider: str = EMULATOR,
    model: str = "",
    stream: bool = True,
    base_url: str | None = None,
) -> Scenario:
    """Record ``scenario_file`` into ``out``, a new file, which is written only when the run went through.

    ``provider`` is ``emulator`` or the name of the scenario's dialect, whose key is taken from the environment; ``base_url`` is where that
    API is, if not at its own address.  Raises ``ScenarioError`` for what cannot be recorded, the provider's own error, or ``RunBroken``.
    """
    scenario = load_scenario(scenario_file)
    _refuse(scenario, Path(out), provider, model)
    dialect = scenario.settings.dialect
    notes = {
        "scenario": scenario.id,
        "dialect": dialect,
        "sdk": f"{_package(dialect)} {version(_package(dialect))}",
        "recorder": f"vcrpy {version('vcrpy')}",
    }
    if provider != EMULATOR:
        address = base_url or PUBLIC_ADDRESSES[dialect]
        notes["recorded_from"] = f"{PUBLIC_ADDRESSES[dialect]}, model {model}"
        once = replace(scenario, settings=replace(scenario.settings, request_attempts=1))
        with closing(make_adapter(dialect, model, base_url=address, stream=stream)) as live:
            _run(once, live, out, address, notes)
        return scenario
    notes["recorded_from"] = "the project's own emulator (simulator/replies/emulator.py), not a provider"
    with running_emulator(scenario.provider) as served:
        url = served.url(dialect)
        name = model or scenario.provider.model or EMULATOR_MODEL
        with closing(make_adapter(dialect, name, api_key=EMULATOR_KEY, base_url=url, stream=stream)) as emulated:
            _run(scenario, emulated, out, url, notes)
    return scenario


def record_file(scenario_file: Path, out: Path, provider: str, model: str, stream: bool) -> int:
    """``record_cassette``, and say what was done.  Exit status 0; 1 when the run went against the scenario."""
    try:
        scenario = record_cassette(scenario_file, out, provider=provider, model=model, stream=stream)
    except RunBroken as error:
        print(f"Nothing was recorded: {error}")
        return 1
    print(f"Recorded {scenario.id} from {provider} into {out}; look through it before it goes anywhere")
    return 0


def _refuse(scenario: Scenario, out: Path, provider: str, model: str) -> None:
    dialect = scenario.settings.dialect
    if provider not in (EMULATOR, *ADAPTERS):
        raise ScenarioError(
            f"there is no provider {provider!r} to record; there are {', '.join((EMULATOR, *ADAPTERS))}"
        )
    if provider not in (EMULATOR, dialect):
        raise ScenarioError(f"{scenario.id} speaks {dialect}, not {provider} - at `$.settings.dialect`")
    if provider != EMULATOR and not model:
        raise ScenarioError(f"{provider} needs to know which model: write --model NAME")
    if provider == EMULATOR and scenario.provider.cassette is not None:
        raise ScenarioError(f"{scenario.id} replays a cassette; to record one it needs a script - at `$.provider`")
    if out.exists():
        raise ScenarioError(f"{out}: exists; a recording never replaces a file. Remove it, or record to another name")
    if not out.parent.is_dir():
        raise ScenarioError(f"{out.parent}: no such folder")


def _run(scenario: Scenario, provider: Provider, out: str | Path, served_at: str, provenance: dict[str, str]) -> None:
    world = World(scenario, 0, provider=provider)
    try:
        with recording(out, served_at=served_at, dialect=scenario.settings.dialect, provenance=provenance):
            record(scenario, world=world)
    except RunBroken as error:
        if isinstance(error.__cause__, PseudoClaudeError):
            raise error.__cause__ from None
        raise


def _package(dialect: str) -> str:
    return "anthropic" if dialect == "anthropic" else "openai"
