"""Compaction by the provider (`context.provider_side`): the request for it, and when it is not possible.

Anthropic compacts a conversation when its input reaches a number of tokens (`compact_20260112`, beta). nca asks it to
pause then: the answer is only a block with the summary, nca records which messages it replaces, and the turn continues
with the block and the other messages. litellm 1.105 supports this in its chat call.

OpenAI offers compaction only in its Responses API (`context_management` with `compact_threshold`). litellm's chat call
drops the request for it and the encrypted items in the answer, so the setting is refused for OpenAI.
"""

from __future__ import annotations

from typing import Any

from nca.models.catalog import ModelFacts

LEAST_TRIGGER_TOKENS = 50_000
"""Anthropic refuses a lower trigger."""
_EDIT = "compact_20260112"


def context_management(trigger_tokens: int) -> dict[str, Any]:
    """The request's parameter to compact from this many input tokens on, and to pause after the summary."""
    trigger = {"type": "input_tokens", "value": max(LEAST_TRIGGER_TOKENS, trigger_tokens)}
    return {"edits": [{"type": _EDIT, "trigger": trigger, "pause_after_compaction": True}]}


def refusal(facts: ModelFacts, trigger_tokens: int) -> str:
    """Why this model's provider cannot compact at this number of tokens; "" if it can."""
    if not facts.can_compact:
        return f"the provider of {facts.name} cannot compact; through litellm only Claude at Anthropic can"
    if trigger_tokens < LEAST_TRIGGER_TOKENS:
        least = f"{LEAST_TRIGGER_TOKENS:,}"
        return f"{facts.name} compacts from {least} tokens on, but compaction is due at {trigger_tokens:,}"
    return ""
