"""What can go wrong with the harness's own replies.  None of these is a verdict on the product: the run could not measure (exit 3).

They are no ``ProviderError``: nothing may retry them, and nothing may take them for the network.
"""

from __future__ import annotations

from pseudoclaude.errors import PseudoClaudeError


class ReplyError(PseudoClaudeError):
    """Root of this module: the harness has no reply to give."""


class ScriptExhausted(ReplyError):
    """More requests were made than the script has entries."""


class CassetteUnreadable(ReplyError):
    """A cassette is missing, empty, compressed, or not what vcrpy writes.  Nothing was replayed."""


class CassetteMiss(ReplyError):
    """A request that no unused recording answers.  Nothing was sent anywhere."""
