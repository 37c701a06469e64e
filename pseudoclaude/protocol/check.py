"""``check``: does a provider accept these wire messages, and if not, why.

A dialect is an index over the messages, a list of checks in the order of their ids, and a screen: one cheap pass that recognises
plain sound histories, the common case, so that they cost little.  The screen only ever says "nothing to report"; whatever it does
not recognise goes through every rule.  Judging never raises for the content of the messages and never changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pseudoclaude.protocol import (
    anthropic,
    anthropic_media,
    anthropic_pairing,
    anthropic_request,
    anthropic_signed,
    compatible,
    openai_chat,
    openai_responses,
    screens,
    strings,
)
from pseudoclaude.protocol.context import Context, context_of
from pseudoclaude.protocol.values import Check, Found, Profile, Violation


class Dialect(NamedTuple):
    request: Callable[[Sequence[Any], Context, bool], Any]
    checks: tuple[Check, ...]
    is_plain: Callable[[Sequence[Any]], bool] = screens.never


def check(
    dialect: str,
    wire_messages: Sequence[Any],
    *,
    profile: Profile = "conservative",
    context: Mapping[str, Any] | None = None,
) -> list[Violation]:
    """Every reason to refuse ``wire_messages``, in the order of the rules; an empty list if there is none.

    ``wire_messages`` are JSON values: the ``messages`` of the dialect, the ``input`` items of ``openai-responses``, the ``contents``
    of ``gemini``.  ``context`` takes the keys of ``Context``.  Raises ``ValueError`` for a dialect, profile or key that
    does not exist, and for a value of a key that is not of its type; never for what the messages hold.
    """
    spoken = DIALECTS.get(dialect)
    if spoken is None:
        raise ValueError(f"unknown dialect {dialect!r}; known are {', '.join(DIALECTS)}")
    if profile not in ("firm", "conservative"):
        raise ValueError(f"a profile is 'firm' or 'conservative', not {profile!r}")
    circumstances = context_of(context)
    if _screenable(context) and spoken.is_plain(wire_messages):
        return []
    return judge(spoken, wire_messages, profile, circumstances)


def judge(
    dialect: Dialect, messages: Sequence[Any], profile: Profile, context: Context, without: Collection[str] = ()
) -> list[Violation]:
    """``check`` without the screen; ``without`` names rules that are left out."""
    conservative = profile == "conservative"
    request = dialect.request(messages, context, conservative)
    violations = []
    for rule, finds, firm in dialect.checks:
        if (firm or conservative) and rule not in without:
            violations += [Violation(rule, path, words) for path, words in finds(request)]
    return violations


_SCREENABLE = frozenset(
    {"tools", "prefill", "system_in_messages", "last_stop_reason", "store", "strict_upstream", "model", "betas"}
)


def _screenable(context: Mapping[str, Any] | None) -> bool:
    """Whether the screens, which know no context, stand for it: it says nothing that a plain history depends on."""
    if not context:
        return True
    return _SCREENABLE.issuperset(context) and ("tools" not in context or screens.are_plain_tools(context["tools"]))


def _s01(request: Any) -> Iterator[Found]:
    return strings.lone_surrogates("messages", request.messages)


def _s01_of_input(request: Any) -> Iterator[Found]:
    return strings.lone_surrogates("input", request.messages)


def _c15(request: Any) -> Iterator[Found]:
    return strings.long_strings("messages", request.messages)


def _r19(request: Any) -> Iterator[Found]:
    return strings.long_strings("input", request.messages)


_S01 = Check("S01", _s01)
_CHAT = (*openai_chat.CHECKS, Check("C15", _c15), _S01)


def _like_chat(own: tuple[Check, ...]) -> Dialect:
    return Dialect(openai_chat.Request, (*_CHAT, *own))


DIALECTS: Mapping[str, Dialect] = {
    "anthropic": Dialect(
        anthropic_request.Request,
        (*anthropic.CHECKS, *anthropic_pairing.CHECKS, *anthropic_signed.CHECKS, *anthropic_media.CHECKS, _S01),
        screens.anthropic,
    ),
    "openai-chat": Dialect(openai_chat.Request, _CHAT, screens.openai_chat),
    "openai-responses": Dialect(
        openai_responses.Request,
        (*openai_responses.CHECKS, Check("R19", _r19), Check("S01", _s01_of_input)),
        screens.openai_responses,
    ),
    "deepseek": _like_chat(compatible.DEEPSEEK),
    "kimi": _like_chat(compatible.KIMI),
    "mistral": _like_chat(compatible.MISTRAL),
    "vllm": _like_chat(compatible.VLLM),
    "ollama": _like_chat(compatible.OLLAMA),
    "gemini": Dialect(compatible.Request, (*compatible.GEMINI, _S01)),
    "bedrock-converse": Dialect(compatible.Request, (*compatible.BEDROCK, _S01)),
}
"""Every dialect that can be judged, by the name ``check`` takes."""
