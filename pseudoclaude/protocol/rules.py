"""All rules by id, in the order of their ids.  Ids are stable: what providers reject changes, and then a rule gets a new text or retires."""

from __future__ import annotations

from collections.abc import Mapping

from pseudoclaude.protocol.rules_anthropic import ANTHROPIC
from pseudoclaude.protocol.rules_anthropic_signed import ANTHROPIC_SIGNED
from pseudoclaude.protocol.rules_openai import OPENAI
from pseudoclaude.protocol.rules_other import OTHER
from pseudoclaude.protocol.values import Rule

RULES: Mapping[str, Rule] = {rule.id: rule for rule in (*ANTHROPIC, *ANTHROPIC_SIGNED, *OPENAI, *OTHER)}
