"""Texts that look like keys.  A memory note outlives its session and may be committed, so such a text is refused, never stored.

It recognises the published shapes of keys and the ``name = value`` form with a value that looks random.  It does not prove that a
text holds no secret.  What it found is named by kind; the text itself never appears in a message.
"""

from __future__ import annotations

import re

_SHAPES: tuple[tuple[str, str], ...] = (
    ("a private key", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY"),
    ("an API key (sk-...)", r"\bsk-[A-Za-z0-9_-]{16,}"),
    ("an AWS access key", r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}\b"),
    ("a GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    ("a GitLab token", r"\bglpat-[A-Za-z0-9_-]{16,}"),
    ("a Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("a Google API key", r"\bAIza[A-Za-z0-9_-]{30,}"),
    ("a Stripe key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("an npm token", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("a PyPI token", r"\bpypi-[A-Za-z0-9_-]{40,}"),
    ("a Hugging Face token", r"\bhf_[A-Za-z0-9]{24,}"),
    ("a signed web token", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("a URL with a password", r"[a-z][a-z0-9+.-]*://[^\s/:@]+:(?![<$*{\[])[^\s/@]{3,}@"),
    ("an authorization header", r"(?i)\bauthorization\s*:\s*(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,}"),
)
_ASSIGNED = re.compile(
    r"(?i)(?:api[_ -]?key|access[_ -]?key|secret|token|passw(?:or)?d|passphrase|credential)[a-z0-9_]*[\"'`]?\s*(?:[:=]|\bis\b)\s*[\"'`]?"
    r"([A-Za-z0-9_~+/=!@#%^&*.-]{8,})"
)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")


def find_secret(text: str) -> str | None:
    """The kind of key that ``text`` seems to hold, or None."""
    visible = _INVISIBLE.sub("", text)
    for kind, pattern in _SHAPES:
        if re.search(pattern, visible):
            return kind
    for match in _ASSIGNED.finditer(visible):
        if _looks_random(match[1]):
            return "a password or token"
    return None


def _looks_random(value: str) -> bool:
    """Letters and digits mixed, as in a key; not a word, a path, a call or a dotted name."""
    if "/" in value and not re.search(r"[+=]|[A-Za-z0-9/]{30,}", value):
        return False
    if re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)+", value):
        return False
    return bool(re.search(r"[A-Za-z]", value)) and bool(re.search(r"[0-9]", value))
