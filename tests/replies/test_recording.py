"""Must show: recorded from the emulator, a cassette replays with the emulator off to the same run, and holds no secret."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec
import pytest
import yaml

from pseudoclaude.errors import AuthenticationFailed
from pseudoclaude.providers.by_name import make_adapter
from simulator.commands.record import record_cassette
from simulator.record import record
from simulator.replies.cassettes import Cassette, load_cassette
from simulator.replies.emulator import running_emulator
from simulator.replies.errors import CassetteUnreadable
from simulator.replies.recording import PUBLIC_ADDRESSES, Scrubber, recording
from simulator.replies.replay import CassetteProvider, cassette_provider
from simulator.replies.scripted import ScriptedProvider
from simulator.replies.scrub import TextScrubber
from simulator.scenario import Scenario, ScenarioError, load_scenario
from simulator.values import Recording
from simulator.world import World
from tests.replies.build import spec

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
OWN = SCENARIOS / "cassettes" / "recordings"
NAMES = ["anthropic_parallel_tools", "anthropic_tool_loop", "openai_chat_tool_loop", "openai_responses_tool_loop"]
SCRIPTS = sorted(SCENARIOS.rglob("recordings/*.script.yaml"))
"""Everything that the project's own cassettes are recorded from."""


def _scenario(name: str) -> Scenario:
    return load_scenario(OWN / f"{name}.script.yaml")


def _run(scenario: Scenario, provider: Any) -> Recording:
    return record(scenario, world=World(scenario, 0, provider=provider))


# --- the project's own cassettes -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_an_own_cassette_is_the_script_over_http(name: str) -> None:
    scenario = _scenario(name)
    replay = cassette_provider(OWN / f"{name}.yaml")
    run = _run(scenario, replay)
    assert replay.remaining == ()
    assert run == _run(scenario, ScriptedProvider(scenario.provider, scenario.settings.dialect))
    assert run.violations == ()


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name.removesuffix(".script.yaml"))
def test_an_own_cassette_is_made_again_byte_for_byte(script: Path, tmp_path: Path) -> None:
    out, kept = tmp_path / "again.yaml", script.with_name(script.name.replace(".script.yaml", ".yaml"))
    record_cassette(script, out, stream=load_cassette(kept).interactions[0].streams)
    assert out.read_bytes() == kept.read_bytes()


def test_one_is_plain_and_the_others_stream() -> None:
    streams = {name: {one.streams for one in load_cassette(OWN / f"{name}.yaml").interactions} for name in NAMES}
    assert streams == {name: {name != "anthropic_parallel_tools"} for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_where_it_comes_from_stands_in_the_file(name: str) -> None:
    metadata = yaml.safe_load((OWN / f"{name}.yaml").read_text())["metadata"]
    assert "emulator" in metadata["recorded_from"]
    assert "not a provider" in metadata["recorded_from"]
    assert {"dialect", "scenario", "sdk", "recorder"} < metadata.keys()


@pytest.mark.slow
@pytest.mark.parametrize("dialect", list(PUBLIC_ADDRESSES))
@pytest.mark.parametrize("stream", [True, False])
def test_every_api_is_recorded_and_replays_to_the_same_run(dialect: str, stream: bool, tmp_path: Path) -> None:
    document = yaml.safe_load((OWN / "anthropic_parallel_tools.script.yaml").read_text())
    document["settings"]["dialect"] = dialect
    file, out = tmp_path / "scenario.yaml", tmp_path / "cassette.yaml"
    file.write_text(yaml.safe_dump(document))
    record_cassette(file, out, stream=stream)
    scenario = load_scenario(file)
    replay = cassette_provider(out)
    assert replay.dialect == dialect
    assert _run(scenario, replay) == _run(scenario, ScriptedProvider(scenario.provider, dialect))
    assert "127.0.0.1" not in out.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("dialect", list(PUBLIC_ADDRESSES))
def test_a_real_provider_is_asked_with_the_key_of_the_environment_and_the_key_is_not_kept(
    dialect: str, tmp_path: Path
) -> None:
    """A server stands in for the provider; the process is one of its own, so that its environment can hold a key."""
    scenario, out = tmp_path / "scenario.yaml", tmp_path / "cassette.yaml"
    document = yaml.safe_load((OWN / "anthropic_tool_loop.script.yaml").read_text())
    document["settings"]["dialect"] = dialect
    scenario.write_text(yaml.safe_dump(document))
    with running_emulator(load_scenario(scenario).provider) as served:
        how = {"provider": dialect, "model": "model-of-today", "base_url": served.url(dialect)}
        program = (
            f"from simulator.commands.record import record_cassette as r; r({str(scenario)!r}, {str(out)!r}, **{how!r})"
        )
        keys = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "OPENAI_ORG_ID": "org-of-mine"}
        environment = {**os.environ, **keys}
        subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60, cwd=SCENARIOS.parent)
        assert served.emulator.requests_checked == 2
    text = out.read_text()
    assert KEY not in text
    assert "org-of-mine" not in text
    assert "127.0.0.1" not in text
    assert yaml.safe_load(text)["metadata"]["recorded_from"] == f"{PUBLIC_ADDRESSES[dialect]}, model model-of-today"
    replay = cassette_provider(out)
    assert _run(load_scenario(scenario), replay).violations == ()
    assert replay.remaining == ()


