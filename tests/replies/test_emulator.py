"""Must show: the official clients work against the emulator, and a history that breaks the protocol gets the provider's own 400."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from pseudoclaude.compact.summarize import SUMMARY_PROMPT
from pseudoclaude.memory.extraction import SYSTEM as MEMORY_SYSTEM
from simulator.replies.emulator import RunningEmulator, running_emulator
from tests.protocol.cases import Case, read_cases
from tests.replies.build import spec
from tests.shared import shared_folder

LINE = {"text": "Hello there, friend.", "usage": {"input_tokens": 11, "output_tokens": 5}}
CALL = {
    "tool_calls": [{"id": "call_1", "name": "read", "arguments": {"path": "a"}}],
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
USER = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def judge() -> Iterator[RunningEmulator]:
    """An emulator with nothing to say: what passes the check is told that the script is empty."""
    with running_emulator(spec()) as served:
        yield served
        assert served.emulator.failures == []


@contextmanager
def _anthropic(served: RunningEmulator) -> Iterator[Any]:
    with anthropic.Anthropic(api_key="k", base_url=served.url("anthropic"), max_retries=0, timeout=10) as client:
        yield client


@contextmanager
def _openai(served: RunningEmulator) -> Iterator[Any]:
    with openai.OpenAI(api_key="k", base_url=served.url("openai-chat"), max_retries=0, timeout=10) as client:
        yield client


# --- the official clients --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_anthropic_client() -> None:
    with running_emulator(spec(LINE, LINE, CALL)) as served, _anthropic(served) as client:
        plain = client.messages.create(model="m", max_tokens=9, messages=USER)
        assert (plain.content[0].text, plain.usage.input_tokens, plain.stop_reason) == (LINE["text"], 11, "end_turn")
        with client.messages.stream(model="m", max_tokens=9, messages=USER) as stream:
            assert "".join(stream.text_stream) == LINE["text"]
            assert stream.get_final_message().usage.output_tokens == 5
        with client.messages.stream(model="m", max_tokens=9, messages=USER) as stream:
            block = stream.get_final_message().content[0]
            assert (block.type, block.id, block.input) == ("tool_use", "call_1", {"path": "a"})


@pytest.mark.slow
def test_the_openai_client_on_chat_completions() -> None:
    with running_emulator(spec(LINE, LINE, CALL)) as served, _openai(served) as client:
        chat = client.chat.completions
        plain = chat.create(model="m", messages=USER)
        assert (plain.choices[0].message.content, plain.usage.prompt_tokens) == (LINE["text"], 11)
        chunks = list(chat.create(model="m", messages=USER, stream=True))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == LINE["text"]
        assert all(chunk.usage is None for chunk in chunks), "usage only where it was asked for"
        with chat.stream(model="m", messages=USER) as stream:
            call = stream.get_final_completion().choices[0].message.tool_calls[0]
        assert (call.id, call.function.name, call.function.arguments) == ("call_1", "read", '{"path":"a"}')


@pytest.mark.slow
def test_the_openai_client_on_responses() -> None:
    with running_emulator(spec(LINE, LINE, CALL)) as served, _openai(served) as client:
        responses = client.responses
        plain = responses.create(model="m", input="Hi")
        assert (plain.output_text, plain.usage.input_tokens, plain.status) == (LINE["text"], 11, "completed")
        with responses.stream(model="m", input=USER) as stream:
            assert stream.get_final_response().output_text == LINE["text"]
        with responses.stream(model="m", input=USER) as stream:
            item = stream.get_final_response().output[0]
        assert (item.type, item.call_id, json.loads(item.arguments)) == ("function_call", "call_1", {"path": "a"})


# --- the check -------------------------------------------------------------------------------------------------

SEEN_BY_ALL = frozenset({"tools", "thinking", "store", "betas"})
"""Context that stands in a request; the rest only a provider's own records would tell."""


def _cases() -> list[Case]:
    folder = shared_folder()
    cases = [] if folder is None else read_cases(folder / "protocol-cases.json")
    return [case for case in cases if case.provider in ("anthropic", "openai-chat", "openai-responses")]


def _unsaid(case: Case) -> list[str]:
    defaults = {"system_in_messages": True, "prefill": False}
    return [key for key, value in (case.context or {}).items() if key not in SEEN_BY_ALL and defaults.get(key) != value]


