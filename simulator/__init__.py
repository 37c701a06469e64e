"""A deterministic fault-injection simulator for the PseudoClaude context system."""

from simulator.run import ScenarioResult, run_scenario
from simulator.scenario import Scenario, ScenarioError, load_scenario

__all__ = ["Scenario", "ScenarioError", "ScenarioResult", "load_scenario", "run_scenario"]
