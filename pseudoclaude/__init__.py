"""PseudoClaude: the context of a coding agent - Conversation, Session, Compact, Memory - made crash-safe."""

from pseudoclaude.conversation import Conversation, Hooks
from pseudoclaude.messages import Message, Native, Spill, ToolCall, ToolResult, Usage
from pseudoclaude.settings import Settings

__all__ = ["Conversation", "Hooks", "Message", "Native", "Settings", "Spill", "ToolCall", "ToolResult", "Usage"]
