"""From ``--provider`` to a provider."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from pseudoclaude.commands.providers import (
    DEFAULT_MODELS,
    GROUP,
    KEYS,
    Plugged,
    UnusableProvider,
    check_key,
    open_provider,
)
from pseudoclaude.errors import Overloaded, ProviderUnavailable
from pseudoclaude.messages import Message
from pseudoclaude.ports import Request
from pseudoclaude.settings import WINDOW_TOKENS
from tests.driving import Playing, said

HELLO = Request((Message("user", "Hello"),))


def test_the_names_are_registered() -> None:
    names = sorted(entry.name for entry in entry_points(group=GROUP))
    assert names == ["anthropic", "cassette", "openai-chat", "openai-responses", "script"]
    assert sorted(DEFAULT_MODELS) == sorted(WINDOW_TOKENS)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DEFAULT_MODELS))
@pytest.mark.parametrize(("argument", "model", "used"), [("", "", None), ("", "m", "m"), (":m", "", "m")])
def test_a_real_api_takes_its_model_from_the_name_or_beside_it(
    name: str, argument: str, model: str, used: str | None
) -> None:
    provider = open_provider(name + argument, model=model, base_url="http://127.0.0.1:9")
    assert (provider.dialect, provider.model) == (name, used or DEFAULT_MODELS[name])


def test_a_script_takes_a_file_and_perhaps_a_model(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("script: [{text: Hi}]\n")
    provider = open_provider(f"script:{file}", model="m")
    assert (provider.dialect, provider.model) == ("anthropic", "m")
    assert provider.complete(HELLO).message == said("Hi")


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("nobody:x", "there is no provider 'nobody'. Use one of anthropic, cassette"),
        ("", "there is no provider ''"),
        ("script", "needs a file"),
        ("script:/nowhere", "cannot be opened: No such file"),
        ("cassette:/nowhere", "cannot be made"),
    ],
)
def test_what_cannot_be_used_says_why(choice: str, words: str) -> None:
    with pytest.raises(UnusableProvider) as caught:
        open_provider(choice)
    assert words in str(caught.value)


def test_a_provider_from_outside_raises_our_errors_only() -> None:
    busy = Overloaded("Busy")
    provider = Plugged(Playing([busy, LookupError("no entry"), said("Hi")]), "odd")
    with pytest.raises(Overloaded):
        provider.complete(HELLO)
    with pytest.raises(ProviderUnavailable, match="the provider 'odd' failed: no entry") as caught:
        provider.complete(HELLO)
    assert not caught.value.retryable
    assert provider.complete(HELLO).message == said("Hi")
    assert (provider.dialect, provider.model) == ("anthropic", "playing")


@pytest.mark.parametrize(
    ("choice", "environment", "words"),
    [
        ("anthropic", {}, "ANTHROPIC_API_KEY is not set"),
        ("openai-chat:m", {"ANTHROPIC_API_KEY": "k"}, "OPENAI_API_KEY is not set"),
        ("openai-responses", {"OPENAI_API_KEY": " \n"}, "OPENAI_API_KEY is not set"),
        ("anthropic", {"ANTHROPIC_API_KEY": "k\n"}, "ANTHROPIC_API_KEY holds characters that no key has"),
    ],
)
def test_a_key_that_is_missing_or_cannot_be_one_is_told_with_its_variable(
    choice: str, environment: dict[str, str], words: str
) -> None:
    with pytest.raises(UnusableProvider) as caught:
        check_key(choice, environment)
    assert words in str(caught.value)
    assert "--provider script:FILE works without a key" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_real_api_has_its_variable_and_a_script_needs_none() -> None:
    assert sorted(KEYS) == sorted(DEFAULT_MODELS)
    for name, variables in KEYS.items():
        for variable in variables:
            check_key(name, {variable: "k"})
    check_key("script:x", {})
    check_key("nobody", {})
