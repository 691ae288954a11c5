"""Under which names a model is looked for, and the values of one entry of the map."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nca.models.price_map import PriceTier, _entries, prefixes, shorten


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("gpt-4", ["gpt-4"]),
        ("openai/gpt-4", ["openai/gpt-4", "gpt-4"]),
        ("a/b/c", ["a/b/c", "b/c", "c"]),
        ("claude-3.5-20240620", ["claude-3.5-20240620", "claude-3.5", "claude-3-5-20240620", "claude-3-5"]),
        ("gpt-4-2024-08-06", ["gpt-4-2024-08-06", "gpt-4"]),
        ("gemini-09-2025", ["gemini-09-2025", "gemini"]),
        ("x@20240620-v1:0", ["x@20240620-v1:0", "x"]),
        ("x-latest", ["x-latest", "x"]),
        ("x-2024", ["x-2024"]),
        ("us.anthropic.claude-v1:0", ["us.anthropic.claude-v1:0", "us.anthropic.claude", "claude-v1:0", "claude"]),
        ("", []),
    ],
)
def test_a_name_is_looked_for_without_providers_dates_and_dots(name: str, spellings: list[str]) -> None:
    assert shorten(name) == spellings


@pytest.mark.parametrize(
    ("name", "starts"),
    [
        ("gpt-4-turbo", ["gpt-4"]),
        ("gpt-4.5-mini", ["gpt-4.5", "gpt-4-5"]),
        ("openai/gpt-4-x", ["openai/gpt-4", "gpt-4"]),
        ("command-r-plus:7b", ["command-r-plus", "command-r"]),
        ("llama_x", []),
        ("llama3_x@y", ["llama3_x", "llama3"]),
        ("-4", []),
    ],
)
def test_a_beginning_counts_where_it_says_enough(name: str, starts: list[str]) -> None:
    assert prefixes(name) == starts


PRICES = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}


def entry(**values: Any) -> Any:
    (found,) = _entries({"Some/Name": msgspec.Raw(msgspec.json.encode({"mode": "chat", **values}))}).values()
    return found


@pytest.mark.parametrize(
    ("given", "tokens"), [(1, 1), (8_192.0, 8_192), (0, None), (-1, None), (True, None), ("8192", None), (None, None)]
)
def test_a_limit_is_a_number_above_0(given: Any, tokens: int | None) -> None:
    found = entry(max_input_tokens=given, max_output_tokens=given)
    assert (found.window_tokens, found.max_output_tokens) == (tokens, tokens)


@pytest.mark.parametrize(("given", "cost"), [(0, 0.0), (1e-6, 1e-6), (True, None), ("1", None), (None, None)])
def test_a_price_is_a_number_and_may_be_0(given: Any, cost: float | None) -> None:
    assert entry(input_cost_per_token=given).input_cost == cost


@pytest.mark.parametrize("given", [True, False, None, "yes", 1])
def test_an_ability_is_there_where_the_map_says_true(given: Any) -> None:
    found = entry(
        supports_vision=given,
        supports_reasoning=given,
        supports_anthropic_compaction=given,
        supports_function_calling=given,
    )
    assert found.can_see is found.can_reason is found.can_compact is (given is True)
    assert found.can_use_tools is (given if isinstance(given, bool) else None)


def test_other_modes_are_left_out_and_names_are_found_in_lower_case() -> None:
    raw = {name: msgspec.Raw(msgspec.json.encode(row)) for name, row in {"A": {"mode": "image"}, "B": 1}.items()}
    assert _entries(raw) == {}
    assert entry(litellm_provider="x").name == "Some/Name"
    assert list(_entries({"A/B": msgspec.Raw(b'{"mode": "chat"}')})) == ["a/b"]


def tier(above_tokens: int, input_cost: float, output_cost: float) -> PriceTier:
    return PriceTier(above_tokens=above_tokens, input_cost=input_cost, output_cost=output_cost)


def test_tiers_come_from_both_forms_lowest_first_and_the_one_from_0_is_the_price() -> None:
    named = {f"{key}_above_{limit}k_tokens": value * 2 for key, value in PRICES.items() for limit in (200, 128)}
    found = entry(**PRICES, **named)
    assert (found.input_cost, found.output_cost) == (1e-6, 2e-6)
    assert found.tiers == tuple(tier(above, 2e-6, 4e-6) for above in (128_000, 200_000))
    listed = [{"range": [start, 9_999_999], **PRICES} for start in (32_000, 0)]
    found = entry(tiered_pricing=[*listed, {"range": []}, {"range": ["x"]}, "row", {}])
    assert (found.input_cost, found.tiers) == (1e-6, (tier(32_000, 1e-6, 2e-6),))
    assert entry(tiered_pricing="none", **PRICES).tiers == ()
