"""``python -m simulator.disk.conformance [--scripts N] [--seed N]``: compare, then show that planted differences are found.

Exit status 0: no difference, and every planted one found.  1: otherwise.
"""

from __future__ import annotations

import argparse
import sys

from simulator.disk.conformance import PLANTED, compare

PLANTED_SCRIPTS = 500
"""In so many scripts a planted difference must show."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m simulator.disk.conformance", description=compare.__doc__)
    parser.add_argument("--scripts", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    report = compare(options.scripts, options.seed)
    sys.stdout.write(report.text() + "\n")
    missed = 0
    for planted in PLANTED:
        trial = compare(PLANTED_SCRIPTS, options.seed, simulated=planted, enough=1)
        found = trial.differences
        missed += not found
        sys.stdout.write(
            f"planted {planted.__name__}: {'found' if found else 'NOT found'} in {trial.scripts} scripts\n"
        )
        if found:
            sys.stdout.write(f"{found[0]}\n")
    return 0 if report.held and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
