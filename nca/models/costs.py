"""The cost of requests in US dollars, from the price map."""

from __future__ import annotations

from nca.messages import Usage
from nca.models.catalog import ModelFacts
from nca.models.price_map import PriceTier


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
    """Format an amount: $0.12, and $0.0012 for small ones."""
    return f"${dollars:.2f}" if dollars >= 0.1 or dollars == 0 else f"${dollars:.4f}"


def _prices(facts: ModelFacts, prompt_tokens: int) -> PriceTier:
    """The prices of a request with a prompt of this length."""
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
