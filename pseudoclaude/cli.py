"""The ``pseudoclaude`` command line: wiring only.

Exit status 2 is a usage error; every other status is the command's own and stands in its help.
"""

from __future__ import annotations

import sys

import typer

from pseudoclaude.errors import PseudoClaudeError

app = typer.Typer(
    name="pseudoclaude",
    help="A coding agent whose context survives crashes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def main() -> None:
    """Entry point.  An error of ours is one line on standard error and status 2, never a traceback."""
    try:
        app()
    except PseudoClaudeError as error:
        print(f"pseudoclaude: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
