"""How much a model reasons before it answers: what `model.reasoning` becomes in a request to each provider.

litellm translates `reasoning_effort` for Claude (a budget, or adaptive thinking), Gemini and Ollama. Providers that nca
calls directly get what their own API names; one that would refuse the argument does not get it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

AUTO, OFF = "auto", "off"
LEVELS = (AUTO, OFF, "low", "medium", "high")
LEAST_ANSWER_TOKENS = 8_192
"""Claude's thinking counts as output: at its high level litellm gives it 4,096 tokens, and an answer has to follow."""
_SWITCHED = {"deepseek": "thinking", "zai": "thinking", "moonshot": "thinking", "dashscope": "enable_thinking"}
"""The argument that turns reasoning on or off, by provider."""
_BY_MODEL = frozenset({"openai", "groq", "xai", "cerebras", "fireworks_ai", "together_ai"})
"""Providers with models that refuse the argument: the price map knows which."""
_NEVER = frozenset({"mistral", "embedded"})
_CLAUDE = "claude"
_THINKING = "thinking_blocks"
"""As nca.messages has it, which is too heavy to be imported before the first prompt."""


def split_level(name: str) -> tuple[str, str]:
    """A model's name and the level after it, as in `openai/gpt-5:high`; "" without one."""
    bare, colon, level = name.rpartition(":")
    return (bare, level) if colon and bare and level in LEVELS else (name, "")


def can_reason(provider: str, name: str, *, is_own_endpoint: bool = False) -> bool:
    """Whether a level changes anything with this model; True where nobody knows.

    An endpoint of one's own, and a provider with a switch, get the level in any case.
    """
    from nca.models import price_map

    if provider in _NEVER or is_own_endpoint or provider in _SWITCHED:
        return provider not in _NEVER
    if provider in _BY_MODEL:
        match = price_map.find(f"{provider}/{name.split('/', 1)[-1]}")
        return match is not None and match.entry.can_reason
    match = price_map.find(name)
    return match is None or not match.is_exact or match.entry.can_reason


def arguments(
    level: str, *, provider: str, name: str, is_own_endpoint: bool, max_output_tokens: int | None
) -> dict[str, Any]:
    """The request's arguments for a level; empty if the model is left to its default, or takes none."""
    if level == AUTO or not can_reason(provider, name, is_own_endpoint=is_own_endpoint):
        return {}
    effort = "none" if level == OFF else level
    if (key := _SWITCHED.get(provider)) is not None and not is_own_endpoint:
        is_on = level != OFF
        return {"extra_body": {key: is_on if key != "thinking" else {"type": "enabled" if is_on else "disabled"}}}
    is_small = max_output_tokens is not None and max_output_tokens < LEAST_ANSWER_TOKENS
    if _CLAUDE in name and (is_small or level == OFF):
        # Without the argument Claude does not think.
        return {}
    return {"reasoning_effort": effort}


def is_thinking(found: Mapping[str, Any], name: str) -> bool:
    """Whether these arguments make Claude think: then it takes no temperature, and wants its blocks back."""
    return _CLAUDE in name and "reasoning_effort" in found


def has_all_blocks(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each call of the turn in progress has its signed thinking, without which Claude refuses to think."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.get("role") == "assistant":
            if not message.get("tool_calls"):
                return True
            if not message.get(_THINKING):
                return False
        elif message.get("role") == "user" and (place == 0 or messages[place - 1].get("role") != "tool"):
            # Text that is typed after results belongs to their turn.
            return True
    return True
