"""Look up a model's context window, output limit, prices and abilities; the cost of requests in US dollars."""

from __future__ import annotations

import math

from msgspec.structs import replace

from nca.messages import Usage
from nca.models import price_map
from nca.models.fetched_prices import KINDS
from nca.models.price_map import Prices
from nca.models.reasoning import can_reason

DEFAULT_WINDOW_TOKENS = 128_000
"""Assumed for an unknown model; the user is told."""

# Source: NeuroLink's context window registry (`MODEL_CONTEXT_WINDOWS`). The price map is asked first, so models that it
# has are not repeated here. Windows that others know are rows of newer_models.json.
MODEL_WINDOWS: dict[str, int] = {
    "gemini-2.0-flash": 1_048_576,
    "gemini-1.5-pro": 2_097_152,
    "gemini-1.5-flash": 1_048_576,
}

PROVIDER_WINDOWS: dict[str, int] = {
    **dict.fromkeys(("gemini", "google-ai", "vertex", "vertex_ai"), 1_048_576),
    **dict.fromkeys(("anthropic", "bedrock"), 200_000),
    **dict.fromkeys(("openai", "azure", "mistral", "ollama", "litellm", "sagemaker"), 128_000),
    "huggingface": 32_000,
}
"""Under NeuroLink's provider names and litellm's."""

_LOCAL = frozenset({"ollama", "ollama_chat", "lm_studio", "llamafile", "embedded", "hosted_vllm"})
"""Providers that run on the user's machine, free of charge."""

_RESELLERS = frozenset({"openrouter", "litellm_proxy", "vercel_ai_gateway"})
"""Providers that resell models at the original price."""

_USUAL = "the default for "
FROM_ERROR = "from the provider's error"
FROM_LIST = "from the endpoint's list"
"""Sources of a window that is known of this endpoint: an error named it, or the list of models."""
_ASSUMED_CONTEXT = "assumed: nothing is known of this model"


class ModelFacts(Prices, frozen=True):
    """One model.

    name                 as the user names it (openai/gpt-4.1)
    provider             the first part of the name, or from the price map; "" if unknown
    window_is_assumed    the model and its provider are unknown: 128,000 tokens are assumed
    window_source        where the window comes from, for display
    max_output_tokens    the provider's limit for an answer; None if unknown
    tiers                higher prices of long requests, lowest bound first
    can_compact          the provider can compact a conversation, and litellm supports that
    can_see              accepts images, unless model.images says it; False if unknown: a refused image ends the turn
    can_reason           whether model.reasoning changes anything (`nca.models.reasoning.can_reason`)
    can_summarize        large enough to write summaries
    is_small             gets short instructions, and few tools in their simplest form
    reuses_prefix        keeps the evaluated prompt, so a summary should be requested after the unchanged turns
    note                 a line for the banner, or ""
    server               host and port of the endpoint, as far as known: a window is learned for each
    """

    name: str
    provider: str = ""
    window_tokens: int = DEFAULT_WINDOW_TOKENS
    window_is_assumed: bool = False
    window_source: str = ""
    max_output_tokens: int | None = None
    tiers: tuple[price_map.PriceTier, ...] = ()
    can_compact: bool = False
    can_use_tools: bool = True
    can_see: bool = False
    can_reason: bool = True
    can_summarize: bool = True
    is_small: bool = False
    reuses_prefix: bool = False
    note: str = ""
    server: str = ""

    @property
    def is_window_guess(self) -> bool:
        """Nothing is known of this model's window: it is the provider's default, or nca's."""
        return self.window_is_assumed or self.window_source.startswith(_USUAL)

    @property
    def window_origin(self) -> str:
        """Where the window comes from, in words; "" if it is known by the model's name, or set."""
        is_endpoints = self.window_source in (FROM_ERROR, FROM_LIST)
        return self.window_source if is_endpoints else "assumed" if self.is_window_guess else ""

    @property
    def window_in_words(self) -> str:
        """`4,096 tokens (from the endpoint's list)`."""
        return f"{self.window_tokens:,} tokens" + (f" ({self.window_origin})" if self.window_origin else "")

    def with_window(self, tokens: int, source: str = "") -> ModelFacts:
        """The same with the window in force: a provider or a person may have told another one than what is known."""
        if tokens == self.window_tokens and not (source and self.is_window_guess):
            return self
        return replace(self, window_tokens=tokens, window_is_assumed=False, window_source=source)


