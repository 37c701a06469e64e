"""Texts that look like keys.  A memory note outlives its session and may be committed, so such a text is refused, never stored.

It recognises the published shapes of keys and the ``name = value`` form, also as Markdown, a table or a file of settings writes it, with a
value that looks random.  Full-width and invisible characters do not hide a key.  It does not prove that a text holds no secret.  What it
found is named by kind; the text itself never appears in a message.
"""

from __future__ import annotations

import re
import unicodedata

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
    ("a Slack token", r"\bxapp-[0-9]-[A-Za-z0-9-]{10,}"),
    ("a Google access token", r"\bya29\.[A-Za-z0-9_-]{16,}"),
    ("a SendGrid key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("a DigitalOcean token", r"\bdo[opr]_v1_[a-f0-9]{32,}"),
    ("an age key", r"(?i)\bAGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    ("an Azure key", r"(?i)\b(?:account|sharedaccess)key\s*=\s*[a-z0-9+/]{20,}={0,2}"),
    (
        "a URL with a password",
        r"(?i)[a-z][a-z0-9+.-]{0,30}://[^\s/:@]*:(?![<$*{\[]|%[sd]@|\.+@|x+@)[^\s/@]+@",
    ),
    ("an authorization header", r"(?i)\bauthorization\s*:\s*(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,}"),
    (
        "an authorization header",
        r"(?i)\bauthorization\s*:\s*[a-z-]+\s+(?=[A-Za-z._~+=-]*[0-9])[A-Za-z0-9._~+=-]{16,}",
    ),
    ("a bearer token", r"(?i)\bbearer\s+(?=[A-Za-z._~+=-]*[0-9])[A-Za-z0-9._~+=-]{16,}"),
    ("a login with a password", r"(?i)\blogin\s+\S+\s+password\s+[^\s<$*{\[]\S{2,}"),
)
_ASSIGNED = re.compile(
    r"(?i)(?:(?:api|access|account)[_ -]?key|secret|token|passw(?:or)?[dt]|passphrase|credential|(?<![a-z])pwd(?![a-z])|(?<=_)pass(?![a-z]))"
    r"[a-z0-9_]{0,40}[\"'`*~]{0,4}\s{0,9}(?:\([^()\n]{0,60}\)[*_]{0,3}\s{0,9})?"  # the end of the name, and a remark: password (staging)
    r"(?::=|=>|->|[:=|\t]|>(?=\S)|\bis\b|(?<=\t))\s{0,9}[\"'`*]{0,4}\s{0,9}[\"'`]?"
    r"([A-Za-z0-9_~+/=!@#%^&*.-][A-Za-z0-9_~+/=!@#%^&*.$-]{5,})"
)
_LENGTH_MIN = 8
_PASSWORD = re.compile(r"(?i)pass|pwd")
"""Names of what people choose themselves: values from six characters on; of other names, from ``_LENGTH_MIN`` on."""
_TERM = re.compile(
    r"(?i)(?<![a-z0-9])(?:sha\d+|hs\d+|rs\d+|es\d+|base\d+|utf-?\d+|md5|argon2|oauth2?|pbkdf2|x509|k8s|s3|1password|v\d+)(?!\d)"
)
"""Words with a digit that stand in prose about secrets."""
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]"
)


def find_secret(text: str) -> str | None:
    """The kind of key that ``text`` seems to hold, or None."""
    visible = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    for kind, pattern in _SHAPES:
        if re.search(pattern, visible):
            return kind
    for match in _ASSIGNED.finditer(visible):
        long_enough = len(match[1]) >= _LENGTH_MIN or _PASSWORD.match(match[0])
        if long_enough and _looks_random(match[1]):
            return "a password or token"
    return None


def _looks_random(value: str) -> bool:
    """Letters and digits mixed, as in a key; not a word, a path, a call, a dotted name, a term or a measure (``12-character``)."""
    if "/" in value and not re.search(r"[+=]|[A-Za-z0-9/]{30,}", value):
        return False
    if re.fullmatch(r"[~.]{0,2}/?(?:(?:Users|[a-z][a-z_.-]*[0-9]{0,3})/)+[\w.-]*", value):
        return False
    if re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)+|[0-9]+(?:-[A-Za-z]+)+", value):
        return False
    rest = _TERM.sub("", value)
    return bool(re.search(r"[A-Za-z]", value)) and bool(re.search(r"[0-9]", rest))
