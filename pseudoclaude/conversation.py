"""Conversation: the ordered messages the model will see next; the source of truth of the next request.

It lives in one process.  It knows nothing of disks: whoever wants to persist it subscribes with ``Hooks``.

Promises.  ``messages()`` is an immutable snapshot.  A change happens in memory under the message lock and the hook is called after
that lock is released, so disk I/O never blocks a reader.  Hooks run in the order of the changes, from any number of threads,
because a second lock (the order lock) is held from the change to the end of its hook.  When a hook fails, memory is ahead of the
disk: ``unsaved`` says so, and the error reaches whoever made the change.

Refuses: a change from inside a hook (a clear error instead of a deadlock), and any replacement that is not compaction's or
recovery's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from pseudoclaude.errors import ReentrantChange
from pseudoclaude.messages import History, Message, Stop, ToolCall, ToolResult

ReplaceReason = Literal["snapshot", "compact", "recover"]
REPLACE_REASONS: tuple[ReplaceReason, ...] = ("snapshot", "compact", "recover")


class Hooks(NamedTuple):
    """Subscribers to changes.  ``on_append`` gets the message, ``on_replace`` the reason and the whole new history."""

    on_append: Callable[[Message], None] | None = None
    on_replace: Callable[[ReplaceReason, History], None] | None = None


class _PrefixChanged(Exception):
    """Another replacement came in between; nothing was changed."""


class Conversation:
    """The live history of one session.  Safe to use from several threads."""

    def __init__(self, messages: Iterable[Message] = (), hooks: Hooks = Hooks()) -> None:  # noqa: B008 (immutable)
        self._messages: list[Message] = list(messages)
        self._snapshot: History | None = None
        self._hooks = hooks
        self._message_lock = threading.Lock()
        self._order_lock = threading.Lock()
        self._order_owner: int | None = None
        self._unsaved = 0

    def messages(self) -> History:
        """The history as it is now; later changes do not show in it."""
        with self._message_lock:
            if self._snapshot is None:
                self._snapshot = tuple(self._messages)
            return self._snapshot

    def __len__(self) -> int:
        with self._message_lock:
            return len(self._messages)

    @property
    def unsaved(self) -> int:
        """How many changes a hook failed to take over since one last succeeded; 0 when disk and memory agree."""
        return self._unsaved

    def append(self, message: Message) -> None:
        """Add one message.  Raises what the hook raises; the message is in memory either way."""

        def change() -> None:
            self._messages.append(message)

        hook = self._hooks.on_append
        self._change(change, None if hook is None else lambda: hook(message))

    def replace_messages(self, reason: ReplaceReason, messages: Iterable[Message]) -> None:
        """Put a whole new history in place of the old one.  Only compaction and recovery may."""
        _check_reason(reason)
        fresh = tuple(messages)

        def change() -> None:
            self._messages = list(fresh)

        hook = self._hooks.on_replace
        self._change(change, None if hook is None else lambda: hook(reason, fresh))

    def replace_prefix(self, reason: ReplaceReason, old: History, new: Iterable[Message]) -> bool:
        """Put ``new`` in place of ``old``, a snapshot taken earlier, and keep behind it what was appended since.

        False, and nothing is changed, when the history no longer begins with exactly the messages of ``old``.  One change under the
        lock, so that a message appended meanwhile by another thread is in the new history, once.
        """
        _check_reason(reason)
        head = tuple(new)
        fresh: list[History] = []

        def change() -> None:
            if len(self._messages) < len(old) or any(
                now is not then for now, then in zip(self._messages, old, strict=False)
            ):
                raise _PrefixChanged
            self._messages = [*head, *self._messages[len(old) :]]
            fresh.append(tuple(self._messages))

        hook = self._hooks.on_replace
        try:
            self._change(change, None if hook is None else lambda: hook(reason, fresh[0]))
        except _PrefixChanged:
            return False
        return True

    def add_user(self, text: str) -> Message:
        return self._added(Message("user", text))

    def add_assistant(self, text: str, stop: Stop | None = None) -> Message:
        return self._added(Message("assistant", text, stop=stop))

    def add_assistant_tool_calls(self, text: str, calls: Iterable[ToolCall]) -> Message:
        return self._added(Message("assistant", text, tuple(calls), stop="tool_use"))

    def add_tool_result(self, result: ToolResult) -> Message:
        return self._added(Message("tool", tool_result=result))

    def _added(self, message: Message) -> Message:
        self.append(message)
        return message

    def _change(self, change: Callable[[], None], notify: Callable[[], None] | None) -> None:
        me = threading.get_ident()
        if self._order_owner == me:
            raise ReentrantChange(
                "a conversation hook tried to change the conversation",
                still_true="The change that called the hook stands, the inner one was not made",
                do_next="Make the change after the hook has returned",
            )
        with self._order_lock:
            self._order_owner = me
            try:
                with self._message_lock:
                    change()
                    self._snapshot = None
                if notify is not None:
                    self._unsaved += 1
                    notify()
                    self._unsaved = 0
            finally:
                self._order_owner = None


def _check_reason(reason: str) -> None:
    if reason not in REPLACE_REASONS:
        raise ValueError(f"a history is replaced for {', '.join(REPLACE_REASONS)}, not for {reason!r}")
