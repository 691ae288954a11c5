"""What a call cost, and what a request would, from the prices that are known."""

from __future__ import annotations

from nca.messages import Usage
from nca.models.catalog import ModelFacts
from nca.models.price_map import PriceTier


def cost_of(facts: ModelFacts, usage: Usage) -> float | None:
    """US dollars for one call; None where the model's prices are unknown.

    Cache reads and writes are part of `prompt_tokens`; where they have no price of their own they cost as input.
    A long request costs in whole what the tier of its prompt says, as providers charge it.
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
    """US dollars for reading one request of so many tokens, without its answer; None where no price is known.

    is_cached: all of it is in the provider's cache, the least that it can cost.
    """
    prices = _prices(facts, tokens)
    price = prices.cache_read_cost if is_cached else prices.input_cost
    return None if price is None else tokens * price


def saved_cost(facts: ModelFacts, before: int, after: int, *, is_cached: bool = False) -> float | None:
    """US dollars that reading a request of `after` tokens costs less than one of `before`; None: no price is known."""
    costs = [request_cost(facts, tokens, is_cached=is_cached) for tokens in (before, after)]
    return None if costs[0] is None or costs[1] is None else costs[0] - costs[1]


def money(dollars: float) -> str:
    """An amount as a person reads it: cents, and smaller ones with what they have."""
    return f"${dollars:.2f}" if dollars >= 0.1 or dollars == 0 else f"${dollars:.4f}"


def _prices(facts: ModelFacts, prompt_tokens: int) -> PriceTier:
    """The prices of a request with so long a prompt."""
    tier = next((tier for tier in reversed(facts.tiers) if prompt_tokens > tier.above_tokens), PriceTier(0))

    def price(of_tier: float | None, usual: float | None) -> float | None:
        return usual if of_tier is None else of_tier

    return PriceTier(
        tier.above_tokens,
        price(tier.input_cost, facts.input_cost),
        price(tier.output_cost, facts.output_cost),
        price(tier.cache_read_cost, facts.cache_read_cost),
        price(tier.cache_write_cost, facts.cache_write_cost),
    )