INVALID = [case for case in _cases() if not case.valid and case.certainty == "firm"]


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.id)
def test_an_invalid_case_gets_the_400_of_its_provider(case: Case, judge: RunningEmulator) -> None:
    if _unsaid(case):
        pytest.skip(f"no request can say {', '.join(_unsaid(case))}")
    body = _body(case)
    try:
        json.dumps(body, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        status, answer = _raw(case, judge, json.dumps(body))
    else:
        status, answer = _official(case, judge, body)
    assert status == 400, answer
    assert f"[{case.rule}]" in answer["message"]
    assert answer["type"] == "invalid_request_error"


@pytest.mark.parametrize("case", [case for case in _cases() if case.valid], ids=lambda case: case.id)
def test_a_valid_case_passes_the_check(case: Case, judge: RunningEmulator) -> None:
    if _unsaid(case):
        pytest.skip(f"no request can say {', '.join(_unsaid(case))}")
    status, answer = _official(case, judge, _body(case))
    assert (status, "no entry for request" in answer["message"]) == (500, True)


def _body(case: Case) -> dict[str, Any]:
    """The request of a case: its messages, and what of its context a request says."""
    context = case.context or {}
    names = context.get("tools", ["read_file"])
    body: dict[str, Any] = {"model": "m", "input" if case.provider == "openai-responses" else "messages": case.messages}
    if case.provider == "anthropic":
        body["max_tokens"] = 9
        body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in names]
        if context.get("thinking", "disabled") != "disabled":
            body["thinking"] = {"type": context["thinking"], "budget_tokens": 1024}
    if "betas" in context:
        body["extra_headers"] = {"anthropic-beta": ",".join(context["betas"])}
    if "store" in context:
        body["store"] = context["store"]
    return body


def _official(case: Case, served: RunningEmulator, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Status and error of the request as the official client makes it."""
    with _anthropic(served) as claude, _openai(served) as gpt:
        create: dict[str, Callable[..., Any]] = {
            "anthropic": claude.messages.create,
            "openai-chat": gpt.chat.completions.create,
            "openai-responses": gpt.responses.create,
        }
        try:
            create[case.provider](**body)
        except (anthropic.APIStatusError, openai.APIStatusError) as error:
            answer: Any = error.body
            return error.status_code, answer.get("error", answer)
    raise AssertionError("an empty script answered")


def _raw(case: Case, served: RunningEmulator, body: str) -> tuple[int, dict[str, Any]]:
    """For text that the official client cannot encode: the escape goes over the wire as it stands."""
    paths = {"anthropic": "/v1/messages", "openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses"}
    response = httpx2.post(served.base_url + paths[case.provider], content=body.encode())
    return response.status_code, response.json()["error"]


BAD_BODIES = [b"", b"{", b"[]", b"{}", b'{"messages": "x", "input": 4}', b'{"messages": null, "input": null}', b"\xff"]


@pytest.mark.parametrize("body", BAD_BODIES)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses"])
def test_a_body_that_is_no_request_gets_a_400(judge: RunningEmulator, path: str, body: bytes) -> None:
    response = httpx2.post(judge.base_url + path, content=body)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_another_path_or_method_is_a_404_or_405_that_says_what_is_served(judge: RunningEmulator) -> None:
    missing, wrong = httpx2.post(judge.base_url + "/v2/x"), httpx2.get(judge.base_url + "/v1/messages")
    assert (missing.status_code, wrong.status_code) == (404, 405)
    assert "POST /v1/responses" in missing.json()["error"]["message"]


def test_a_refused_history_uses_up_no_entry() -> None:
    with running_emulator(spec(LINE)) as served, _anthropic(served) as client:
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(model="m", max_tokens=9, messages=[])
        assert client.messages.create(model="m", max_tokens=9, messages=USER).content[0].text == LINE["text"]
        assert (served.emulator.requests_checked, len(served.emulator.violations), served.emulator.remaining) == (
            2,
            1,
            0,
        )


# --- purposes and faults ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_summary_and_a_memory_update_have_their_own_queues() -> None:
    script = spec({"text": "turn"}, summary=[{"text": "sum"}], memory=[{"text": "mem"}])
    with running_emulator(script) as served, _anthropic(served) as client, _openai(served) as other:
        chat = other.chat.completions
        summary = [*USER, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": SUMMARY_PROMPT}]
        assert client.messages.create(model="m", max_tokens=9, messages=summary).content[0].text == "sum"
        system = [{"role": "system", "content": MEMORY_SYSTEM}]
        assert chat.create(model="m", messages=[*system, *USER]).choices[0].message.content == "mem"
        assert client.messages.create(model="m", max_tokens=9, messages=USER).content[0].text == "turn"


def test_plain_anthropic_json_cannot_carry_broken_arguments() -> None:
    broken = {"tool_calls": [{"id": "a", "name": "t", "arguments": '{"half'}]}
    refused = pytest.raises(anthropic.InternalServerError, match="only a stream")
    with running_emulator(spec(broken)) as served, _anthropic(served) as client, refused:
        client.messages.create(model="m", max_tokens=9, messages=USER)


@pytest.mark.slow
def test_two_emulators_at_once() -> None:
    with running_emulator(spec({"text": "one"})) as one, running_emulator(spec({"text": "two"})) as two:
        assert [_says(served) for served in (two, one)] == ["two", "one"]


def _says(served: RunningEmulator) -> str:
    with _anthropic(served) as client:
        return str(client.messages.create(model="m", max_tokens=9, messages=USER).content[0].text)
