"""No key, a broken key, no server, no such address: each says what it is, and only a network failure is worth a retry."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pseudoclaude.errors import AuthenticationFailed, InvalidRequest, ProviderError, ProviderUnavailable
from pseudoclaude.providers.by_name import ADAPTERS, make_adapter
from tests.replies.build import HELLO

WITHOUT_KEY = """
import sys
from pseudoclaude.errors import AuthenticationFailed
from pseudoclaude.messages import Message
from pseudoclaude.ports import Request
from pseudoclaude.providers.by_name import ADAPTERS, make_adapter
for dialect in ADAPTERS:
    for stream in (True, False):
        try:
            make_adapter(dialect, "m", stream=stream).complete(Request((Message("user", "Hello"),)))
        except AuthenticationFailed as error:
            sys.stdout.write(f"{error}\\n")
"""


def _failure(dialect: str, **options: Any) -> ProviderError:
    with closing(make_adapter(dialect, "m", **options)) as adapter, pytest.raises(ProviderError) as caught:
        adapter.complete(HELLO)
    return caught.value


@pytest.mark.parametrize("dialect", ADAPTERS)
def test_nobody_listens(dialect: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        failure = _failure(dialect, api_key="k", base_url=f"http://127.0.0.1:{free.getsockname()[1]}")
    assert isinstance(failure, ProviderUnavailable)
    assert (failure.retryable, failure.status) == (True, None)
    assert "Connection refused" in str(failure)


@pytest.mark.parametrize("dialect", ADAPTERS)
def test_an_address_that_is_none(dialect: str) -> None:
    failure = _failure(dialect, api_key="k", base_url="not an address")
    assert isinstance(failure, InvalidRequest)
    assert "Check the base URL" in str(failure)


@pytest.mark.parametrize("dialect", ADAPTERS)
@pytest.mark.parametrize("key", ["two\nlines", "schlüssel"])
def test_a_key_that_no_header_can_carry(dialect: str, key: str) -> None:
    failure = _failure(dialect, api_key=key, base_url="http://127.0.0.1:9")
    assert isinstance(failure, AuthenticationFailed)
    assert key not in str(failure)


@pytest.mark.slow
def test_no_key_at_all_names_the_variable(tmp_path: Path) -> None:
    """In a process of its own, since a key may stand in this one's environment."""
    project = str(Path(__file__).resolve().parents[2])
    environment = {"HOME": str(tmp_path), "PYTHONPATH": project}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_KEY], env=environment, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert [line.split("Set ")[1].split()[0] for line in lines] == ["ANTHROPIC_API_KEY"] * 2 + ["OPENAI_API_KEY"] * 4
    assert all("Nothing was sent" in line for line in lines)
