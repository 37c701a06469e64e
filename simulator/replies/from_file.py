"""Scripts and cassettes as providers of the command line: ``--provider script:FILE``, ``cassette:FILE``, ``pseudosim serve FILE``.

A script file is the ``provider:`` part of a scenario, or a whole scenario.  The two functions at the end are registered in the
entry-point group ``pseudoclaude.providers``; each is called with what stands behind the colon, and the model or None.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from pseudoclaude.ports import Provider
from pseudoclaude.settings import Settings
from simulator.replies.errors import ScriptUnreadable
from simulator.replies.replay import cassette_provider
from simulator.replies.script import ProviderSpec
from simulator.replies.scripted import ScriptedProvider

T = TypeVar("T")


def read_script(path: str | Path) -> tuple[ProviderSpec, str]:
    """The replies in a file, and the dialect they are meant for.  Raises ``ScriptUnreadable``, one line with file and path."""
    try:
        document = yaml.safe_load(Path(path).read_bytes())
    except OSError as error:
        raise _unreadable(f"The script cannot be opened: {error.strerror}", path) from None
    except yaml.YAMLError as error:
        raise _unreadable(f"The script is not YAML: {' '.join(str(error).split())}", path) from None
    try:
        if not isinstance(document, dict) or "provider" not in document:
            return msgspec.convert(document, ProviderSpec), Settings().dialect
        settings: Any = document.get("settings") or {}
        return _part(document["provider"], ProviderSpec, "provider"), _part(settings, Settings, "settings").dialect
    except ValueError as error:  # msgspec's, and what our own settings refuse
        raise _unreadable(f"The script cannot be used: {error}", path) from None


def script_from_file(file: str, model: str | None = None) -> Provider:
    """``script:FILE``."""
    spec, dialect = read_script(file)
    return ScriptedProvider(msgspec.structs.replace(spec, model=model or spec.model), dialect)


def cassette_from_file(file: str, model: str | None = None) -> Provider:
    """``cassette:FILE``: strict, as the project's own recordings are."""
    return cassette_provider(file, model=model)


def _part(value: Any, kind: type[T], name: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace("`$", f"`$.{name}")) from None


def _unreadable(what: str, path: str | Path) -> ScriptUnreadable:
    return ScriptUnreadable(what, where=str(path), do_next="Correct the file")
