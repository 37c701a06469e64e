"""``pseudoclaude validate``: would a provider refuse this request?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

import msgspec

from pseudoclaude.commands.screen import visible
from pseudoclaude.commands.streams import for_reader
from pseudoclaude.commands.words import count
from pseudoclaude.protocol.check import DIALECTS
from pseudoclaude.protocol.validate import Report, validate_document

STDIN = "-"


def validate(file: str, dialect: str, *, as_json: bool, out: TextIO, err: TextIO) -> int:
    """Judge ``file`` (``-``: standard input).  Returns 0 valid, 1 violations, 2 unreadable or unknown dialect."""
    if dialect not in DIALECTS:
        print(f"pseudoclaude: unknown dialect {dialect!r}; known are {', '.join(DIALECTS)}", file=err)
        return 2
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        print(f"pseudoclaude: {file} cannot be read: {error.strerror or error}", file=err)
        return 2
    report = validate_document(data, dialect)
    if as_json:
        print(for_reader(msgspec.json.format(msgspec.json.encode(report), indent=2).decode(), out), file=out)
    else:
        _print_words(file, report, out, err)
    return report.exit_code


def _print_words(file: str, report: Report, out: TextIO, err: TextIO) -> None:
    if report.unreadable:
        print(visible(f"pseudoclaude: {file} cannot be judged: {report.unreadable}"), file=err)
        return
    for found in report.violations:
        print(visible(f"{found.rule} at {found.path}: {found.message}"), file=out)
        print(f"    rule:   {found.meaning}", file=out)
        print(f"    repair: {found.repair}", file=out)
    verdict = count(len(report.violations), "violation") if report.violations else "valid"
    print(visible(f"{file}: {count(report.messages, 'message')} for {report.dialect}: {verdict}"), file=out)
