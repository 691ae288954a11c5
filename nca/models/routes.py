"""Route a model's name: to the endpoint itself where it speaks OpenAI's protocol, else to litellm."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nca.models.lookup import without_provider
from nca.models.providers import PROVIDERS, SPEAKS_OPENAI, key_of, provider_of

_REASONS_AT_OPENAI = re.compile(r"(?:^|/)(?:gpt-[5-9]|o\d)")
"""OpenAI's models with arguments of their own (max_completion_tokens, no temperature), which litellm knows."""


@dataclass(frozen=True, slots=True)
class Route:
    """How to call a model. `is_direct`: nca calls the endpoint itself; else litellm does, with `model` as the name.

    litellm's translation loses errors, finish reasons and tool calls, and its import takes seconds. So nca calls every
    endpoint with OpenAI's protocol itself, but OpenAI's own: there litellm chooses between two APIs, and knows what
    each model refuses. api_base and api_key are "" if litellm knows them.
    """

    model: str
    provider: str
    api_base: str = ""
    api_key: str = field(default="", repr=False)
    is_direct: bool = False
    asks_for_usage: bool = True
    keeps_thoughts: bool = False


def direct_route(name: str, *, api_base: str, api_key: str, env: Mapping[str, str]) -> Route | None:
    """The route of a model that nca calls itself; None if litellm is needed."""
    provider = provider_of(name)
    facts = PROVIDERS.get(provider)
    base = api_base or (facts.openai_base if facts else "")
    bare = name.split("/", 1)[-1]
    if provider not in SPEAKS_OPENAI or not base or (provider == "openai" and _REASONS_AT_OPENAI.search(bare)):
        return None
    return Route(
        model=bare,
        provider=provider,
        api_base=base,
        api_key=api_key or key_of(provider, env)[1],
        is_direct=True,
        asks_for_usage=not (facts and facts.reports_usage and not api_base),
        keeps_thoughts=bool(facts and facts.keeps_thoughts),
    )


def litellm_route(name: str, *, api_base: str, api_key: str, env: Mapping[str, str], litellm: Any) -> Route:
    """The route of any other model. litellm decides whose a name without a provider is (gpt-4.1 is OpenAI's).

    Raises ModelNotFound for a provider that litellm does not know, where there is no endpoint.
    """
    provider = provider_of(name)
    bare = name.split("/", 1)[1] if provider else name
    if not provider:
        try:
            bare, provider, _, _ = litellm.get_llm_provider(model=name, api_base=api_base or None)
        except litellm.BadRequestError:
            # An unknown name at the user's own endpoint, which is taken to be OpenAI-compatible.
            if not api_base:
                raise without_provider(name, (one.value for one in litellm.provider_list)) from None
            provider = "openai"
        if found := direct_route(f"{provider}/{bare}", api_base=api_base, api_key=api_key, env=env):
            return found
    if provider == "ollama":
        # litellm's "ollama" writes prompts itself; "ollama_chat" leaves templates and tools to the server.
        return Route(f"ollama_chat/{bare}", provider, api_base, api_key)
    if provider == "openai":
        return Route(f"openai/{bare}", provider, api_base, api_key or key_of(provider, env)[1])
    return Route(name, provider, api_base, api_key)
