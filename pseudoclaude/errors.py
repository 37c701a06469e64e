"""One exception tree.  Each class says what is still true after it was raised.

Three kinds of trouble are kept apart.  A bug of ours is an ``assert``.  The world failing (disk, provider, another
process) is one of the classes below.  Damage in stored data is never an exception: it is a finding in a returned value.

Every message has the same four parts, in this order and each only if it has something to say:
what happened, where, what is still true, what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pseudoclaude.messages import Message


class PseudoClaudeError(Exception):
    """Root of the tree.  ``str(error)`` is the whole sentence a user should read.

    ``still_true`` and ``do_next`` stay available as attributes, for a caller that shows them elsewhere.
    """

    def __init__(self, what: str, *, where: str = "", still_true: str = "", do_next: str = "") -> None:
        self.what = what
        self.where = where
        self.still_true = still_true
        self.do_next = do_next
        parts = [what + (f" ({where})" if where else "")]
        parts += [part for part in (still_true, do_next) if part]
        super().__init__(". ".join(part.rstrip(".") for part in parts) + ".")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[PseudoClaudeError], args: tuple[Any, ...], state: dict[str, Any]) -> PseudoClaudeError:
    """An error that comes from another process: its text is made already, so ``__init__`` is passed over."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InvalidMessage(PseudoClaudeError, ValueError):
    """A message, tool call or native payload cannot be a JSON value or breaks the shape.  Nothing was stored."""


class InvalidSettings(PseudoClaudeError, ValueError):
    """A limit or policy makes no sense.  Nothing was started."""


class ReentrantChange(PseudoClaudeError):
    """A conversation hook tried to change the conversation.  The change that called the hook stands; the inner one does not."""


# --- session ---------------------------------------------------------------------------------------------------


class SessionError(PseudoClaudeError):
    """Something about a stored session."""


class SessionLocked(SessionError):
    """Another process has the session open for append.  Nothing was read or written."""


class SessionUnreadable(SessionError):
    """The log exists but cannot be read (permission, I/O error).  It is not missing, and not a byte changed."""


class SessionMissing(SessionError):
    """No such session.  Nothing was created."""


class UnsupportedVersion(SessionError):
    """The log was written by a newer format.  Not a byte changed."""


class SessionChanged(SessionError):
    """The log is not what this writer last wrote.  Nothing was written; unsaved messages are still in memory."""


class NotDurable(SessionError):
    """A write or sync failed.  Everything acknowledged before is safe; ``unsaved`` is in memory and is written first, in
    order, once the disk accepts writes again.
    """

    def __init__(self, what: str, *, unsaved: int, where: str = "", still_true: str = "", do_next: str = "") -> None:
        self.unsaved = unsaved
        super().__init__(what, where=where, still_true=still_true, do_next=do_next)


class SessionClosed(SessionError):
    """The writer was closed.  Nothing was written."""


# --- compact ---------------------------------------------------------------------------------------------------


class CompactError(PseudoClaudeError):
    """Bounding the context failed.  The history is as it was."""


class SpillFailed(CompactError):
    """A large result could not be written to its file.  Its full text is still in the history; it is tried again next time."""


class SummaryFailed(CompactError):
    """A summary was not accepted; ``kind`` says why (``empty_summary``, ``tool_call``, ``cut_off``, ``no_saving``,
    ``too_long``, ``refusal``, ``provider``).  The history is as it was.
    """

    def __init__(self, what: str, *, kind: str, where: str = "", still_true: str = "", do_next: str = "") -> None:
        self.kind = kind
        super().__init__(what, where=where, still_true=still_true, do_next=do_next)


class ContextWindowExceeded(CompactError):
    """The history does not fit the window and compaction may not run.  Nothing was sent; the history is as it was."""


# --- memory ----------------------------------------------------------------------------------------------------


class MemoryFailed(PseudoClaudeError):
    """A memory store could not be read or written.  Both stores are in their old or their new state, never between."""


class InvalidOperation(MemoryFailed, ValueError):
    """A memory operation is malformed or refused.  Only this operation is dropped."""


# --- providers -------------------------------------------------------------------------------------------------


class ProviderError(PseudoClaudeError):
    """A model request failed.  The history is as it was when the request was made.

    ``status`` is the HTTP status when there was one (200 for an error inside a stream), ``retryable`` says whether the same
    request may succeed later, ``retry_after`` is in seconds.
    """

    def __init__(
        self,
        what: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        where: str = "",
        still_true: str = "",
        do_next: str = "",
    ) -> None:
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        super().__init__(what, where=where, still_true=still_true, do_next=do_next)


class ContextOverflow(ProviderError):
    """The request is longer than the model's window.  Compacting is what helps; retrying is not."""


class RateLimited(ProviderError):
    """Too many requests or too many tokens.  ``retryable`` is False for a quota or a request that can never fit."""


class Overloaded(ProviderError):
    """The provider is busy (529, or an overloaded error inside a stream)."""


class ProviderUnavailable(ProviderError):
    """No usable answer: connection, timeout, 5xx, unreadable body."""


class InvalidRequest(ProviderError):
    """The provider refused the request as it is.  Sending it again unchanged fails again."""


class AuthenticationFailed(ProviderError):
    """The key is missing, wrong or lacks a permission."""


class StreamInterrupted(ProviderError):
    """The stream stopped after something had arrived.  ``partial`` is that something, as an assistant message without
    tool calls and with ``stop="interrupted"``.
    """

    def __init__(self, what: str, *, partial: Message, where: str = "", cause: str = "") -> None:
        self.partial = partial
        super().__init__(
            what,
            where=where,
            retryable=True,
            still_true="The text that arrived is kept and marked interrupted",
            do_next=cause,
        )


# --- tools -----------------------------------------------------------------------------------------------------


class ToolFailed(PseudoClaudeError):
    """A tool could not do what it was asked, and says why to the model.  Nothing was changed."""


def listing(names: Sequence[str], most: int = 5) -> str:
    """``a, b and 3 more``: for messages that name things without running away."""
    shown = list(names[:most])
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")
