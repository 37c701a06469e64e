"""The system prompt: fixed for a session, because a changed prompt voids caches and signed thinking (rule A45).

A session outlives its process, and the memory index changes between two processes.  So the prompt is kept in a file beside the log, written
once when the session begins, and a resumed session goes on with it.  A session without that file (older, forked, or the file is
damaged) gets the prompt of today: then only a cache is lost, or signed thinking that the provider drops.

The memory index stands in the prompt between marks, as notes and not as orders.  It never enters the Conversation.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable

from pseudoclaude.errors import MemoryFailed
from pseudoclaude.memory.files import put_file, read_file
from pseudoclaude.ports import FileSystem

BASE = """\
You are a coding agent. You work in the user's project with the tools you are given.
Large tool results are kept in files and shown to you as previews; read the file when you need the rest.
A tool result that says its outcome is unknown belongs to a call that was interrupted: the tool may or may not have run. \
Look before you repeat it."""

FILE_NAME = "system-prompt"


def system_prompt(memory_section: str = "", *, folder: str = "") -> str:
    """The whole prompt.  ``memory_section`` is ``MemoryManager.prompt_section``, already introduced and wrapped; empty leaves it out."""
    parts = [BASE]
    if folder:
        parts.append(f"The project folder is {folder}.")
    if memory_section:
        parts.append(memory_section)
    return "\n\n".join(parts)


def session_prompt(fs: FileSystem, session_folder: str, fresh: Callable[[], str]) -> str:
    """The prompt that this session began with, or ``fresh()``, kept from now on.

    Call it with the session locked.  Never raises for the file: a prompt that cannot be kept or read is made anew by the next process.
    """
    try:
        kept = _kept(read_file(fs, posixpath.join(session_folder, FILE_NAME)))
        if kept is not None:
            return kept
        prompt = fresh()
        data = prompt.encode("utf-8")
        put_file(fs, session_folder, FILE_NAME, _digest(data) + b"\n" + data)
    except MemoryFailed:
        # Nothing of the session depends on this file; see the module docstring for what is lost without it.
        return fresh()
    return prompt


def _kept(content: bytes | None) -> str | None:
    """The file is a line with the SHA-256 of the prompt, then the prompt: a torn one is known as such."""
    digest, _, prompt = (content or b"").partition(b"\n")
    return prompt.decode("utf-8") if digest == _digest(prompt) else None


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode("ascii")
