"""The rules as data: Anthropic Messages, A01 to A38."""

from __future__ import annotations

from pseudoclaude.protocol.values import Rule

ANTHROPIC = (
    Rule(
        "A01",
        "`messages` holds at least one message.",
        "Emit one user message carrying the recovery summary.",
        "observed",
        'docs.latitude.so "Anthropic provider rules"; public report',
    ),
    Rule(
        "A02",
        "First message is `user` (after any `system` rule, A16).",
        'Prepend a user message (summary or "[conversation resumed]"). Never start on assistant or on a tool_result.',
        "contradicted",
        "lobehub/lobehub#1601 (400, 2024-03); anthropics/courses#79 (accepted, 2025-03)",
    ),
    Rule(
        "A03",
        "Consecutive same-role messages are accepted: the API joins them into one turn.",
        (
            "Merge client-side anyway, concatenating block lists with tool_result blocks first, so A20-A22 hold "
            "whichever side of the merge the check runs on."
        ),
        "documented (old reports contradict)",
        "SDK `messages` docstring; anthropics/courses#79",
        unchecked="the API accepts it and joins the messages into one turn; the case shows that nothing is reported",
    ),
    Rule(
        "A04",
        "Roles are only `user`, `assistant` and (gated, A15) `system`. No `tool`/`developer`/`function`.",
        "Convert tool messages to tool_result blocks in a user message; hoist developer/system text.",
        "documented",
        "SDK `MessageParam` union; public report",
    ),
    Rule(
        "A05",
        "`content` is a string or an array of objects that each have `type`. `null`, numbers and bare objects fail.",
        "Drop the message if it carried nothing; otherwise rebuild the block list.",
        "reported once",
        "SDK types; public report",
    ),
    Rule(
        "A06",
        "No unknown keys on a message or block (message = `role`,`content` only outside betas).",
        "Serialise through an allow-list; keep uuid/timestamp/usage/foreign fields outside the wire object.",
        "observed",
        "RooCodeInc/Roo-Code#11429; anthropics/anthropic-sdk-typescript#857",
    ),
    Rule(
        "A07",
        "At most 100,000 messages.",
        "Compact.",
        "documented",
        "SDK `messages` docstring",
    ),
    Rule(
        "A08",
        (
            "Every turn has non-empty content; only a final assistant message may be empty. Measured detail: an "
            "empty user item passes if a neighbour in the same user run has content."
        ),
        "Drop the empty message, then re-merge roles; if it was the only user turn, use a placeholder.",
        "observed",
        "anthropics/claude-code#6774, #3196; corespeed-io/zypher-agent#122",
    ),
    Rule(
        "A09",
        "A text block is never the empty string. The API can itself return such a block.",
        (
            "Drop the block (see A08 if it was the last one). Nested text inside tool_result: not separately "
            "verified, drop it too."
        ),
        "observed",
        "anthropics/claude-code#59812; anthropics/anthropic-sdk-python#461",
    ),
    Rule(
        "A10",
        'A text block is not whitespace only. Replacing "" by " " is therefore no fix.',
        "Drop the block.",
        "observed",
        "anthropics/claude-code#23440, #23369; home-assistant/core#175637",
    ),
    Rule(
        "A11",
        "If the last message is assistant (prefill-capable model), its text must not end in whitespace.",
        "Prefer A12 repair (append a user turn); else right-trim the last text block only.",
        "observed",
        "tailcallhq/forgecode#1872; GCWing/OpenBitFun#825",
    ),
    Rule(
        "A12",
        (
            "Claude 4.6 and later (and Mythos Preview): the list must not end on an assistant turn. 4.5 and "
            "earlier accept prefill."
        ),
        (
            'Append a user turn ("continue"), or drop the incomplete assistant turn. Exception: a turn stopped '
            "with `pause_turn`/`compaction` is resent as is (A37)."
        ),
        "documented",
        'Doc "Claude API errors › Prefill not supported"; NousResearch/hermes-agent#79145',
    ),
    Rule(
        "A13",
        (
            "An assistant message does not end with a `thinking`/`redacted_thinking` block. This is the normal "
            "shape of a stream killed after reasoning."
        ),
        "Drop the trailing thinking run; if nothing remains, drop the message. Never add an empty text block (A09).",
        "observed",
        "tailcallhq/forgecode#2107, #3071; iii-hq/workers#463",
    ),
    Rule(
        "A14",
        "With thinking disabled, an assistant message in final position has no thinking block.",
        "As A12, or strip that turn's thinking.",
        "observed",
        "tailcallhq/forgecode#1195, #1853",
    ),
    Rule(
        "A15",
        (
            '`role:"system"` inside `messages` works only on Opus 4.8 and later families (Sonnet 5: one test '
            "suite says no). Earlier models reject it."
        ),
        "Hoist to top-level `system` only if no kept thinking depends on it (A45); else turn into user text.",
        "documented, model-gated",
        'Doc "Mid-conversation system messages"; anthropics/claude-code#61412',
    ),
    Rule(
        "A16",
        "A system message is never first.",
        "Move it to top-level `system`.",
        "observed",
        "public report; one saw it accepted on 2026-07-14, rejected 07-16",
    ),
    Rule(
        "A17",
        (
            "A system message follows a user turn (tool_result turns count) or an assistant turn ending in a "
            "server-tool result, and is last or followed by an assistant turn."
        ),
        "Slide it past the user run, or fold it into the adjacent user turn.",
        "observed (documented); runs of two: contradicted",
        "0xPlaygrounds/rig#1862 (live); Doc limitations",
    ),
    Rule(
        "A18",
        "A system message has >= 1 text (or beta tool_addition/tool_removal) block with non-whitespace text.",
        "Drop it.",
        "reported once",
        "SDK beta `system_message_param`; public report",
    ),
    Rule(
        "A20",
        (
            "Every `tool_use` in an assistant turn has a `tool_result` with its id in the next message, which is "
            "user. All parallel calls together."
        ),
        (
            'Synthesise `tool_result{is_error:true,"interrupted; outcome unknown"}` for each missing id (text-'
            "only content, A32)."
        ),
        "documented",
        'Doc "Handle tool calls"; anthropics/claude-code#3512, #5989 (parallel), #2157',
    ),
    Rule(
        "A21",
        "Every `tool_result` names a `tool_use` of the immediately preceding assistant turn.",
        "Drop it, or re-home it next to its call; if the call was compacted away, keep the content as plain user text.",
        "documented",
        "anthropics/claude-code#18947 (messages.0); openai/openai-agents-python#1797",
    ),
    Rule(
        "A22",
        "In that user message all tool_result blocks come before any other block.",
        "Stable-sort: results first, then text/images.",
        "documented",
        'Doc "Handle tool calls" (shown as a 400 example); apify/tester-mcp-client#12',
    ),
    Rule(
        "A23",
        "Exactly one tool_result per tool_use id.",
        "Keep the real one (prefer non-synthetic, then last written); drop the rest.",
        "observed",
        "anthropics/claude-code#14110 (Vertex)",
    ),
    Rule(
        "A24",
        "`tool_use` ids are unique in the whole request, also across turns.",
        "If the blocks are identical drop the copy; else rename the later one with its result.",
        "observed",
        "anthropics/claude-code#28515; trycua/cua#524",
    ),
    Rule(
        "A25",
        "`tool_use.id` and `tool_use_id` match `^[a-zA-Z0-9_-]+$` (so not empty). No length limit seen.",
        "Injective rewrite, same on both sides (S02).",
        "observed",
        "maximhq/bifrost#5097; CommandCodeAI/command-code#323",
    ),
    Rule(
        "A26",
        "`tool_use.input` is a JSON object, not string/null/array. Truncated argument streams break this.",
        'Parse; if it fails use `{}` (or `{"_raw":...}`) plus an error tool_result.',
        "observed",
        "anthropics/anthropic-sdk-typescript#648; anthropics/claude-code#6696",
    ),
    Rule(
        "A27",
        "`tool_use.name` in history <= 200 characters.",
        "Truncate/replace the name and answer it with an error result.",
        "observed",
        "a Claude Code error-reference page and its changelog; older reports say 64",
    ),
    Rule(
        "A28",
        "Tool definitions: name `^[a-zA-Z0-9_-]{1,128}$` (older reports `{1,64}`), names unique.",
        "Sanitise at registration. Staying <= 64 also fits OpenAI.",
        "observed, length contradicted",
        "tailcallhq/forgecode#892; public report (64)",
    ),
    Rule(
        "A29",
        (
            "`tool_use`, `thinking`, `redacted_thinking`, `server_tool_use` and server results only in assistant;"
            " `tool_result` only in user; `tool_result.tool_use_id` is required."
        ),
        "Split the message at the boundary.",
        "observed",
        "public report",
    ),
    Rule(
        "A30",
        "A history holding tool blocks needs a non-empty `tools` array (matters for tool-less compaction calls).",
        "Resend the session's tools, or flatten tool rounds to prose for the summariser.",
        "observed",
        "getsigit/sigit#81; decolua/9router#1170 (Bedrock)",
    ),
    Rule(
        "A31",
        "Blocks with user-only meaning do not appear in assistant turns: `container_upload`, `image`.",
        "Record, never replay.",
        "reported once",
        "public report; image: emulator public report",
    ),
    Rule(
        "A32",
        "If `is_error` is true, tool_result content is text only.",
        "Keep text in the result; put images after the results in the same user message, or drop the flag.",
        "observed",
        "public report (three reports)",
    ),
    Rule(
        "A33",
        "tool_result `content` may be absent, a string, or text/image/document/search_result/tool_reference blocks.",
        "Convert unknown block types to text.",
        "documented",
        'SDK `tool_result_block_param`; Doc "Handle tool calls" (empty result allowed)',
    ),
    Rule(
        "A35",
        (
            "A finished assistant turn holds each `server_tool_use` together with its `*_tool_result`, later in "
            "the same turn."
        ),
        (
            "If the turn was paused resend as is (A37); if lost, drop the orphan call and everything after it in "
            "that turn."
        ),
        "observed",
        "anthropics/anthropic-sdk-python#961",
    ),
    Rule(
        "A36",
        "A server result has its `server_tool_use` before it in the request.",
        "Drop the orphan result. Compaction/transcript splitting causes this often.",
        "observed",
        "anthropics/claude-code#65726, #64383, #84783, #95406",
    ),
    Rule(
        "A37",
        (
            "Mixed turn (client `tool_use` + unresolved `server_tool_use`): reply with only tool_result blocks, "
            "keep the server tool in `tools`; the server result opens the next response."
        ),
        "Put steering text into the following turn. Do not synthesise a server result.",
        "documented",
        'anthropics/anthropic-sdk-typescript#1090 (staff answer); Doc "Handle tool calls"',
    ),
    Rule(
        "A38",
        (
            "Server-result payloads (`encrypted_content`, `encrypted_index`, `encrypted_stdout`, MCP listings) go"
            " back verbatim."
        ),
        "Keep verbatim or drop call+result together.",
        "documented",
        "SDK web/advisor/mcp block types; strands-agents/harness-sdk#3568 quotes the docs",
    ),
)
