"""Looking up a JSON value among names.

What stands under ``type``, ``id`` or ``role`` of a message that came from outside may be a list or an object, and asking a set or a
dict for one of those raises.  Whoever does not know yet that a value is text asks here.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any


def is_one_of(value: Any, names: Container[Any]) -> bool:
    """Whether ``value`` is text and one of ``names``; False for any other JSON value."""
    return isinstance(value, str) and value in names
