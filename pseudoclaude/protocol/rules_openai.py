"""The rules as data: OpenAI Chat Completions and Responses."""

from __future__ import annotations

from pseudoclaude.protocol.values import Rule

OPENAI = (
    Rule(
        "C01",
        "`messages` non-empty.",
        "As A01.",
        "observed",
        "CopilotKit/CopilotKit#529",
    ),
    Rule(
        "C02",
        (
            "Role set: developer, system, user, assistant, tool, function. `system` refused by some o-series "
            "models, `developer` by others and by many compatible servers."
        ),
        'Map at serialisation from a capability table; store one neutral "instruction" role.',
        "observed, model-gated",
        "openai/openai-python#2047; lobehub/lobehub#5704",
    ),
    Rule(
        "C03",
        "An assistant message with `tool_calls` is followed by tool messages for every id before any other role.",
        "Synthesise the missing tool messages directly after the call.",
        "observed; two sources deny it",
        "RamiAwar/dataline#172; tidyverse/ellmer#459 (interrupt)",
    ),
    Rule(
        "C04",
        "A tool message belongs to a preceding assistant `tool_calls` (only tool messages in between).",
        "Drop, re-home, or turn into user text.",
        "observed",
        "microsoft/autogen#3178; microsoft/semantic-kernel#12708",
    ),
    Rule(
        "C05",
        "One tool message per `tool_call_id`.",
        "Keep the real result; drop the synthetic.",
        "observed",
        "agno-agi/agno#5116; anomalyco/opencode#1211",
    ),
    Rule(
        "C06",
        "`tool_call_id` present and a string on every tool message.",
        "As C04.",
        "documented",
        "SDK types; decolua/9router#4091 (strict upstreams)",
    ),
    Rule(
        "C07",
        "`tool_calls`, if present, has >= 1 entry.",
        "Omit the key.",
        "observed",
        "openai/openai-node#1341; openai/openai-python#2061",
    ),
    Rule(
        "C08",
        "Assistant `content` may be null/absent only with `tool_calls` (or legacy function_call).",
        'Drop the empty turn (cancelled reply); with tool_calls `""` is the portable form (X10).',
        "observed",
        "run-llama/llama_index#17921; vercel/ai#13744",
    ),
    Rule(
        "C09",
        "system/developer/user/tool content is string or part list, never null.",
        'Drop or `""`.',
        "observed",
        "langchain-ai/langchainjs#4153; SDK types",
    ),
    Rule(
        "C10",
        "`tool_calls[].id` <= 40 characters.",
        "Hash-shorten both sides (S02); target <= 40.",
        "contradicted",
        "agno-agi/agno#5382; microsoft/autogen#6377",
    ),
    Rule(
        "C11",
        "`function.name` in history: `^[a-zA-Z0-9_-]+$`, 1-64 chars.",
        "Rename to a safe alias in call and definition.",
        "observed",
        "mcp-use/mcp-use#94; continuedev/continue#11645",
    ),
    Rule(
        "C12",
        "`function.arguments` is a string, not an object.",
        "JSON-encode.",
        "documented",
        "SDK types; bytedance/deer-flow#4445",
    ),
    Rule(
        "C13",
        "`arguments` parses as a JSON object. OpenAI's docs warn it may not; compatible servers reject it on replay.",
        'Repair to `{}`/`{"_raw":...}` + error result. Treat as invalid everywhere.',
        "observed on compatible servers",
        "SDK docstring; vllm-project/vllm#48922",
    ),
    Rule(
        "C14",
        (
            "Call ids unique over the whole history. OpenAI itself only shown for results (C05); reuse across "
            "rounds breaks adapters and other servers."
        ),
        "Rename later ones pairwise.",
        "observed on compatible servers",
        "can1357/oh-my-pi#2055; open-webui/open-webui#28570",
    ),
    Rule(
        "C15",
        "One string <= 10,485,760 characters (1,048,576 before ~2025).",
        "Truncate tool output.",
        "observed",
        "Shopify/roast#52; gptscript-ai/clio#41 (old)",
    ),
    Rule(
        "C16",
        "Prompt fits the window.",
        "Compact.",
        "observed",
        "chathub-dev/chathub#126; webtimemachine/wtm2#579",
        unchecked="counting tokens is Compact's part",
    ),
    Rule(
        "C17",
        "Images only in user messages.",
        "Text in the tool message, image in a user message after the whole tool run.",
        "observed",
        "OpenHands/OpenHands#7700; openai/openai-node#1030",
    ),
    Rule(
        "C18",
        "Part types: user text/image_url/input_audio/file; assistant text/refusal; system, developer, tool text.",
        "Convert to text.",
        "documented",
        "SDK param types",
    ),
    Rule(
        "C19",
        (
            "Tool-call discriminator: `type:function` has `function{name,arguments}`; `type:custom` has "
            "`custom{name,input}`."
        ),
        "Fill `type`.",
        "documented",
        "SDK types",
    ),
    Rule(
        "C20",
        "`name` on a message matches `^[a-zA-Z0-9_-]+$`; mixing names and tool calls has caused 500s.",
        "Omit.",
        "observed",
        "jekalmin/extended_openai_conversation#251; microsoft/autogen#3437",
    ),
    Rule(
        "C21",
        "Ending on an assistant message is accepted by OpenAI (not by Mistral X05 or Claude behind a gateway A12).",
        "Append user turn when the target is unknown.",
        "not verified",
        "no report of a rejection found; Mistral: BerriAI/litellm#4931",
        unchecked="nothing is rejected: ending on an assistant message is accepted",
    ),
    Rule(
        "R01",
        (
            "Every `function_call` (also custom/computer/shell/apply_patch/client tool_search) has its output "
            "item with the same `call_id` in the input or in the state named by "
            "previous_response_id/conversation."
        ),
        'Insert `function_call_output{output:"aborted; outcome unknown"}` right after the call group.',
        "observed; one source denies it",
        "openai/codex#394; synthetic-lab/octofriend#233 (crash+resume)",
    ),
    Rule(
        "R02",
        (
            "Every output with a `call_id` has its call. Exception: stateful continuation, where the call is on "
            "the server."
        ),
        "Drop, or rewrite as user text; do not drop in stateful mode.",
        "observed",
        "continuedev/continue#10092; agno-agi/agno#9376",
    ),
    Rule(
        "R03",
        "Newer OpenAI accepts a named output without call_id; strict upstreams do not.",
        "Rewrite as user text for any non-OpenAI target.",
        "observed",
        "openai/codex#42088; SDK 3.57 (call_id optional)",
    ),
    Rule(
        "R04",
        "Output type matches call type (function with function, custom with custom ...).",
        "Store the call kind.",
        "documented",
        "openai/openai-agents-python#3707; SDK `response_steer_required_input`",
    ),
    Rule(
        "R05",
        (
            "A `reasoning` item is followed at once by an item of the same response (message or tool call). Not "
            "by user, not by an empty assistant message, not by end of input."
        ),
        "Drop the dangling reasoning item.",
        "observed",
        "openai/openai-node#1567, #1791; openai/openai-openapi#536",
    ),
    Rule(
        "R06",
        "An item that was produced after reasoning and is sent with its server id needs that reasoning item before it.",
        "Send both, or send the item without `id` (stateless).",
        "contradicted",
        "openai/openai-dotnet#1050; 0xPlaygrounds/rig#751",
    ),
    Rule(
        "R07",
        (
            "With `store:false` (or unknown to the server) ids/`item_reference` do not resolve. Reasoning "
            "survives only through `encrypted_content`."
        ),
        "Strip ids; drop bare reasoning and item_reference; keep encrypted ones.",
        "observed",
        "vercel/ai#7543; langchain-ai/langchain#38372",
    ),
    Rule(
        "R08",
        "`previous_response_id` must exist and be stored; exclusive with `conversation`.",
        "Replay the full history without it.",
        "observed",
        "smg-project/smg#916; SDK docstring",
        unchecked="only the server knows which responses exist",
    ),
    Rule(
        "R09",
        "Item ids unique in the request.",
        "Drop the copy.",
        "observed",
        "vercel/ai#13307",
    ),
    Rule(
        "R10",
        "If sent, `id` has the type's prefix (`msg`,`rs`,`fc`,...), charset `[A-Za-z0-9_-]`, <= 64 chars, not empty.",
        "Omit the id.",
        "observed",
        "openai/codex#33176; Wei-Shaw/sub2api#3981",
    ),
    Rule(
        "R11",
        "`call_id` <= 64 chars (and not empty, assumed). The API has returned longer ones than it accepts.",
        "Hash-shorten both items (S02), not plain truncation.",
        "observed",
        "orchidfiles/ungate#26; NousResearch/hermes-agent#73538",
    ),
    Rule(
        "R12",
        "`reasoning` has `summary` (may be []).",
        "Add `[]`.",
        "documented",
        "newo-ether/Agora#141; SDK (Required)",
    ),
    Rule(
        "R13",
        "On OpenAI `reasoning.content` is empty/absent.",
        "Remove for OpenAI; X11 endpoints want it.",
        "observed",
        "musistudio/claude-code-router#1783; querymt/querymt#976",
    ),
    Rule(
        "R14",
        "Output-only fields may be refused on input (`status` on reasoning, SDK `parsed` extras).",
        "Allow-list fields per item type.",
        "contradicted",
        "BerriAI/litellm#13420; earendil-works/pi#8208 vs SDK 3.57 types list `status`",
    ),
    Rule(
        "R15",
        "`encrypted_content` unmodified and from the same account/organisation/deployment.",
        "Drop the reasoning (and R05 partner ids) / replace a compaction item by a text summary; retry once.",
        "observed",
        "openai/codex#17541; lidge-jun/opencodex#2269",
    ),
    Rule(
        "R16",
        "Assistant content parts are `output_text`/`refusal`; user/system/developer parts are `input_*`.",
        "Retype parts.",
        "observed",
        "jeremychone/rust-genai#119; jamesrochabrun/SwiftOpenAI#136",
    ),
    Rule(
        "R17",
        "No `tool` role; tool results are items.",
        "Convert.",
        "documented",
        "SDK types",
    ),
    Rule(
        "R18",
        "`arguments` and custom `input` are strings; `output` is string or input_text/image/file list.",
        "Encode.",
        "documented",
        "SDK types",
    ),
    Rule(
        "R19",
        "String <= 10,485,760 chars.",
        "Truncate.",
        "observed",
        "VectorlyApp/bluebox#31",
    ),
    Rule(
        "R20",
        "Fits the window unless `truncation:auto`.",
        "Compact. Auto-truncation drops items from the start.",
        "documented",
        "SDK `truncation` docstring; public report",
        unchecked="counting tokens is Compact's part",
    ),
    Rule(
        "R21",
        "`compaction` items keep `encrypted_content`; `compaction_trigger` is the last item.",
        "Drop the trigger; replace foreign compaction by text.",
        "documented",
        "SDK 3.57 docstrings; miuuyy/codex-chatgpt-web#249",
    ),
    Rule(
        "R22",
        "`program.fingerprint`, MCP approval pairs, message `phase` are round-tripped.",
        "Keep verbatim.",
        "documented",
        "SDK 3.57 docstrings",
    ),
    Rule(
        "R23",
        "Keep the response's item order, reasoning first and adjacent to its item; outputs after the call group.",
        "Never re-sort a response.",
        "reported once",
        "continuedev/continue#11994; leookun/cursor-byok#307",
    ),
)
