"""JSON values of the words that messages are made of, in any position: also a list or an object where text belongs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_JSON_LEAVES = st.sampled_from([None, True, 0, 1.5, "", " ", "x", "\ud800", "a.b", "sig:ok:1"])
_JSON_KEYS = st.sampled_from(
    [
        *(
            "role",
            "content",
            "type",
            "text",
            "id",
            "tool_use_id",
            "tool_calls",
            "tool_call_id",
            "function",
            "name",
            "arguments",
        ),
        *(
            "input",
            "thinking",
            "signature",
            "data",
            "call_id",
            "output",
            "summary",
            "encrypted_content",
            "parts",
            "functionCall",
        ),
        *(
            "functionResponse",
            "toolUse",
            "toolResult",
            "toolUseId",
            "is_error",
            "source",
            "cache_control",
            "output_config",
            "tool",
        ),
    ]
)
_JSON_WORDS = st.sampled_from(
    [
        *(
            "user",
            "assistant",
            "system",
            "tool",
            "model",
            "text",
            "tool_use",
            "tool_result",
            "thinking",
            "redacted_thinking",
            "image",
        ),
        *(
            "server_tool_use",
            "web_search_tool_result",
            "compaction",
            "message",
            "reasoning",
            "function_call",
            "custom_tool_call",
        ),
        *(
            "function_call_output",
            "item_reference",
            "program",
            "mcp_approval_response",
            "input_text",
            "output_text",
            "refusal",
        ),
        *("tool_addition", "tool_reference", "compaction_trigger", "image_url", "function", "custom"),
    ]
)
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(_JSON_LEAVES, _JSON_WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_JSON_KEYS, inner, max_size=5)),
    max_leaves=25,
)
