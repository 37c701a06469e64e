"""Which opaque values (signatures, encrypted content) a provider can have made, and which are placeholders.

Nobody but the provider can verify a signature.  What can be told apart is a value somebody made up: an empty string, a word, a
short id.  The rule: a value marked ``<kind>:ok`` or ``<kind>:ok:…`` (``sig``, ``red``, ``cmp``, ``enc``, ``ts``: the notation of
the case files and of the simulator) is genuine, any other value of that notation is forged; else a value is genuine if it is long
and drawn from the Base64 alphabets with capitals, small letters and digits all in it, as every recorded one is.
"""

from __future__ import annotations

import re
from typing import Any

OPAQUE_LENGTH_MIN = 32
"""Shortest value that can be a provider's; recorded ones have 276 characters and more."""

_MARKED_GENUINE = re.compile(r"(?:sig|red|cmp|enc|ts):ok(?::.*)?", re.DOTALL)
_BASE64 = re.compile(r"(?=.*[A-Z])(?=.*[a-z])(?=.*[0-9])[A-Za-z0-9+/_-]+={0,2}")


def is_genuine(value: Any) -> bool:
    """Whether ``value`` can be what a provider sent."""
    if not isinstance(value, str):
        return False
    if _MARKED_GENUINE.fullmatch(value):
        return True
    return len(value) >= OPAQUE_LENGTH_MIN and _BASE64.fullmatch(value) is not None
