"""The process that is killed: appends, spills and replaces for ever, and writes the number of each change to standard output once it returned.

What the history is after ``k`` changes is a function of ``k`` alone, so that whoever looks later knows what must be there.
"""

from __future__ import annotations

import os
import sys

from pseudoclaude.compact.spill import SpillFolder
from pseudoclaude.messages import History, Message, Spill, ToolCall, ToolResult
from pseudoclaude.realworld import RealFileSystem
from pseudoclaude.session import SessionWriter

ROUND = 10
"""Changes in a round: question, answer, call, spilled result, answers and questions, and at last a replace by one message."""
CALL, SPILLED, REPLACE = 3, 4, 0


def message_of(number: int, spill: Spill | None = None) -> Message:
    """The message that change ``number`` appends."""
    place = number % ROUND
    if place == CALL:
        return Message("assistant", "", (ToolCall(f"c{number}", "read", "{}"),), stop="tool_use")
    if place == SPILLED:
        return Message("tool", tool_result=ToolResult(f"c{number - 1}", f"preview {number}", spill=spill))
    return Message("user" if place in (1, 6, 8) else "assistant", f"m {number}")


def spilled_text(number: int) -> str:
    return f"the whole of {number} é 世界\n" * 50


def texts_after(number: int) -> list[str]:
    """What each message of the history after ``number`` changes says."""
    first = number - number % ROUND
    said = [f"upto {first}"] if first else []
    for n in range(first + 1, number + 1):
        said.append(f"call c{n}" if n % ROUND == CALL else f"preview {n}" if n % ROUND == SPILLED else f"m {n}")
    return said


def said_by(history: History) -> list[str]:
    said = []
    for message in history:
        if message.tool_calls:
            said.append(f"call {message.tool_calls[0].id}")
        else:
            said.append(message.tool_result.content if message.tool_result is not None else message.content)
    return said


def number_of(history: History) -> int:
    """After how many changes this is the history."""
    return int(said_by(history)[-1].split()[-1].removeprefix("c")) if history else 0


def main(folder: str) -> None:
    """Go on from what is there until killed."""
    spills = SpillFolder(RealFileSystem(), folder)
    writer = SessionWriter.open(folder)
    number = number_of(writer.loaded.messages)
    os.write(1, f"open {number}\n".encode())
    while True:
        number += 1
        if number % ROUND == REPLACE:
            writer.append_replace("compact", [Message("user", f"upto {number}")])
        elif number % ROUND == SPILLED:
            writer.append_message(message_of(number, spills.store(f"c{number - 1}", spilled_text(number))))
        else:
            writer.append_message(message_of(number))
        os.write(1, f"{number}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1])
