"""Which model answers: ``--provider NAME[:ARGUMENT]`` to a ``ports.Provider``.

Providers are found by the entry-point group ``pseudoclaude.providers``.  An entry is called with its argument - a model name for the real APIs, a
file for ``script`` and ``cassette`` - and with ``base_url`` and ``model`` by name where the user gave them.  Only the chosen one is imported.

What a provider from outside raises that is none of our errors becomes one of ours here, so that no front end has to know it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pseudoclaude.errors import ProviderUnavailable, PseudoClaudeError
from pseudoclaude.ports import Provider, Reply, Request
from pseudoclaude.settings import WINDOW_TOKENS

GROUP = "pseudoclaude.providers"
DEFAULT_PROVIDER = "anthropic"
DEFAULT_MODELS: dict[str, str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai-chat": "gpt-5.5",
    "openai-responses": "gpt-5.5",
}
"""Used when no model is named.  Names from the model lists of the installed SDKs."""


KEYS: dict[str, tuple[str, ...]] = {
    "anthropic": (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_PROFILE",
        "ANTHROPIC_IDENTITY_TOKEN",
        "ANTHROPIC_IDENTITY_TOKEN_FILE",
    ),
    "openai-chat": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
}
"""Environment variables that give a real API its key, the usual one first; the SDKs read any of them."""


class UnusableProvider(PseudoClaudeError):
    """No provider of that name, or it cannot be made.  Nothing was started."""


def open_provider(choice: str, *, model: str = "", base_url: str | None = None) -> Provider:
    """The provider for ``NAME`` or ``NAME:ARGUMENT``.  ``model`` is the argument of a real API that was given none.

    Raises ``UnusableProvider``.
    """
    name, _, argument = choice.partition(":")
    entry = _entry(name)
    options: dict[str, Any] = {} if base_url is None else {"base_url": base_url}
    if name in DEFAULT_MODELS and not argument:
        argument = model or DEFAULT_MODELS[name]
    elif model:
        options["model"] = model
    if not argument:
        raise UnusableProvider(f"the provider {name!r} needs a file", do_next=f"Write --provider {name}:FILE")
    provider = _made(entry, argument, options)
    if provider.dialect not in WINDOW_TOKENS:
        raise UnusableProvider(
            f"the provider {name!r} speaks {provider.dialect!r}", do_next=f"Known are {', '.join(WINDOW_TOKENS)}"
        )
    return provider if entry.value.startswith("pseudoclaude.") else Plugged(provider, name)


def check_key(choice: str, environment: Mapping[str, str]) -> None:
    """Refuse a real API that has no key, or one that no HTTP header can carry, before anything is made for it.  Raises ``UnusableProvider``."""
    name = choice.partition(":")[0]
    variables = KEYS.get(name, ())
    found = [variable for variable in variables if environment.get(variable, "").strip()]
    if variables and not found:
        raise UnusableProvider(
            f"there is no API key for {name!r}: {variables[0]} is not set",
            still_true="Nothing was started",
            do_next=f"Set {variables[0]}; --provider script:FILE works without a key",
        )
    for variable in found:
        if not (environment[variable].isascii() and environment[variable].isprintable()):
            raise UnusableProvider(
                f"{variable} holds characters that no key has",
                still_true="Nothing was started",
                do_next="Check that it was copied whole and without line breaks; --provider script:FILE works without a key",
            )


class Plugged:
    """A provider from outside the product.  Its own kinds of error become ``ProviderUnavailable``, which is not retried."""

    def __init__(self, inner: Provider, name: str) -> None:
        self._inner = inner
        self._name = name

    @property
    def dialect(self) -> str:
        return self._inner.dialect

    @property
    def model(self) -> str:
        return self._inner.model

    def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        try:
            return self._inner.complete(request, on_text)
        except PseudoClaudeError:
            raise
        except Exception as error:  # which errors a plug-in has is its own business
            raise ProviderUnavailable(
                f"the provider {self._name!r} failed: {error or type(error).__name__}", retryable=False
            ) from error


def _made(entry: EntryPoint, argument: str, options: dict[str, Any]) -> Provider:
    try:
        factory = entry.load()
    except ImportError as error:
        raise UnusableProvider(
            f"the provider {entry.name!r} cannot be loaded: {error}", where=entry.value, do_next="Install what it needs"
        ) from error
    try:
        inspect.signature(factory).bind(argument, **options)
    except TypeError:
        given = " and ".join(f"--{key.replace('_', '-')}" for key in options)
        raise UnusableProvider(
            f"the provider {entry.name!r} does not take {given} here", do_next="Leave it out"
        ) from None
    try:
        provider: Provider = factory(argument, **options)
    except PseudoClaudeError:
        raise
    except Exception as error:  # which errors a plug-in has is its own business
        raise UnusableProvider(f"the provider {entry.name!r} cannot be made: {str(error).rstrip('.')}") from error
    return provider


def _entry(name: str) -> EntryPoint:
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        raise UnusableProvider(
            f"there is no provider {name!r}", do_next=f"Use one of {', '.join(sorted(found)) or '(none is installed)'}"
        )
    return found[name]
