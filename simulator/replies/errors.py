"""What can go wrong with the harness's own replies.  None of these is a verdict on the product: the run could not measure (exit 3).

They are outside the product's tree of errors on purpose: nothing in the product may catch one, retry it, or take it for the network.
"""

from __future__ import annotations


class ReplyError(Exception):
    """Root of this module: the harness has no reply to give.  ``str(error)`` is the whole sentence a user should read."""

    def __init__(self, what: str, *, where: str, still_true: str = "", do_next: str = "") -> None:
        parts = [f"{what} ({where})", still_true, do_next]
        super().__init__(". ".join(part.rstrip(".") for part in parts if part) + ".")


class ScriptExhausted(ReplyError):
    """More requests were made than the script has entries."""


class NotScriptable(ReplyError):
    """A failure that only the emulator can make was asked of the scripted provider."""


class CassetteUnreadable(ReplyError):
    """A cassette is missing, empty, compressed, or not what vcrpy writes.  Nothing was replayed."""


class CassetteMiss(ReplyError):
    """A request that no unused recording answers.  Nothing was sent anywhere."""
