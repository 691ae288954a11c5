"""What a call cost, from the prices that are known."""

from __future__ import annotations

from nca.messages import Usage
from nca.models.catalog import ModelFacts


def cost_of(facts: ModelFacts, usage: Usage) -> float | None:
    """US dollars for one call; None where the model's prices are unknown.

    Cache reads and writes are part of `prompt_tokens`; where they have no price of their own they cost as input.
    """
    if facts.input_cost is None or facts.output_cost is None:
        return None
    read_cost = facts.input_cost if facts.cache_read_cost is None else facts.cache_read_cost
    write_cost = facts.input_cost if facts.cache_write_cost is None else facts.cache_write_cost
    fresh = max(0, usage.prompt_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
    return (
        fresh * facts.input_cost
        + usage.cache_read_tokens * read_cost
        + usage.cache_write_tokens * write_cost
        + usage.completion_tokens * facts.output_cost
    )
