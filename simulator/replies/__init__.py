"""Where model replies come from in the simulator: scripts, cassettes, and an emulator over real HTTP."""

from simulator.replies.cassettes import Cassette, load_cassette
from simulator.replies.errors import CassetteMiss, CassetteUnreadable, ReplyError, ScriptExhausted
from simulator.replies.replay import CassetteProvider, cassette_provider
from simulator.replies.transport import StreamCut

__all__ = [
    "Cassette",
    "CassetteMiss",
    "CassetteProvider",
    "CassetteUnreadable",
    "ReplyError",
    "ScriptExhausted",
    "StreamCut",
    "cassette_provider",
    "load_cassette",
]
