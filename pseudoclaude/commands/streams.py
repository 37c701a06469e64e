"""Standard output and standard error of a program: what they carry, and how they end.

Promises: a character that the encoding lacks is printed as its escape, never a traceback; a reader that went away (``| head``) ends the
program quietly with ``CLOSED_PIPE``, as a signal would; text of a model or a file goes to a terminal visibly and everywhere else exactly.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from pseudoclaude.commands.screen import visible

CLOSED_PIPE = 141
"""What a shell reports of a program that SIGPIPE ended."""


@contextmanager
def orderly_output() -> Iterator[None]:
    """Around all of a program: keeps the promises above, and raises ``SystemExit`` with ``CLOSED_PIPE`` when the reader is gone."""
    out, err = sys.stdout, sys.stderr
    for stream in (out, err):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    gone = False
    try:
        yield
    except BrokenPipeError:
        gone = True
    except SystemExit as exit_:
        gone = isinstance(
            exit_.__context__, BrokenPipeError
        )  # how typer and rich end a program that nobody reads: with status 1
        if not gone:
            raise
    finally:
        sys.stdout, sys.stderr = out, err  # typer leaves wrappers there
        if any([_is_closed(stream) for stream in (out, err)]) or gone:
            raise SystemExit(CLOSED_PIPE)


def for_reader(text: str, out: TextIO) -> str:
    """``text`` as it may be sent to ``out``: exact, but to a terminal nothing that would steer it."""
    return visible(text) if out.isatty() else text


def _is_closed(stream: TextIO | None) -> bool:
    """Flush; where nobody reads any more, point the stream at nothing, so that what is left in its buffer cannot fail again at the exit."""
    if stream is None:
        return False
    try:
        stream.flush()
    except BrokenPipeError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
        return True
    return False
