"""Memory: lasting facts as Markdown notes with an index, for the project and for the user, that survive crashes and hand edits."""

from pseudoclaude.memory.index import trim_index
from pseudoclaude.memory.manager import MemoryManager
from pseudoclaude.memory.notes import Note
from pseudoclaude.memory.operations import Operation, Rejected, parse_operations, validate_operation

__all__ = ["MemoryManager", "Note", "Operation", "Rejected", "parse_operations", "trim_index", "validate_operation"]
