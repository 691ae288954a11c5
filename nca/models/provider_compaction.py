"""Compaction on the provider's side (`context.provider_side`): what is asked of it, and where it cannot be.

Anthropic compacts a conversation by itself once its input has so many tokens (`compact_20260112`, beta). nca asks it
to stop there: the answer is then only a block with the summary, the log here decides what that stands for, and the
turn goes on with the block and what it does not cover. litellm 1.105 passes all of that through its chat call.

OpenAI has the like in its Responses API only (`context_management` with `compact_threshold`); litellm's chat call
drops both the wish and the encrypted items that come back, so for OpenAI the setting is refused.
"""

from __future__ import annotations

from typing import Any

from nca.models.catalog import ModelFacts

LEAST_TRIGGER_TOKENS = 50_000
"""Anthropic refuses a lower one."""
_EDIT = "compact_20260112"


def context_management(trigger_tokens: int) -> dict[str, Any]:
    """The request's wish to compact from so many input tokens on, and to stop behind the summary."""
    trigger = {"type": "input_tokens", "value": max(LEAST_TRIGGER_TOKENS, trigger_tokens)}
    return {"edits": [{"type": _EDIT, "trigger": trigger, "pause_after_compaction": True}]}


def refusal(facts: ModelFacts, trigger_tokens: int) -> str:
    """Why this model's provider is not asked to compact from so many tokens on; "" where it can be."""
    if not facts.can_compact:
        return f"{facts.name} cannot be asked to compact by itself; through litellm that is possible for Claude only"
    if trigger_tokens < LEAST_TRIGGER_TOKENS:
        least = f"{LEAST_TRIGGER_TOKENS:,}"
        return f"{facts.name} compacts from {least} tokens on, and here it is due at {trigger_tokens:,}"
    return ""
