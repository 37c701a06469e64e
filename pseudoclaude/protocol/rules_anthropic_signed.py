"""The rules as data: Anthropic Messages, A39 to A68."""

from __future__ import annotations

from pseudoclaude.protocol.values import Rule

ANTHROPIC_SIGNED = (
    Rule(
        "A39",
        "Container-bound server tools: the follow-up names the same `container`.",
        "Persist `container.id` with the session.",
        "documented",
        "SDK 2.14 `lib/threads/_thread_state.py`",
        unchecked="the container id is a request parameter, not part of the history",
    ),
    Rule(
        "A40",
        (
            "A `thinking` block has string `thinking` and a genuine `signature`; `redacted_thinking.data` "
            "genuine. Placeholders fail."
        ),
        "Remove the block (all of that turn's thinking). Never fabricate.",
        "observed",
        "anthropics/anthropic-sdk-python#1598; code-yeongyu/oh-my-openagent#2775",
    ),
    Rule(
        "A41",
        (
            "In the latest assistant turn thinking blocks go back as returned: not edited, reordered, partly "
            "filtered or rebuilt; empty `thinking` strings included."
        ),
        (
            "Persist and replay raw bytes. If damaged, remove all thinking of the turn, or close the round and "
            "restart from a summary."
        ),
        "documented; detail contradicted",
        'Doc "Claude API errors › Thinking blocks cannot be modified"; anthropics/claude-code#24087',
    ),
    Rule(
        "A42",
        (
            "Manual mode (`thinking:{type:enabled}`, <= 4.6 models): the assistant turn of an open tool loop "
            "starts with thinking. Adaptive mode has no such rule."
        ),
        "Send this request with thinking disabled, or end the tool loop; do not invent a block.",
        "observed, mode-gated",
        "n8n-io/n8n#22550; lbjlaq/Antigravity-Manager#139",
    ),
    Rule(
        "A43",
        "Older text of A42: a message with any thinking starts with thinking. Interleaved thinking contradicts it.",
        "Keep the original order; never reorder to satisfy this.",
        "contradicted",
        "public report",
        unchecked="contradicted by interleaved thinking; reporting it would make clients reorder blocks, which breaks A41",
    ),
    Rule(
        "A44",
        (
            "Thinking may be removed oldest-first only. Removing an interior block invalidates every later one "
            "(same models as A45)."
        ),
        "Strip every later thinking block too.",
        "documented",
        "kirodotdev/KiroCrew#11513; SDK `thinking_dropped` docstring",
    ),
    Rule(
        "A45",
        (
            "Prefix binding (Fable/Mythos 5.1+, Opus/Sonnet/Haiku 5.5): a thinking block is valid only after the "
            "exact `system`, `tools` and earlier messages it was produced after."
        ),
        (
            "Any repair before a kept thinking block (synthetic result, dropped message, merge) invalidates all "
            "later thinking: strip it all, or send `prefix_mismatch_behavior:drop_block` (beta)."
        ),
        "documented, model-gated",
        'Docs "Preserved thinking", "Prefix checks", "Claude API errors"; anomalyco/opencode#48637',
    ),
    Rule(
        "A46",
        "Do not compact or edit between a tool_use and its tool_result when thinking is replayed.",
        "Cut only before a genuine user turn.",
        "documented",
        'Doc "Preserved thinking › Patterns that don\'t work"',
        unchecked="no check of its own: such an edit shows as A20, A41 or A45",
    ),
    Rule(
        "A47",
        "Blocks from a model/account the target cannot read are dropped silently, not rejected.",
        "No repair; do not rely on the reasoning being seen.",
        "documented",
        'Doc "Preserved thinking"; SDK `thinking_dropped` reasons',
        unchecked="nothing is rejected: unreadable blocks are dropped silently",
    ),
    Rule(
        "A48",
        "Beta `fallback` block: keep its position in the assistant turn.",
        "Keep verbatim; if only used on the non-fallback surface strip it and the thinking around it.",
        "documented",
        "SDK `beta_fallback_block_param` docstring",
        unchecked="what was omitted cannot be seen in the history that is sent",
    ),
    Rule(
        "A50",
        "At most one `compaction` block with content.",
        "Keep the last returned one.",
        "documented",
        "SDK 2.14 `CompactionBlockAmbiguousError`",
    ),
    Rule(
        "A51",
        (
            "The compaction block is the first block of the conversation, not in a system message "
            "(compact-2026-09-04 form)."
        ),
        "Drop everything before it.",
        "documented",
        "SDK 2.14 `CompactionBlockMisplacedError`",
    ),
    Rule(
        "A52",
        (
            'Compaction `content`/`signature`/`tool_changes`/`encrypted_content` unchanged; `content:""` illegal,'
            " `null` is a no-op."
        ),
        "Replace the block by a plain user summary.",
        "documented",
        "SDK 2.14 typed errors; `beta_compaction_block_param`",
    ),
    Rule(
        "A53",
        "A compaction request does not end on an unfinished assistant turn and has something to summarise.",
        "Finish the round first.",
        "documented",
        "SDK 2.14 typed errors",
        unchecked="only for requests that ask for a compaction, which a history does not say",
    ),
    Rule(
        "A54",
        "Tool changes / `tool_reference` name a tool defined at that point; no name clash.",
        "Restore the original `tools`; drop the directive.",
        "documented",
        "SDK 2.14 typed errors",
    ),
    Rule(
        "A60",
        (
            "More than 20 image blocks in the request (resent and nested ones count): every side <= 2000 px. "
            "Otherwise <= 8000 px."
        ),
        "Downscale or replace the oldest images by text placeholders.",
        "documented",
        'Doc "Vision › request limits" via charmbracelet/crush#3810; anthropics/claude-code#4778',
    ),
    Rule(
        "A61",
        "Image count/size caps (100 images and 10 MB base64 per image in the reports found; values move).",
        "As A60.",
        "observed, value uncertain",
        "earendil-works/pi#401; can1357/oh-my-pi#10633",
    ),
    Rule(
        "A62",
        "PDF page cap (100 in captured errors).",
        "Extract text.",
        "observed",
        "public report",
        unchecked="the pages of a PDF are not counted here",
    ),
    Rule(
        "A63",
        "Request body <= 32 MB.",
        "Drop media first.",
        "documented",
        'Doc "Claude API errors"',
    ),
    Rule(
        "A64",
        "Input tokens <= window.",
        "Compact.",
        "observed",
        "anthropics/claude-code#12186",
        unchecked="counting tokens is Compact's part",
    ),
    Rule(
        "A65",
        (
            "Input + `max_tokens` <= window (models that check the sum; newer ones may instead stop with "
            "`model_context_window_exceeded`)."
        ),
        "Lower max_tokens, then compact.",
        "observed, model-gated",
        "docker/docker-agent#569; SDK `stop_reason`",
        unchecked="counting tokens is Compact's part",
    ),
    Rule(
        "A66",
        "At most 4 `cache_control` marks over tools+system+messages.",
        "Keep the last ones; markers are not part of A45.",
        "observed",
        "tghamm/Anthropic.SDK#50; griffinmartin/opencode-claude-auth#121",
    ),
    Rule(
        "A67",
        "`cache_control` not on an empty text block (nor, by its type, on thinking blocks).",
        "Re-place marks after all drops.",
        "observed",
        "public report; SDK thinking params have no such field",
    ),
    Rule(
        "A68",
        "A referenced `file_id` exists and is unexpired.",
        "Replace the block by text.",
        "documented",
        "SDK 2.14 `FileExpiredError`",
        unchecked="only the server knows which files exist",
    ),
)
