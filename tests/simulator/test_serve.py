"""``pseudosim serve`` as a user runs it: a process on a free port, asked over plain HTTP and by the official clients, stopped with Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
script:
  - {text: "Plain JSON.", usage: {input_tokens: 3, output_tokens: 2}}
  - {text: "To the client.", usage: {input_tokens: 3, output_tokens: 2}}
  - {text: "To the other one.", usage: {input_tokens: 3, output_tokens: 2}}
  - {fail: {kind: timeout}}
"""
USER = [{"role": "user", "content": "Hi"}]
pytestmark = pytest.mark.slow


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from simulator.cli import main; main()", *arguments]


@contextmanager
def _serving(file: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its address; it is gone at the end."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = _command("serve", str(file), *options)
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(5)]
            address = re.search(r"http://127\.0\.0\.1:\d+", lines[0])
            assert address is not None, lines
            assert f"openai-responses  base URL {address.group()}/v1" in "".join(lines)
            yield process, address.group()
        finally:
            process.kill()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "script.yaml"
    file.write_text(SCRIPT, encoding="utf-8")
    return file


def test_it_answers_all_who_ask_and_stops_cleanly(script: Path) -> None:
    with _serving(script) as (process, url):
        asked = {"model": "m", "max_tokens": 9, "messages": USER}
        answer = httpx2.post(f"{url}/v1/messages", json=asked)
        assert answer.json()["content"] == [{"type": "text", "text": "Plain JSON."}]
        with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
            with client.messages.stream(model="m", max_tokens=9, messages=USER) as stream:
                assert stream.get_final_text() == "To the client."
            orphan = [{"type": "tool_result", "tool_use_id": "never_called", "content": "x"}]
            with pytest.raises(anthropic.BadRequestError, match="no call 'never_called'"):
                client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": orphan}])
        with openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0) as other:
            said = other.chat.completions.create(model="m", messages=USER).choices[0].message.content
            assert said == "To the other one."
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0, err
        assert err == ""
        assert "Stopped. 4 requests checked, 1 violations of the protocol, 1 replies left" in out
        assert "never_called" in out


def test_it_stops_also_while_a_client_waits_for_a_timeout(script: Path) -> None:
    script.write_text("script: [{fail: {kind: timeout}}]", encoding="utf-8")
    with _serving(script) as (process, url):
        asked = {"model": "m", "max_tokens": 9, "messages": USER}
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{url}/v1/messages", json=asked, timeout=0.3)
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as waiting:
            waiting.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Stopped. 1 requests checked" in out


def test_a_port_that_is_taken_and_a_file_that_is_no_script_are_one_line(script: Path, tmp_path: Path) -> None:
    cassette = ROOT / "scenarios/cassettes/anthropic_tool_loop.yaml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wrong = [
            ((str(script), "--port", str(taken.getsockname()[1])), "cannot be served on"),
            ((str(tmp_path / "none.yaml"),), "cannot be opened"),
            ((str(cassette),), "what is served is a script"),
        ]
        for arguments, words in wrong:
            run = subprocess.run(
                _command("serve", *arguments), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
            )
            assert (run.returncode, run.stdout) == (2, ""), run.stderr
            assert words in run.stderr
            assert len(run.stderr.strip().splitlines()) == 1
