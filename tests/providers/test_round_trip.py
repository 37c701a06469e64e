"""What an adapter received goes back to the same API as a history that it accepts, with nothing signed or encrypted lost.

Every recorded reply is put behind its request, its calls are answered, the user goes on, and ``check`` judges what would be sent.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pseudoclaude.messages import History, Message
from pseudoclaude.protocol import check, repair
from pseudoclaude.providers import to_wire
from tests.providers import corpus
from tests.providers.corpus import Case

OPAQUE = ("signature", "data", "encrypted_content", "encrypted_index")
LOST: dict[str, str] = {
    "anthropic_messages_create_captures_refusal_stop-1": "a turn of nothing but thinking may not end a message (A13)",
    "responses_create_captures_custom_tool_call_outpu-0": "a custom tool call that nobody answers (R01), and its reasoning (R05)",
}
"""Where the API itself refuses what it sent, so that it is left out, and why."""
CASES = [case for case in corpus.cases() if corpus.skip_reason(case) is None and corpus.expected(case).error is None]


def _continued(case: Case, message: Message) -> History:
    history = (*corpus.request(case).messages, message)
    history += tuple(corpus.tool_message(call.id, "fine") for call in message.tool_calls)
    return history if message.stop == "pause_turn" else (*history, Message("user", "And now?"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_reply_can_go_back(case: Case) -> None:
    reply, dialect = corpus.replay(case).reply, str(corpus.recorded(case).dialect)
    assert reply is not None
    history = _continued(case, reply.message)
    assert repair(history) == (history, ()), "what just arrived needs no repair"
    context: dict[str, Any] = {
        "thinking": "adaptive" if '"thinking"' in json.dumps(corpus.recorded(case).body) else "disabled"
    }
    if reply.message.stop == "pause_turn":
        context["last_stop_reason"] = "pause_turn"
    assert check(dialect, to_wire(dialect, history), context=context) == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_signed_or_encrypted_goes_back_as_it_came(case: Case) -> None:
    reply, dialect = corpus.replay(case).reply, str(corpus.recorded(case).dialect)
    assert reply is not None
    if reply.message.native is None:
        return
    came, sent = _opaque(reply.message.native.payload), _opaque(to_wire(dialect, _continued(case, reply.message)))
    reason = next((LOST[name] for name in LOST if str(case).endswith(name)), None)
    assert ([value for value in came if value not in sent] != []) == (reason is not None)


def _opaque(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [item for key, item in value.items() if key in OPAQUE and isinstance(item, str) and item]
        return own + [found for item in value.values() for found in _opaque(item)]
    return [found for item in value for found in _opaque(item)] if isinstance(value, list) else []


def test_signed_thinking_is_among_them() -> None:
    if not CASES:
        pytest.skip("needs the shared folder")
    natives = [reply.message.native for case in CASES if (reply := corpus.replay(case).reply) is not None]
    assert sum(len(_opaque(native.payload)) for native in natives if native is not None) >= 20
