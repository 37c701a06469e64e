"""Compact: bounding the context.  Layer 1 spills large results to files, layer 2 asks a model for a summary.

Read ``tokens``, ``ledger``, ``spill``, ``runtime``, ``rounds``, ``offload``, ``summarize``, ``manager``, in this order.
"""

from pseudoclaude.compact.manager import ManageOutput, force_compact, manage_context
from pseudoclaude.compact.offload import OffloadResult, offload_tool_results
from pseudoclaude.compact.rounds import select_recent
from pseudoclaude.compact.runtime import Runtime
from pseudoclaude.compact.tokens import Anchor, estimate_with_anchor

__all__ = [
    "Anchor",
    "ManageOutput",
    "OffloadResult",
    "Runtime",
    "estimate_with_anchor",
    "force_compact",
    "manage_context",
    "offload_tool_results",
    "select_recent",
]
