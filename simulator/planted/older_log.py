"""The log protocol of the source design: a replace is a bare marker, then the new messages one by one, each with its own sync.

The loader clears at the marker and takes what follows as the new history (``load`` reads such logs with exactly those semantics).  It keeps
its own promise - it never raises, and what it loads is valid - and loses acknowledged messages when a crash lands between its lines.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable

from pseudoclaude.messages import Message
from pseudoclaude.ports import Clock, FileSystem, Ids
from pseudoclaude.session import SessionWriter
from pseudoclaude.settings import Dangling, Settings
from simulator.product import Product, Writer


class OlderLogWriter(SessionWriter):
    """A writer whose ``append_replace`` takes many records."""

    def append_replace(self, reason: str, messages: Iterable[Message]) -> None:
        snapshot = tuple(messages)
        with self._mutex:
            self._check_open()
            body = json.dumps(
                {"type": "replace", "n": self._take_n(), "ts": self._now(), "reason": reason}, separators=(",", ":")
            ).encode()
            self._history = []
            self._queue(self._next_n - 1, b'%b,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body)))
            self._flush(sync=True)
            for message in snapshot:
                self.append_message(message)


class OlderLogProtocol(Product):
    """``Product`` with the older writer."""

    def open(
        self, folder: str, *, settings: Settings, fs: FileSystem, clock: Clock, ids: Ids, dangling: Dangling
    ) -> Writer:
        return OlderLogWriter.open(folder, settings=settings, fs=fs, clock=clock, ids=ids, dangling=dangling)