# --- secrets ---------------------------------------------------------------------------------------------------

KEY = "sk-ant-api03-" + "Zq9" * 8
KNOWN = "correct-horse-battery-staple"
"""A secret without the look of one, which the caller names."""
PLANTED = [
    KEY,
    KNOWN,
    "sk-proj-" + "a1B2" * 6,
    "org-" + "Ab12" * 6,
    "Bearer " + "tok" * 6,
    "ghp_" + "x" * 30,
    "AKIA" + "Q" * 16,
]


@pytest.mark.slow
def test_a_secret_planted_anywhere_is_not_in_the_file(tmp_path: Path) -> None:
    out, everything = tmp_path / "cassette.yaml", " ".join(PLANTED)
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": f"My keys: {everything}"}],
        "metadata": {"api_key": "plain-looking", "user_id": KNOWN},
    }
    headers = {
        "x-api-key": KEY,
        "authorization": f"Bearer {KEY}",
        "cookie": f"session={KNOWN}",
        "openai-organization": "org-of-mine",
        "x-anything": KNOWN,
        "anthropic-beta": KNOWN,
    }
    with (
        running_emulator(spec({"text": f"You said {everything}"})) as served,
        recording(out, served_at=served.base_url, dialect="anthropic", provenance={"why": "a test"}, secrets=[KNOWN]),
    ):
        query = {"api_key": KEY, "beta": KNOWN, "token": KNOWN}
        answer = httpx2.post(served.base_url + "/v1/messages", json=body, headers=headers, params=query)
    assert KEY in answer.text, "the caller itself gets the reply as it came"
    text = out.read_text()
    for secret in [*PLANTED, "plain-looking", "org-of-mine", "127.0.0.1"]:
        assert secret not in text
    assert not re.search(
        r"(?i)^\s*-?\s*(x-api-key|authorization|cookie|set-cookie|openai-organization|x-anything):", text, re.MULTILINE
    )
    assert "My keys: REDACTED" in text
    assert "https://api.anthropic.com/v1/messages?beta=REDACTED" in text


KNOWN_ODD = 'pa"ss\\wörd-9'
SPOKEN = [KNOWN_ODD, KEY, "hf_" + "abcdefghijklm" * 2, "glpat-" + "abcdefghijklmnopqrst"]
"""What a model repeats; the first has no shape, and JSON spells it in its own way."""


