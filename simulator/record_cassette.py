"""Record a cassette: run a scenario's steps against the emulator (or a real provider) and keep the HTTP traffic, scrubbed.

``python -m simulator.record_cassette SCENARIO --out FILE`` made the project's own cassettes, and makes them again byte for byte.  The
scenario's ``script:`` is what the emulator answers; the product, its system prompt and its tools are the same as in any run, so that
a scenario that names the cassette sends exactly the recorded requests.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from pseudoclaude.ports import Provider
from pseudoclaude.providers.by_name import ADAPTERS, make_adapter
from simulator.record import record
from simulator.replies.emulator import running_emulator
from simulator.replies.recording import PUBLIC_ADDRESSES, recording
from simulator.scenario import Scenario, load_scenario
from simulator.world import World

EMULATOR = "emulator"
EMULATOR_KEY = "emulator-needs-no-key"
EMULATOR_MODEL = "emulated-model"


def record_cassette(
    scenario_file: str | Path, out: str | Path, *, provider: str = EMULATOR, model: str = "", stream: bool = True
) -> None:
    """Record ``scenario_file`` into ``out``.

    ``provider`` is ``emulator`` or the name of a dialect, whose key is taken from the environment.  Raises what a run raises; ``out`` is
    written only when the run went through.
    """
    scenario = load_scenario(scenario_file)
    dialect = scenario.settings.dialect
    notes = {
        "scenario": scenario.id,
        "dialect": dialect,
        "sdk": f"{_package(dialect)} {version(_package(dialect))}",
        "recorder": f"vcrpy {version('vcrpy')}",
    }
    if provider != EMULATOR:
        address = PUBLIC_ADDRESSES[provider]
        with closing(make_adapter(provider, model, stream=stream)) as live:
            _run(scenario, live, out, address, {**notes, "recorded_from": f"{address}, model {model}"})
        return
    notes["recorded_from"] = "the project's own emulator (simulator/replies/emulator.py), not a provider"
    with running_emulator(scenario.provider) as served:
        url = served.url(dialect)
        name = model or scenario.provider.model or EMULATOR_MODEL
        with closing(make_adapter(dialect, name, api_key=EMULATOR_KEY, base_url=url, stream=stream)) as emulated:
            _run(scenario, emulated, out, url, notes)


def _run(scenario: Scenario, provider: Provider, out: str | Path, served_at: str, provenance: dict[str, str]) -> None:
    world = World(scenario, 0, provider=provider)
    with recording(out, served_at=served_at, dialect=scenario.settings.dialect, provenance=provenance):
        record(scenario, world=world)


def _package(dialect: str) -> str:
    return "anthropic" if dialect == "anthropic" else "openai"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m simulator.record_cassette", description="Record a scenario as a cassette."
    )
    parser.add_argument("scenario", help="scenario file with a script")
    parser.add_argument("--out", required=True, help="cassette file to write")
    parser.add_argument("--provider", default=EMULATOR, choices=[EMULATOR, *ADAPTERS])
    parser.add_argument("--model", default="")
    parser.add_argument("--plain", action="store_true", help="without streaming")
    given = parser.parse_args(arguments)
    record_cassette(given.scenario, given.out, provider=given.provider, model=given.model, stream=not given.plain)
    sys.stdout.write(f"Recorded {given.scenario} into {given.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
