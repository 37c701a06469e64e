"""Where model replies come from in the simulator: scripts, cassettes, and an emulator over real HTTP.

This page gives what costs nothing to import.  Cassettes are in ``replay``, the emulator in ``emulator``, recording in ``recording``.
"""

from simulator.replies.errors import CassetteMiss, CassetteUnreadable, ReplyError, ScriptExhausted
from simulator.replies.script import ProviderSpec, ScriptEntry
from simulator.replies.scripted import ScriptedProvider

__all__ = [
    "CassetteMiss",
    "CassetteUnreadable",
    "ProviderSpec",
    "ReplyError",
    "ScriptEntry",
    "ScriptExhausted",
    "ScriptedProvider",
]
