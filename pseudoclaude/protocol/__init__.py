"""What providers reject, and repair: ``check`` judges a request as it goes on the wire, ``repair`` mends a canonical history."""

from pseudoclaude.protocol.check import check
from pseudoclaude.protocol.repair import repair
from pseudoclaude.protocol.values import Repair, Violation

__all__ = ["Repair", "Violation", "check", "repair"]
