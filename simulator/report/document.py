"""``report.json``: schema 1, sorted, without a clock - the same inputs give the same bytes.

Top level: ``schema``, ``variant``, ``seed``, ``summary`` {scenarios, states, trees, checks, broken, not_run, requests_checked}, ``scenarios`` (a
list of {id, verdict, states, trees, checks, oracles, samples, failures, facts, models, excused, left_out, problem}) and ``comparison`` (the
same scenarios on the older log protocol, where being caught is the expected result).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from simulator.run import ScenarioResult

SCHEMA = 1


def report_bytes(
    results: Sequence[ScenarioResult],
    *,
    variant: str,
    seed: int,
    comparison: Sequence[tuple[ScenarioResult, ScenarioResult]],
) -> bytes:
    """The whole document.  ``comparison``: (product, older protocol) for each scenario that was run on both."""
    document = {
        "schema": SCHEMA,
        "variant": variant,
        "seed": seed,
        "summary": summary_of(results),
        "scenarios": [_scenario(result) for result in results],
        "comparison": [
            {"id": product.id, "product": _protocol(product), "older_log_protocol": _protocol(older)}
            for product, older in comparison
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=1) + b"\n"


def summary_of(results: Sequence[ScenarioResult]) -> dict[str, int]:
    """Totals.  ``broken`` and ``not_run`` count scenarios."""
    return {
        "scenarios": len(results),
        "states": sum(result.sweep.states for result in results),
        "trees": sum(result.sweep.trees for result in results),
        "checks": sum(result.sweep.checks for result in results),
        "broken": sum(result.verdict == "broken" for result in results),
        "not_run": sum(result.verdict == "not_run" for result in results),
        "requests_checked": sum(result.requests_checked for result in results),
    }


def _scenario(result: ScenarioResult) -> dict[str, Any]:
    sweep = result.sweep
    return {
        "id": result.id,
        "why": result.why,
        "verdict": result.verdict,
        "problem": result.problem,
        "states": sweep.states,
        "trees": sweep.trees,
        "checks": sweep.checks,
        "oracles": {name: msgspec.to_builtins(tally) for name, tally in sweep.oracles.items()},
        "samples": sweep.samples,
        "failures": [msgspec.to_builtins(failure) for failure in sweep.failures],
        "failures_counted": sweep.broken,
        "facts": result.facts,
        "models": sweep.model_states,
        "excused": sweep.excused,
        "left_out": {"subsets": sweep.bounds.subsets_left_out, "tears": sweep.bounds.tears_left_out},
    }


def _protocol(result: ScenarioResult) -> dict[str, Any]:
    sweep = result.sweep
    return {
        "states": sweep.states,
        "trees": sweep.trees,
        "mixtures": sweep.mixtures,
        "lost_acknowledged": sweep.lost,
        "raised": tally_broken(result, "O1"),
        "protocol_invalid": tally_broken(result, "O2"),
        "token": half_written(result),
    }


def tally_broken(result: ScenarioResult, oracle: str) -> int:
    """How often one oracle broke."""
    tally = result.sweep.oracles.get(oracle)
    return 0 if tally is None else tally.broken


def half_written(result: ScenarioResult) -> str:
    """Token of a state in which part of a snapshot loads, one with some of it if there is one; empty if none."""
    tokens = [failure for failure in result.sweep.failures if failure.oracle == "O6"]
    some = [failure for failure in tokens if not failure.message.startswith("0 ")]
    return next((failure.token for failure in some or tokens), "")