def _strings(value: Any) -> list[str]:
    """Every string of a JSON value, and of the JSON that a string holds."""
    if isinstance(value, dict):
        return [text for pair in value.items() for item in pair for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    if not isinstance(value, str):
        return []
    return [value, *(_strings(json.loads(value)) if value[:1] in ("{", "[") and value[-1:] in ("}", "]") else [])]


def _leaking(dialect: str) -> dict[str, Any]:
    """A scenario in which the user, a tool and the model all say secrets."""
    said = " and ".join(SPOKEN)
    nested = {"password": "hunter2hunter2", "note": said, "inner": json.dumps({"password": "hunter2hunter2"})}
    return {
        "why": "secrets",
        "settings": {"dialect": dialect},
        "tools": {"read_log": {"text": f"the log says {said}\n"}},
        "provider": {
            "script": [
                {"text": f"You said {said} end", "tool_calls": [{"id": "c1", "name": "read_log", "arguments": nested}]},
                {"text": f"Done with {said} now."},
            ]
        },
        "steps": [{"user": f"My keys are {said}"}],
    }


def _written(document: dict[str, Any], file: Path) -> Scenario:
    file.write_text(yaml.safe_dump(document))
    return load_scenario(file)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", list(PUBLIC_ADDRESSES))
@pytest.mark.parametrize("stream", [True, False])
def test_a_secret_that_a_model_says_is_nowhere_and_the_rest_replays(dialect: str, stream: bool, tmp_path: Path) -> None:
    document, out = _leaking(dialect), tmp_path / "cassette.yaml"
    scenario = _written(document, tmp_path / "scenario.yaml")
    with (
        running_emulator(scenario.provider) as served,
        closing(make_adapter(dialect, "m", api_key=KEY, base_url=served.url(dialect), stream=stream)) as adapter,
        recording(
            out, served_at=served.url(dialect), dialect=dialect, provenance={"a": KNOWN_ODD}, secrets=[KNOWN_ODD]
        ),
    ):
        assert _run(scenario, adapter).violations == ()

    text = out.read_text()
    for secret in [*SPOKEN, json.dumps(KNOWN_ODD)[1:-1], "hunter2hunter2"]:
        assert secret not in text
    cassette = load_cassette(out)
    for one in cassette.interactions:
        events = [json.loads(line[6:]) for line in one.reply.decode().split("\n") if line.startswith("data: {")]
        everything = _strings(events or json.loads(one.reply)) + _strings(one.body)
        assert not [part for part in everything for secret in [*SPOKEN, "hunter2hunter2"] if secret in part]

    clean = json.loads(TextScrubber([KNOWN_ODD]).text(json.dumps(document)))
    assert clean != document
    scenario = _written(clean, tmp_path / "scenario.yaml")
    replay = cassette_provider(out)
    run = _run(scenario, replay)
    assert replay.remaining == ()
    assert run == _run(scenario, ScriptedProvider(scenario.provider, dialect))
    assert "REDACTED" in repr(run)


def test_a_status_message_and_an_encoded_path_hold_no_secret() -> None:
    scrub = Scrubber("http://127.0.0.1:1", "https://api.anthropic.com", [KNOWN, KNOWN_ODD])
    response = {"status": {"code": 418, "message": f"no {KNOWN}"}, "headers": {}, "body": {"string": b""}}
    assert scrub.response(response)["status"] == {"code": 418, "message": "no REDACTED"}
    for secret in (KNOWN, KNOWN_ODD):
        for path in (quote(secret, safe=""), "".join(f"%{byte:02x}" for byte in secret.encode())):
            for encoded in (path, quote(path, safe="")):
                address = f"http://127.0.0.1:1/v1/{encoded}/messages?beta={path}&token={path}"
                assert scrub.address(address) == "https://api.anthropic.com/v1/REDACTED/messages?beta=REDACTED"
    assert scrub.address("http://127.0.0.1:1/v1/a%20b") == "https://api.anthropic.com/v1/a%20b"


def test_of_a_response_only_the_headers_that_matter_are_kept() -> None:
    headers = {
        "Content-Type": ["application/json"],
        "Retry-After": ["7"],
        "Set-Cookie": ["__cf_bm=secret"],
        "anthropic-organization-id": ["0123"],
        "openai-organization": ["org-of-mine"],
        "Authorization": [KEY],
    }
    response = {
        "status": {"code": 429, "message": "x"},
        "headers": headers,
        "body": {"string": f'{{"organization_id": "0123", "a": "{KEY}"}}'},
    }
    kept = Scrubber("http://127.0.0.1:1", "https://api.anthropic.com", []).response(response)
    assert kept["headers"] == {"content-type": ["application/json"], "retry-after": ["7"]}
    assert kept["body"]["string"] == b'{"organization_id": "REDACTED", "a": "REDACTED"}'


@pytest.mark.parametrize(
    ("uri", "kept"),
    [
        ("http://127.0.0.1:1/v1/messages", "https://api.anthropic.com/v1/messages"),
        ("http://127.0.0.1:1/v1/messages?beta=true&key=abc#part", "https://api.anthropic.com/v1/messages?beta=true"),
        ("https://user:password@elsewhere.example/v1?api-version=2", "https://elsewhere.example/v1?api-version=2"),
    ],
)
def test_an_address_loses_who_and_keeps_where(uri: str, kept: str) -> None:
    assert Scrubber("http://127.0.0.1:1", "https://api.anthropic.com", []).address(uri) == kept


def test_text_without_secrets_is_not_touched() -> None:
    text = '{"content": "Ask the organization: risk-free, disk-based, org-chart, basic idea 世界 🙂", "max_tokens": 9}'
    assert Scrubber("http://x", "https://y", ["short"]).text(text) == text


# --- when it does not work -------------------------------------------------------------------------------------


def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "cassette.yaml"
    out.write_text("the old one")
    with pytest.raises(KeyError), recording(out, served_at="http://x", dialect="anthropic", provenance={"a": "b"}):
        raise KeyError("broken")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("cassette.yaml", "the old one")]


