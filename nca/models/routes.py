"""Route a model's name to litellm: its name there, the endpoint, the key, and who reads the stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nca.models.lookup import without_provider
from nca.models.providers import PROVIDERS, SPEAKS_OPENAI, key_of, provider_of


@dataclass(frozen=True, slots=True)
class Route:
    """How to call litellm. `is_direct`: nca owns the connection and reads the stream as the provider sends it.

    litellm's translation loses errors, finish reasons and tool calls, so every provider with OpenAI's protocol is
    called as openai/NAME at its endpoint. api_base and api_key are "" if litellm knows them.
    """

    model: str
    provider: str
    api_base: str = ""
    api_key: str = field(default="", repr=False)
    is_direct: bool = False
    asks_for_usage: bool = True
    keeps_thoughts: bool = False


def route(name: str, *, api_base: str, api_key: str, env: Mapping[str, str], litellm: Any) -> Route:
    """The route for a model. litellm decides whose model a name without a provider is (gpt-4.1 is OpenAI's).

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
    facts = PROVIDERS.get(provider)
    if provider == "ollama":
        # litellm's "ollama" writes prompts itself; "ollama_chat" leaves templates and tools to the server.
        return Route(f"ollama_chat/{bare}", provider, api_base, api_key)
    base = api_base or (facts.openai_base if facts else "")
    is_response_model = litellm.model_cost.get(bare, {}).get("mode") == "responses" and not api_base
    if provider not in SPEAKS_OPENAI or (provider != "openai" and not base) or is_response_model:
        return Route(name, provider, api_base, api_key)
    return Route(
        model=f"openai/{bare}",
        provider=provider,
        api_base=base,
        api_key=api_key or key_of(provider, env)[1],
        is_direct=True,
        asks_for_usage=not (facts and facts.reports_usage and not api_base),
        keeps_thoughts=bool(facts and facts.keeps_thoughts),
    )
