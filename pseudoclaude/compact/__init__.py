"""Compact: bounding the context.  Layer 1 spills large results to files, layer 2 asks a model for a summary.

Read ``tokens``, ``ledger``, ``spill``, ``runtime``, ``offload``, ``summarize``, ``manager``, in this order.
"""

from pseudoclaude.compact.offload import OffloadResult, offload_tool_results
from pseudoclaude.compact.runtime import Runtime
from pseudoclaude.compact.tokens import Anchor, estimate_with_anchor

__all__ = [
    "Anchor",
    "OffloadResult",
    "Runtime",
    "estimate_with_anchor",
    "offload_tool_results",
]
