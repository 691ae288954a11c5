"""What is known of a model before it is asked: window, output cap, prices, abilities."""

from __future__ import annotations

from dataclasses import dataclass

from nca.models import price_map
from nca.models.context_windows import DEFAULT_WINDOW_TOKENS, MODEL_WINDOWS, PROVIDER_WINDOWS

_LOCAL = frozenset({"ollama", "ollama_chat", "lm_studio", "llamafile", "embedded", "hosted_vllm"})
"""Providers that run on a person's own machine and cost nothing."""

_RESELLERS = frozenset({"openrouter", "litellm_proxy", "vercel_ai_gateway"})
"""Providers that pass a model on at its maker's price."""

_USUAL = "the default for "
_ASSUMED_CONTEXT = "assumed: nothing is known of this model"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model.

    name                 as the person names it (openai/gpt-4.1)
    provider             the first part of the name, or what the price map says, or ""
    window_is_assumed    nothing is known: 128,000 tokens are assumed, and that is to be said once
    window_source        where the window comes from, for a person
    max_output_tokens    the provider's cap on an answer, None where unknown
    …_cost               US dollars for one token, None where unknown (never 0 for unknown)
    tiers                dearer prices of long requests, lowest bound first
    can_compact          the provider compacts a conversation by itself where asked to, and litellm passes that on
    can_see              takes images; False where that is not known, as a refused image ends a turn
    can_summarize        too small a model is not asked to
    reuses_prefix        a summary should be asked behind the unchanged turns, whose evaluation is kept
    note                 a line for the banner, "" where there is nothing to say
    """

    name: str
    provider: str = ""
    window_tokens: int = DEFAULT_WINDOW_TOKENS
    window_is_assumed: bool = False
    window_source: str = ""
    max_output_tokens: int | None = None
    input_cost: float | None = None
    output_cost: float | None = None
    cache_read_cost: float | None = None
    cache_write_cost: float | None = None
    tiers: tuple[price_map.PriceTier, ...] = ()
    can_compact: bool = False
    can_use_tools: bool = True
    can_see: bool = False
    can_summarize: bool = True
    reuses_prefix: bool = False
    note: str = ""

    @property
    def is_window_usual(self) -> bool:
        """The window is what its provider's models usually have, which says little of a model at one's own endpoint."""
        return self.window_source.startswith(_USUAL)


def describe(name: str, *, context_window: int = 0, images: str = "auto") -> ModelFacts:
    """What is known of a model. `context_window` (tokens; 0: not set) and `images` (yes, no; auto: what is known) are
    the person's word and win."""
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
        input_cost=entry.input_cost if entry and is_priced else free,
        output_cost=entry.output_cost if entry and is_priced else free,
        cache_read_cost=entry.cache_read_cost if entry and is_priced else free,
        cache_write_cost=entry.cache_write_cost if entry and is_priced else free,
        tiers=entry.tiers if entry and is_priced else (),
        can_compact=provider == "anthropic" and match is not None and match.is_exact and match.entry.can_compact,
        can_use_tools=entry is None or entry.can_use_tools is not False,
        can_see=images == "yes" or (images == "auto" and entry is not None and entry.can_see),
    )


def _window(name: str, provider: str, match: price_map.Match | None) -> tuple[int, str]:
    """Window and its source: the longer match of price map and table (a tie is the map's), then defaults."""
    listed = _listed(name)
    mapped = match.length if match and match.entry.window_tokens else 0
    if match and match.entry.window_tokens and (match.is_exact or mapped >= len(listed)):
        return match.entry.window_tokens, f"litellm's entry for {match.entry.name}"
    if listed:
        return MODEL_WINDOWS[listed], f"the table's entry for {listed}"
    if provider in PROVIDER_WINDOWS:
        return PROVIDER_WINDOWS[provider], f"{_USUAL}{provider}"
    return DEFAULT_WINDOW_TOKENS, _ASSUMED_CONTEXT


def _listed(name: str) -> str:
    """The longest name of the table that explains this one, "" where none does."""
    lowered = name.strip().lower()
    exact = [spelling for spelling in price_map.shorten(lowered) if spelling in MODEL_WINDOWS]
    starts = [start for start in price_map.prefixes(lowered) if start in MODEL_WINDOWS]
    return max(exact or starts, key=len, default="")


def _first_party(entry: price_map.PriceEntry | None) -> str:
    """The provider of a model that the map lists without a prefix; another's listing does not say who is meant."""
    return entry.provider if entry and "/" not in entry.name else ""


def _same_seller(provider: str, entry: price_map.PriceEntry) -> bool:
    """Whether the entry's price is what this provider takes (litellm has several names for one seller: bedrock…)."""
    return bool(provider) and (entry.provider.startswith(provider) or provider in _RESELLERS)
