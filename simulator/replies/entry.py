"""``--provider script:FILE``, ``--provider cassette:FILE`` and ``pseudosim serve FILE``: replies from files.

A script file is the ``provider:`` part of a scenario, or a whole scenario.  ``script`` and ``cassette`` are registered in the entry-point group
``pseudoclaude.providers``; each is called with what stands behind the colon, and with ``model`` where the user names one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from pseudoclaude.ports import Provider
from pseudoclaude.settings import Settings
from simulator.replies.errors import ReplyError
from simulator.replies.replay import cassette_provider
from simulator.replies.script import ProviderSpec, ScriptEntry
from simulator.replies.scripted import ScriptedProvider

T = TypeVar("T")
MEMORY_REQUESTS_MAX = 1_000
"""How often a script that says nothing of memory may be asked what to remember."""


class ScriptUnreadable(ReplyError):
    """A script file is missing or not what ``ProviderSpec`` describes."""


def script(file: str, *, model: str = "") -> Provider:
    """``script:FILE``.  A script without a ``memory`` queue remembers nothing, since the command line asks after every turn.

    Raises ``ScriptUnreadable``, ``CassetteUnreadable``.
    """
    spec, dialect = read_script(file)
    if spec.cassette is not None:
        return cassette_provider(Path(file).parent / spec.cassette, model=model or None, match=spec.match)
    memory = spec.memory or (ScriptEntry(text="[]"),) * MEMORY_REQUESTS_MAX
    return ScriptedProvider(msgspec.structs.replace(spec, model=model or spec.model, memory=memory), dialect)


def cassette(file: str, *, model: str = "") -> Provider:
    """``cassette:FILE``, compared by projection: a prompt names the folder it works in, so no two runs are equal to the byte.

    Raises ``CassetteUnreadable``.
    """
    return cassette_provider(file, model=model or None, match="projection")


def read_script(path: str | Path) -> tuple[ProviderSpec, str]:
    """The replies in a file, and the dialect they are meant for.  Raises ``ScriptUnreadable``, one line with file and place."""
    try:
        document: Any = yaml.safe_load(Path(path).read_bytes())
    except OSError as error:
        raise _unreadable(f"The script cannot be opened: {error.strerror}", path) from None
    except yaml.YAMLError as error:
        raise _unreadable(f"The script is not YAML: {' '.join(str(error).split())}", path) from None
    try:
        if not isinstance(document, dict) or "provider" not in document:
            return msgspec.convert(document, ProviderSpec), Settings().dialect
        settings = _part(document.get("settings") or {}, Settings, "settings")
        return _part(document["provider"], ProviderSpec, "provider"), settings.dialect
    except ValueError as error:  # msgspec's, and what our own settings refuse
        raise _unreadable(f"The script cannot be used: {error}", path) from None


def _part(value: Any, kind: type[T], name: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace("`$", f"`$.{name}")) from None


def _unreadable(what: str, path: str | Path) -> ScriptUnreadable:
    return ScriptUnreadable(what, where=str(path), do_next="Correct the file")
