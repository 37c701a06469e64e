"""The rules as data: other servers, and all providers."""

from __future__ import annotations

from pseudoclaude.protocol.values import Rule

OTHER = (
    Rule(
        "X01",
        (
            "DeepSeek thinking mode: assistant turns of a round with tool calls carry their `reasoning_content`; "
            "without tool calls it is ignored."
        ),
        "Persist it; if lost, switch thinking off or restart from a summary.",
        "documented",
        "rikkahub/rikkahub#1587 (quotes docs); earendil-works/pi#3636",
    ),
    Rule(
        "X02",
        "Kimi/Moonshot: same for tool-call messages.",
        "Same (a placeholder string is used by some clients).",
        "observed",
        "continuedev/continue#11600, #11806",
    ),
    Rule(
        "X03",
        "Mistral: no user right after tool; assistant must answer first.",
        "Insert a short assistant message.",
        "observed",
        "datapizza-labs/datapizza-ai#98; BerriAI/litellm#6323",
    ),
    Rule(
        "X04",
        "Mistral: tool id exactly 9 of [a-zA-Z0-9].",
        "Deterministic 9-char map.",
        "observed",
        "karthink/gptel#1203",
    ),
    Rule(
        "X05",
        "Mistral: as many tool messages as calls; last role user or tool.",
        "As C03/A12.",
        "observed",
        "mistralai/client-ts#106; BerriAI/litellm#4931",
    ),
    Rule(
        "X06",
        "Gemini: functionResponse parts = functionCall parts of the turn; a call turn follows a user or response turn.",
        "Synthesise responses; merge into one user content.",
        "observed",
        "google-gemini/gemini-cli#3814 (after compression), #16543; public report",
    ),
    Rule(
        "X07",
        (
            "Gemini 3: each replayed functionCall keeps its `thoughtSignature` (OpenAI-compat: "
            "`extra_content.google.thought_signature`)."
        ),
        "Keep; if lost, flatten the round to text.",
        "observed",
        "danny-avila/LibreChat#11826; public report",
    ),
    Rule(
        "X08",
        "vLLM and others parse historical `arguments`; invalid JSON poisons the session.",
        "As C13.",
        "observed",
        "vllm-project/vllm#48922, #55495",
    ),
    Rule(
        "X09",
        "Strict chat templates: alternate user/assistant after an optional system.",
        "Merge.",
        "observed",
        "vllm-project/vllm#6862; Aider-AI/aider#1920",
    ),
    Rule(
        "X10",
        "Ollama: assistant `content:null` refused even with tool_calls.",
        'Send `""`.',
        "reported once",
        "SAIL-Research-Lab/cheetahclaws#72",
    ),
    Rule(
        "X11",
        (
            "DeepSeek-type Responses endpoints want `reasoning.content` and one reasoning item before each call; "
            "OpenAI forbids content (R13)."
        ),
        "Per-provider serializer.",
        "reported once",
        "rikkahub/rikkahub#1690",
        unchecked="no dialect of its own: no case and no adapter; what it wants contradicts R13",
    ),
    Rule(
        "X12",
        "Bedrock Converse: strict alternation, toolConfig needed with tool blocks, prefill limits.",
        "Merge; send tools.",
        "observed",
        "microsoft/semantic-kernel#10281; decolua/9router#1170",
    ),
    Rule(
        "X13",
        "Anthropic-compatible third parties reject `system` entries in messages and may reject unknown blocks.",
        "Hoist.",
        "observed",
        "QwenLM/Qwen#2244",
        unchecked="no dialect of its own: no case and no adapter; judge with the context system_in_messages false (A15)",
    ),
    Rule(
        "S01",
        "Body is valid JSON/UTF-8: no lone surrogate. Byte/char truncation through an emoji causes it.",
        "Replace lone surrogates by U+FFFD; truncate on code points.",
        "observed",
        "anthropics/claude-code#60394, #8108, #3277",
    ),
    Rule(
        "S02",
        "Id rewriting is deterministic, injective, idempotent and applied to call and result alike.",
        "prefix + hash of the original; keep the original in the canonical record.",
        "observed",
        "HKUDS/nanobot#4356; fawney19/Aether#829",
        unchecked=(
            "about rewriting, not about one history: property tests hold the projections to it; a collision shows"
            " as A24, C14 or R09"
        ),
    ),
    Rule(
        "S03",
        "A refusal/empty reply is stored with a reason, never as an empty assistant message.",
        "Render refusal text, or drop the turn.",
        "observed",
        "BerriAI/litellm#39723; corespeed-io/zypher-agent#122",
        unchecked="no check of its own: an empty assistant message shows as A08 or C08",
    ),
    Rule(
        "S04",
        "Damage is sticky: the same 400 returns on each retry until history changes.",
        "Repair, then at most one retry per repair kind.",
        "observed",
        "iii-hq/workers#463; usestrix/strix#468 (exception)",
        unchecked="about retrying, not about one history",
    ),
)
