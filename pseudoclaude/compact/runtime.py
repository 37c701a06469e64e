"""What Compact remembers during one session: the usage anchor, the ledger, the breaker, and where spills go.

It lives as long as the session is open in this process and holds nothing that must survive: after a restart there is no anchor
(the old usage may belong to a history that was replaced since), the ledger starts over and decides the same, and the breaker is
closed.  For one thread: the Runner's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from pseudoclaude.compact.ledger import Ledger
from pseudoclaude.compact.spill import SpillFolder
from pseudoclaude.compact.tokens import Anchor, Prefix, estimate_with_anchor, overhead
from pseudoclaude.errors import CompactError
from pseudoclaude.messages import History, Usage
from pseudoclaude.ports import FileSystem, ToolSpec
from pseudoclaude.settings import Settings


class Runtime:
    """The state of Compact for one session.  ``session_folder`` is the absolute folder that holds ``tool-results``.

    A resumed session takes a new one.  Decisions then follow from the messages: a result with ``spill`` is spilled, one within the
    limits is kept, and one over a limit (its spill failed, or a crash came before it) is spilled at the next check.
    """

    def __init__(
        self, *, fs: FileSystem, session_folder: str | os.PathLike[str], settings: Settings | None = None
    ) -> None:
        self.settings = settings or Settings()
        self.spills = SpillFolder(fs, os.fspath(session_folder), sync=self.settings.durability != "off")
        self.ledger = Ledger()
        self._anchor: Anchor | None = None
        self._overhead_of: tuple[str, Sequence[ToolSpec]] = ("", ())
        self._overhead_tokens = 0
        self._failures = 0
        self._last_failure: CompactError | None = None
        self._user_knows = False

    # --- tokens

    def record_usage(self, messages: History, usage: Usage | None) -> None:
        """Anchor the estimate: ``usage`` is the provider's count for ``messages``, of which the last is the reply it was given for.

        Without a count (``None``, or all zeros as some streams report after an error) the anchor stays as it is.
        """
        if usage is not None and usage.context_tokens > 0 and messages:
            self._anchor = Anchor(usage.context_tokens, Prefix.of(messages, len(messages)))

    def record_overflow(self, messages: History) -> None:
        """The provider refused ``messages`` as too long although the estimate said otherwise: from now on they fill the window."""
        self._anchor = Anchor(self.settings.context_window, Prefix.of(messages, len(messages)))

    def void_anchor(self) -> None:
        """Forget the last usage: it was for another history."""
        self._anchor = None

    def estimate(self, messages: History, system: str = "", tools: Sequence[ToolSpec] = ()) -> int:
        """Tokens of the next request with ``messages``.  The answer is the next anchor, so that no message is estimated twice."""
        anchor, ratio = self._anchor, self.settings.bytes_per_token
        if anchor is not None and anchor.prefix.begins(messages):
            if anchor.prefix.length == len(messages):
                return anchor.tokens
            tokens = estimate_with_anchor(messages, anchor, ratio)
        else:
            tokens = estimate_with_anchor(messages, None, ratio, overhead_tokens=self._overhead(system, tools))
        self._anchor = Anchor(tokens, Prefix.of(messages, len(messages)))
        return tokens

    def _overhead(self, system: str, tools: Sequence[ToolSpec]) -> int:
        known_system, known_tools = self._overhead_of
        if known_system is not system or known_tools is not tools:
            self._overhead_tokens = overhead(system, tools, self.settings.bytes_per_token)
            self._overhead_of = (system, tools)
        return self._overhead_tokens

    @property
    def reply_tokens(self) -> int:
        """Room that the next reply needs.  An output limit beyond half of the window cannot be meant as room to keep free; then it is
        what the reserves leave."""
        settings = self.settings
        if settings.max_output_tokens <= settings.context_window // 2:
            return settings.max_output_tokens
        return settings.summary_reserve_tokens + settings.auto_margin_tokens

    @property
    def threshold_tokens(self) -> int:
        """The estimate from which compaction is due: window - reserve - margin, or less where a reply needs more than these."""
        return min(self.settings.compact_at_tokens, self.settings.context_window - self.reply_tokens)

    def fits_window(self, tokens: int) -> bool:
        """Whether a request of ``tokens`` leaves room for its reply."""
        return tokens + self.reply_tokens <= self.settings.context_window

    # --- circuit breaker

    @property
    def failures(self) -> int:
        """Automatic compactions in a row that failed or made no progress."""
        return self._failures

    @property
    def breaker_open(self) -> bool:
        """True when automatic compaction asks no model any more, until one compaction succeeds."""
        return self._failures >= self.settings.breaker_failures

    @property
    def last_failure(self) -> CompactError | None:
        return self._last_failure

    def record_failure(self, error: CompactError) -> None:
        """An automatic compaction failed."""
        self._failures += 1
        self._last_failure = error

    def record_success(self) -> None:
        """A compaction, automatic or manual, made room."""
        self._failures = 0
        self._last_failure = None
        self._user_knows = False

    def notice_once(self) -> str:
        """What to tell the user about an open breaker; empty when they were told already or it is closed."""
        if not self.breaker_open or self._user_knows:
            return ""
        self._user_knows = True
        cause = self._last_failure.what if self._last_failure else "unknown"
        return (
            f"Automatic compaction stopped after {self._failures} failures in a row; the last: {cause}. The conversation is complete "
            "and goes on until the context window is full. Compact it by hand to try again, or start a new session."
        )
