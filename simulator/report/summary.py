"""``summary.md``: one page that fits a CI job summary.  Speed stands here and on the terminal, never in ``report.json``."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.report.document import half_written, summary_of, tally_broken
from simulator.run import ScenarioResult
from simulator.values import GUARANTEES

FAILURES_SHOWN = 10


def summary_markdown(
    results: Sequence[ScenarioResult], *, variant: str, comparison: Sequence[tuple[ScenarioResult, ScenarioResult]]
) -> str:
    """The page as text."""
    totals = summary_of(results)
    good = not totals["broken"] and not totals["not_run"]
    lines = [
        f"# PseudoClaude crash report: {'all held' if good else 'NOT all held'}",
        "",
        f"Variant `{variant}`. {totals['scenarios']} scenarios, {totals['states']:,} crash states, {totals['trees']:,} distinct disks, "
        f"{totals['checks']:,} verdicts, {totals['requests_checked']:,} model requests checked.",
        "",
        "| scenario | verdict | states | disks | verdicts | broken |",
        "|---|---|--:|--:|--:|--:|",
        *[_row(result) for result in results],
        "",
        *_oracles(results),
        *_comparison(comparison),
        *_problems(results),
        *_left_out(results),
        *_speed(results),
    ]
    return "\n".join(lines) + "\n"


def speed_of(results: Sequence[ScenarioResult]) -> tuple[int, float]:
    """Deep checks made, and the seconds spent on the scenarios that made them."""
    return sum(result.sweep.deep_checks for result in results), sum(result.seconds for result in results)


def _row(result: ScenarioResult) -> str:
    sweep = result.sweep
    return (
        f"| {result.id} | {result.verdict} | {sweep.states:,} | {sweep.trees:,} | {sweep.checks:,} | {sweep.broken:,} |"
    )


def _oracles(results: Sequence[ScenarioResult]) -> list[str]:
    names = sorted(
        {name for result in results for name in result.sweep.oracles}, key=lambda name: (name[0] != "O", int(name[1:]))
    )
    if not names:
        return []
    rows = []
    for name in names:
        tallies = [result.sweep.oracles[name] for result in results if name in result.sweep.oracles]
        rows.append(
            f"| {name} | {GUARANTEES[name]} | {sum(t.held for t in tallies):,} | {sum(t.broken for t in tallies):,} "
            f"| {sum(t.not_run for t in tallies):,} |"
        )
    return ["| oracle | what it asks | held | broken | not run |", "|---|---|--:|--:|--:|", *rows, ""]


def _comparison(comparison: Sequence[tuple[ScenarioResult, ScenarioResult]]) -> list[str]:
    if not comparison:
        return []
    lines = [
        "## Both log protocols, side by side",
        "",
        "*Older*: a replace is a marker, then the messages one by one, each synced. *v1*: a replace is one record. A *mixture* is a state in "
        "which a history loads that is neither the one before the replace nor the one after it. For the older protocol, being caught is the "
        "expected result.",
        "",
        "| scenario | protocol | states | disks | mixtures | lost acknowledged | raised | protocol-invalid |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for product, older in comparison:
        for name, result in (("v1", product), ("older", older)):
            sweep = result.sweep
            lines.append(
                f"| {result.id} | {name} | {sweep.states:,} | {sweep.trees:,} | {sweep.mixtures:,} | {sweep.lost:,} "
                f"| {tally_broken(result, 'O1')} | {tally_broken(result, 'O2')} |"
            )
    token = next((token for _, older in comparison if (token := half_written(older))), "")
    if token:
        lines += [
            "",
            "See one half-written snapshot of the older protocol:",
            "",
            f"    pseudosim replay {token} --keep DIR",
        ]
    return [*lines, ""]


def _problems(results: Sequence[ScenarioResult]) -> list[str]:
    lines: list[str] = []
    for result in results:
        if result.problem:
            lines.append(f"- **{result.id}**: {result.problem}")
        for failure in result.sweep.failures[:FAILURES_SHOWN]:
            sites = ", ".join(failure.call_sites)
            lines.append(
                f"- **{result.id}** {failure.oracle} ({failure.model}): {failure.message}. In flight: {sites or 'nothing'}."
            )
            lines.append(f"  `pseudosim replay {failure.token} --keep DIR`")
        more = result.sweep.broken - min(FAILURES_SHOWN, len(result.sweep.failures))
        if more > 0:
            lines.append(
                f"- {result.id}: {more:,} more broken verdicts; `report.json` has the tokens of the first ones."
            )
    return ["## What broke", "", *lines, ""] if lines else []


def _left_out(results: Sequence[ScenarioResult]) -> list[str]:
    subsets = sum(result.sweep.bounds.subsets_left_out for result in results)
    tears = sum(result.sweep.bounds.tears_left_out for result in results)
    if not subsets and not tears:
        return ["The enumeration left nothing out of its classes.", ""]
    return [
        f"Left out by the bounds of the enumeration: {subsets:,} subsets, {tears:,} tear points (`--full` tries every byte).",
        "",
    ]


def _speed(results: Sequence[ScenarioResult]) -> list[str]:
    deep, seconds = speed_of(results)
    return (
        [f"Speed: {deep:,} deep checks in {seconds:.2f} s on one core, {deep / seconds:,.0f} a second."]
        if deep and seconds
        else []
    )
