"""What people see of a turn: streaming text, tools, notices, and the question before a change.

Nothing that a model, a tool or a file says may steer the terminal: control characters are shown, not sent, so that a question cannot be
painted over by what it asks about.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import regex
from rich.console import Console
from rich.text import Text

from pseudoclaude.commands.words import count
from pseudoclaude.errors import ProviderError
from pseudoclaude.messages import ToolCall, ToolResult
from pseudoclaude.ports import Tool
from pseudoclaude.runner import Compacted, Event, Notice, Replied, ToolFinished, ToolStarted, TurnEnded
from pseudoclaude.text import cut_graphemes

ARGUMENTS_BYTES_MAX = 400
QUESTION_BYTES_MAX = 4_000
RESULT_BYTES_MAX = 160
_STEERING = regex.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_ENDINGS = {
    "max_tokens": "The reply was cut off at the output limit.",
    "refusal": "The model refused.",
    "requests": "",
}


def visible(text: str) -> str:
    """``text`` with what would steer a terminal made visible: ``␛`` for escape, ``<U+202E>`` for a direction override."""
    return _STEERING.sub(lambda found: _name(found.group()), text)


def _name(character: str) -> str:
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else f"<U+{code:04X}>"


class Screen:
    """Prints to ``console``.  ``ask`` reads one answer of the user."""

    def __init__(self, console: Console, ask: Callable[[str], str] = input) -> None:
        self.console = console
        self._ask = ask
        self._in_text = False
        """The cursor stands behind text of the model, not at the start of a line."""
        self._always: dict[str, None] = {}

    # --- events

    def text(self, piece: str) -> None:
        """A piece of the reply, as it arrives."""
        if piece:
            self._in_text = not piece.endswith("\n")
        self.console.out(visible(piece), end="", highlight=False)

    def show(self, event: Event) -> None:
        """One event of a turn."""
        match event:
            case Replied():
                self._end_text()
            case ToolStarted(call):
                self.line(f"● {call.name} {_short_arguments(call)}", "cyan")
            case ToolFinished(_, result):
                self.line(f"  {_short_result(result)}", "red" if result.is_error else "dim")
            case Compacted(output):
                self._compacted(output)
            case Notice(text):
                self.line(text, "yellow")
            case TurnEnded(stop, _):
                if _ENDINGS.get(stop):
                    self.line(_ENDINGS[stop], "yellow")

    def _compacted(self, output: Any) -> None:
        if output.offloaded_count:
            self.line(f"{_moved(output.offloaded_count)}", "dim")
        if output.triggered_layer2:
            self.line(f"Context compacted: {output.before_tokens:,} to {count(output.after_tokens, 'token')}.", "dim")
        if output.summary_error is not None:
            self.line(f"Compaction failed: {output.summary_error}", "yellow")

    # --- lines

    def line(self, text: str, style: str = "") -> None:
        """A line of our own, on a new line whatever stood before."""
        self._end_text()
        self.console.print(Text(visible(text), style=style), highlight=False, soft_wrap=True)

    def progress(self, text: str) -> None:
        self.line(text, "yellow")

    def retry(self, failure: ProviderError, seconds: float) -> None:
        self.line(f"{failure.what}. Trying again in {seconds:.1f} s.", "yellow")

    def error(self, error: BaseException) -> None:
        self.line(f"pseudoclaude: {error}", "red")

    def _end_text(self) -> None:
        if self._in_text:
            self._in_text = False
            self.console.out("")

    # --- the question

    def allow(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Ask before a change.  ``always`` counts for this tool until the program ends."""
        name = tool.spec.name
        if name in self._always:
            return True
        self._end_text()
        for key, value in arguments.items():
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            cut = cut_graphemes(shown, QUESTION_BYTES_MAX)
            more = f"\n[… {count(len(shown) - len(cut), 'more character')}]" if len(cut) < len(shown) else ""
            self.line(f"  {key}: {cut}{more}", "bold")
        while True:
            try:
                answer = self._ask(f"Allow {visible(name)}? [y]es, [n]o, [a]lways: ").strip().lower()
            except EOFError:
                return False
            if answer in ("y", "yes", "a", "always"):
                if answer[0] == "a":
                    self._always[name] = None
                return True
            if answer in ("n", "no"):
                return False


def _moved(results: int) -> str:
    return (
        "1 large tool result was moved to a file."
        if results == 1
        else f"{results:,} large tool results were moved to files."
    )


def _short_arguments(call: ToolCall) -> str:
    cut = cut_graphemes(call.arguments.replace("\n", " "), ARGUMENTS_BYTES_MAX)
    return cut + ("…" if len(cut) < len(call.arguments) else "")


def _short_result(result: ToolResult) -> str:
    """The first line, and the last one too, where a command says how it ended."""
    first, *more = (_short_line(line) for line in result.content.strip().split("\n"))
    return f"{first}  (+{count(len(more), 'line')})  {more[-1]}" if more else first


def _short_line(line: str) -> str:
    cut = cut_graphemes(line, RESULT_BYTES_MAX)
    return cut + ("…" if len(cut) < len(line) else "")
