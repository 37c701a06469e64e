"""Canonical history to the other servers that can be judged: Chat Completions with a difference, Gemini, Bedrock Converse.

No adapter of ours speaks to the last two; their forms are here so that every dialect of ``check`` has a history that passes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pseudoclaude.messages import Message
from pseudoclaude.providers.wire import anthropic, openai_chat
from pseudoclaude.providers.wire.aliases import CallIds, digest_of
from pseudoclaude.providers.wire.texts import JSONObject

MISTRAL_ID_LENGTH = 9
CONTINUED = "[continued]"
"""What an assistant says between a result and the next user message, where a server wants it to say something (X03)."""

_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")


def reasoning(messages: Sequence[Message]) -> list[JSONObject]:
    """DeepSeek and Kimi: an assistant's own ``reasoning_content`` goes back with it (X01, X02)."""
    return openai_chat.to_wire(messages, extra_keys=("reasoning_content",))


def chat_template(messages: Sequence[Message]) -> list[JSONObject]:
    """vLLM: messages of one role in a row become one (X09)."""
    out: list[JSONObject] = []
    for message in openai_chat.to_wire(messages):
        last = out[-1] if out else None
        if last is None or last["role"] != message["role"] or message["role"] == "tool":
            out.append(message)
            continue
        texts = [text for text in (_text(last), _text(message)) if text]
        out[-1] = last | message | {"content": "\n\n".join(texts)}
    return out


def _text(message: JSONObject) -> str:
    content = message["content"]
    return (
        content if isinstance(content, str) else "\n\n".join(part.get("text", part.get("refusal")) for part in content)
    )


def mistral(messages: Sequence[Message]) -> list[JSONObject]:
    """Ids of nine letters or digits (X04), and an assistant between a result and a user (X03)."""
    ids = CallIds(
        lambda text: _MISTRAL_ID.fullmatch(text) is not None,
        lambda text, turn: digest_of(text, turn)[:MISTRAL_ID_LENGTH],
    )
    out: list[JSONObject] = []
    for message in openai_chat.to_wire(messages, ids=ids):
        if message["role"] == "user" and out and out[-1]["role"] == "tool":
            out.append({"role": "assistant", "content": CONTINUED})
        out.append(message)
    return out


def gemini(messages: Sequence[Message]) -> list[JSONObject]:
    """``contents``: roles ``user`` and ``model``, as many function responses as calls (X06)."""
    names: dict[str, str] = {}
    return [
        {"role": "model" if role == "assistant" else "user", "parts": [_gemini_part(block, names) for block in blocks]}
        for role, blocks in _turns(messages)
    ]


def _gemini_part(block: JSONObject, names: dict[str, str]) -> JSONObject:
    if block["type"] == "text":
        return {"text": block["text"]}
    if block["type"] == "tool_use":
        names[block["id"]] = block["name"]
        return {"functionCall": {"name": block["name"], "args": block["input"]}}
    key = "error" if block.get("is_error") else "result"
    return {
        "functionResponse": {"name": names.get(block["tool_use_id"], "unknown"), "response": {key: block["content"]}}
    }


def bedrock(messages: Sequence[Message]) -> list[JSONObject]:
    """Converse messages: roles alternate strictly (X12)."""
    return [
        {"role": role, "content": [_converse_block(block) for block in blocks]} for role, blocks in _turns(messages)
    ]


def _converse_block(block: JSONObject) -> JSONObject:
    if block["type"] == "text":
        return {"text": block["text"]}
    if block["type"] == "tool_use":
        return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}
    result: JSONObject = {"toolUseId": block["tool_use_id"], "content": [{"text": block["content"]}]}
    if block.get("is_error"):
        result["status"] = "error"
    return {"toolResult": result}


def _turns(messages: Sequence[Message]) -> list[tuple[str, list[JSONObject]]]:
    """Strictly alternating turns of Anthropic's blocks, from the canonical history alone."""
    turns: list[tuple[str, list[JSONObject]]] = []
    for message in anthropic.to_wire(messages, with_native=False):
        content: Any = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    return turns
