"""Costs of calls and requests, compared with litellm's own calculator on the same map."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nca.messages import Usage
from nca.models.catalog import ModelFacts, cost_of, describe, money, request_cost, saved_cost
from nca.models.litellm_import import warm
from nca.models.price_map import PriceTier

TIERED = ModelFacts(
    "m",
    input_cost=1.0,
    output_cost=4.0,
    cache_read_cost=0.1,
    tiers=(
        PriceTier(100, input_cost=2.0, output_cost=6.0, cache_read_cost=0.2),
        PriceTier(500, input_cost=3.0),
    ),
)


@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro", "openai/gpt-5.4"])
@pytest.mark.parametrize("prompt", [1_000, 200_000, 200_001, 272_001, 500_000])
async def test_a_call_costs_what_litellm_says(name: str, prompt: int) -> None:
    litellm = await warm()
    written = prompt // 10 if "claude" in name else 0
    used = Usage(prompt, 700, cache_read_tokens=prompt // 3, cache_write_tokens=written)
    theirs = litellm.cost_per_token(
        model=name,
        prompt_tokens=prompt,
        completion_tokens=700,
        cache_read_input_tokens=used.cache_read_tokens,
        cache_creation_input_tokens=written,
    )
    assert cost_of(describe(name), used) == pytest.approx(sum(theirs))


def test_a_long_request_costs_in_whole_what_its_tier_says() -> None:
    assert cost_of(TIERED, Usage(100, 1)) == 100 * 1.0 + 4.0
    assert cost_of(TIERED, Usage(101, 1, cache_read_tokens=50)) == 51 * 2.0 + 50 * 0.2 + 6.0
    # What a tier does not say is as it is below all of them.
    assert cost_of(TIERED, Usage(501, 1, cache_read_tokens=1)) == pytest.approx(500 * 3.0 + 0.1 + 4.0)


@given(
    st.builds(Usage, *[st.integers(0, 1_000)] * 4), st.integers(1, 64), st.none() | st.integers(1, 64), st.booleans()
)
def test_cached_tokens_without_a_price_cost_as_much_as_the_input_of_that_tier(
    used: Usage, price: int, other: int | None, reads: bool
) -> None:
    """Whatever tokens of the other kind cost."""
    unpriced, known = ("cache_read_cost", "cache_write_cost") if reads else ("cache_write_cost", "cache_read_cost")
    below, tier = {"input_cost": price, "output_cost": 4.0, known: other}, {"input_cost": 2 * price}
    facts = replace(ModelFacts("m", tiers=(replace(PriceTier(500), **tier),)), **below)
    tiers = (replace(PriceTier(500), **tier, **{unpriced: 2 * price}),)
    assert cost_of(facts, used) == cost_of(replace(facts, **{unpriced: price}, tiers=tiers), used)


def test_prices_by_ranges_are_read_too() -> None:
    facts = describe("dashscope/qwen-flash")
    assert facts.input_cost is not None
    assert facts.tiers[0].input_cost is not None
    assert facts.tiers[0].above_tokens == 256_000
    assert facts.tiers[0].input_cost > facts.input_cost


def test_what_a_request_costs_and_a_compaction_saves() -> None:
    assert request_cost(TIERED, 100) == 100.0
    assert request_cost(TIERED, 100, is_cached=True) == pytest.approx(10.0)
    assert request_cost(ModelFacts("m"), 100) is None
    assert saved_cost(TIERED, 200, 100) == 400.0 - 100.0
    assert saved_cost(ModelFacts("m"), 200, 100) is None
    assert request_cost(ModelFacts("m", input_cost=1.0), 100, is_cached=True) is None


def test_money_is_never_nothing_for_something() -> None:
    assert [money(amount) for amount in (0, 0.0012, 0.0149, 0.5, 12)] == [
        "$0.00",
        "$0.0012",
        "$0.0149",
        "$0.50",
        "$12.00",
    ]
    assert [money(amount) for amount in (0.00004, 0.000001, -0.00002)] == ["$0.00004", "$0.000001", "$-0.00002"]


def test_only_claude_at_anthropic_compacts_by_itself() -> None:
    names = ["anthropic/claude-sonnet-5-5", "claude-sonnet-4-6"]
    assert [describe(name).can_compact for name in names] == [True, True]
    others = ["anthropic/claude-sonnet-4-5", "openrouter/anthropic/claude-sonnet-5.5", "openai/gpt-5.4", "unknown"]
    assert not any(describe(name).can_compact for name in others)