def test_a_block_without_requests_makes_no_file(tmp_path: Path) -> None:
    out = tmp_path / "cassette.yaml"
    with (
        pytest.raises(CassetteUnreadable),
        recording(out, served_at="http://x", dialect="anthropic", provenance={"a": "b"}),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_own_cassette_misses_when_the_product_asks_something_else() -> None:
    scenario = _scenario("anthropic_tool_loop")
    other = msgspec.structs.replace(scenario, settings=msgspec.structs.replace(scenario.settings, max_output_tokens=77))
    cassette = load_cassette(OWN / "anthropic_tool_loop.yaml")
    with pytest.raises(Exception, match=r"max_tokens: recorded 8192, sent 77") as caught:
        _run(other, CassetteProvider(Cassette(cassette.path, cassette.interactions)))
    assert type(caught.value).__name__ == "CassetteMiss"


def test_a_file_that_exists_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "cassette.yaml"
    out.write_text("the old one")
    with pytest.raises(ScenarioError, match="a recording never replaces a file"):
        record_cassette(OWN / "anthropic_tool_loop.script.yaml", out)
    assert out.read_text() == "the old one"


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"provider": "nobody"}, "there are emulator, anthropic, openai-chat, openai-responses"),
    ({"provider": "openai-chat", "model": "m"}, r"speaks anthropic, not openai-chat - at `\$.settings.dialect`"),
    ({"provider": "anthropic"}, "write --model NAME"),
]


@pytest.mark.parametrize(("how", "words"), REFUSED)
def test_what_cannot_be_recorded_is_said_before_anything_is_asked(
    how: dict[str, str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError, match=words):
        record_cassette(OWN / "anthropic_tool_loop.script.yaml", tmp_path / "c.yaml", **how)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_cassette_is_not_recorded_from_a_cassette(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="needs a script"):
        record_cassette(SCENARIOS / "cassettes/anthropic_tool_loop.yaml", tmp_path / "c.yaml")


@pytest.mark.slow
def test_a_provider_that_fails_leaves_no_file_and_its_own_error(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("why: x\nprovider: {script: [{fail: {status: 401}}]}\nsteps: [{user: Hi}]\n")
    with pytest.raises(AuthenticationFailed):
        record_cassette(scenario, tmp_path / "c.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.yaml"]
