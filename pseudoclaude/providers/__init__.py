"""Adapters between canonical messages and the official SDKs; this page gives the projection alone and imports no SDK."""

from pseudoclaude.providers.wire import to_wire

__all__ = ["to_wire"]