def describe(name: str, *, context_window: int = 0, is_own_endpoint: bool = False) -> ModelFacts:
    """Look up a model. The setting `context_window` (tokens; 0: look it up) wins."""
    match = price_map.find(name)
    entry = match.entry if match else None
    provider = name.split("/", 1)[0].lower() if "/" in name else _first_party(entry)
    window, source = (context_window, "model.context_window") if context_window > 0 else _window(name, provider, match)
    is_priced = entry is not None and _same_seller(provider, entry)
    free = 0.0 if provider in _LOCAL else None
    return ModelFacts(
        name=name,
        provider=provider,
        window_tokens=window,
        window_is_assumed=source == _ASSUMED_CONTEXT,
        window_source=source,
        max_output_tokens=entry.max_output_tokens if entry else None,
        **(entry.prices() if entry and is_priced else dict.fromkeys(KINDS.values(), free)),
        tiers=entry.tiers if entry and is_priced else (),
        can_compact=provider == "anthropic" and match is not None and match.is_exact and match.entry.can_compact,
        can_use_tools=entry is None or entry.can_use_tools is not False,
        can_reason=can_reason(provider, name, is_own_endpoint=is_own_endpoint),
        can_see=entry is not None and entry.can_see,
    )


def _window(name: str, provider: str, match: price_map.Match | None) -> tuple[int, str]:
    """Window and its source: the name in the price map or the table, the map's nearest name, then the defaults."""
    mapped = match if match and match.entry.window_tokens else None
    if mapped is None or not mapped.is_exact:
        for spelling in price_map.shorten(name.strip().lower()):
            if spelling in MODEL_WINDOWS:
                return MODEL_WINDOWS[spelling], f"the table's entry for {spelling}"
    if mapped and mapped.entry.window_tokens:
        return mapped.entry.window_tokens, f"litellm's entry for {mapped.entry.name}"
    if provider in PROVIDER_WINDOWS:
        return PROVIDER_WINDOWS[provider], f"{_USUAL}{provider}"
    return DEFAULT_WINDOW_TOKENS, _ASSUMED_CONTEXT


def _first_party(entry: price_map.PriceEntry | None) -> str:
    """The provider of an entry without a prefix; with one, the provider may be a reseller."""
    return entry.provider if entry and "/" not in entry.name else ""


def _same_seller(provider: str, entry: price_map.PriceEntry) -> bool:
    """Whether the entry has this provider's price. litellm has several names for some providers, such as bedrock."""
    return bool(provider) and (entry.provider.startswith(provider) or provider in _RESELLERS)


def cost_of(facts: ModelFacts, usage: Usage) -> float | None:
    """The cost of one request; None if the model's prices are unknown.

    Cache reads and writes without a price of their own cost as much as input. The length of the prompt selects the
    price tier of the whole request, as providers charge it.
    """
    prices = _prices(facts, usage.prompt_tokens)
    if prices.input_cost is None or prices.output_cost is None:
        return None
    read_cost = prices.input_cost if prices.cache_read_cost is None else prices.cache_read_cost
    write_cost = prices.input_cost if prices.cache_write_cost is None else prices.cache_write_cost
    fresh = max(0, usage.prompt_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
    return (
        fresh * prices.input_cost
        + usage.cache_read_tokens * read_cost
        + usage.cache_write_tokens * write_cost
        + usage.completion_tokens * prices.output_cost
    )


def request_cost(facts: ModelFacts, tokens: int, *, is_cached: bool = False) -> float | None:
    """The cost of a prompt of this many tokens, without the answer; None if the price is unknown.

    is_cached: all of it is read from the prompt cache.
    """
    prices = _prices(facts, tokens)
    price = prices.cache_read_cost if is_cached else prices.input_cost
    return None if price is None else tokens * price


def saved_cost(facts: ModelFacts, before: int, after: int, *, is_cached: bool = False) -> float | None:
    """How much less a prompt of `after` tokens costs than one of `before`; None if the price is unknown."""
    costs = [request_cost(facts, tokens, is_cached=is_cached) for tokens in (before, after)]
    return None if costs[0] is None or costs[1] is None else costs[0] - costs[1]


def money(dollars: float) -> str:
    """Format an amount: $0.12, $0.0012 for small ones, and never zero for one that is not."""
    if dollars >= 0.1 or dollars == 0:
        return f"${dollars:.2f}"
    places = max(4, -math.floor(math.log10(abs(dollars))))
    return f"${dollars:.{places}f}"


def _prices(facts: ModelFacts, prompt_tokens: int) -> Prices:
    """The prices of a request with a prompt of this length."""
    tier = next((tier for tier in reversed(facts.tiers) if prompt_tokens > tier.above_tokens), Prices())
    higher = {kind: price for kind, price in tier.prices().items() if price is not None}
    return Prices(**facts.prices() | higher)
