"""``python -m simulator.disk.conformance [--scripts N] [--seed N]``: compare, then show that planted differences are found.

Exit status 0: no difference, and every planted one found.  1: otherwise.
"""

from __future__ import annotations

import argparse
import sys

from simulator.disk.conformance import PLANTED, compare

PLANTED_SCRIPTS = 150
"""Enough for each planted difference to show in several scripts."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m simulator.disk.conformance", description=compare.__doc__)
    parser.add_argument("--scripts", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    report = compare(options.scripts, options.seed)
    sys.stdout.write(report.text() + "\n")
    missed = 0
    for planted in PLANTED:
        found = compare(PLANTED_SCRIPTS, options.seed, simulated=planted).differences
        missed += not found
        sys.stdout.write(f"planted {planted.__name__}: found in {len(found)} of {PLANTED_SCRIPTS} scripts\n")
        if found:
            sys.stdout.write(f"{found[0]}\n")
    return 0 if report.held and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
