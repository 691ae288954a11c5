"""The numbers of spec section 1."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import ContextSettings
from nca.context.budget import Budget, Measurement, output_reserve
from nca.errors import ConfigError

windows = st.integers(1, 3_000_000)


@pytest.mark.parametrize(
    ("window", "max_output", "reserve"),
    [
        (128_000, 0, 44_800),
        (200_000, 0, 64_000),
        (1_000_000, 0, 64_000),
        (8_192, 0, 2_868),
        (8_192, 1_000, 1_000),
        (8_192, 8_000, 4_096),
        (1, 0, 0),
    ],
)
def test_reserve(window: int, max_output: int, reserve: int) -> None:
    assert output_reserve(window, max_output) == reserve
    assert Budget.of(window, max_output).budget_tokens == window - reserve


@given(windows)
def test_the_reserve_is_35_percent_capped_and_never_more_than_half(window: int) -> None:
    budget = Budget.of(window)
    assert budget.reserve_tokens == min(64_000, ceil(0.35 * window), window // 2)
    assert budget.budget_tokens + budget.reserve_tokens == window


@given(windows, st.integers(0, 3_000_000))
def test_max_tokens_only_lowers_the_budget(window: int, most: int) -> None:
    free = Budget.of(window).budget_tokens
    assert Budget.of(window, 0, most).budget_tokens == (min(free, most) if most else free)


@pytest.mark.parametrize(("window", "max_output"), [(0, 0), (-5, 0), (8_192, 8_192), (8_192, 10_000), (8_192, -1)])
def test_numbers_that_make_no_budget_are_refused_with_what_is_valid(window: int, max_output: int) -> None:
    with pytest.raises(ConfigError, match="valid: "):
        Budget.of(window, max_output)


@given(windows, st.integers(0, 4_000_000), st.floats(0.01, 1.0))
def test_the_target_is_the_ratio_or_what_cannot_shrink_and_a_quarter_of_the_rest(
    window: int, fixed: int, target_ratio: float
) -> None:
    budget = Budget.of(window)
    target = budget.target_tokens(fixed, target_ratio)
    assert target >= int(target_ratio * budget.budget_tokens)
    assert target >= fixed
    if fixed <= budget.budget_tokens:
        assert target <= budget.budget_tokens


def test_target_numbers() -> None:
    budget = Budget(200_000, 64_000, 136_000)
    assert budget.target_tokens(0, 0.5) == 68_000
    assert budget.target_tokens(100_000, 0.5) == 109_000
    assert budget.target_tokens(200_000, 0.5) == 200_000


@given(windows, st.integers(1, 100), st.integers(0, 3_000_000))
def test_the_trigger_and_the_usage_that_is_shown_agree(window: int, percent: int, used: int) -> None:
    budget = Budget.of(window)
    trigger = budget.trigger_tokens(ContextSettings(compact_threshold=percent / 100))
    assert (used >= trigger) == (used * 100 >= percent * budget.budget_tokens)


def test_the_absolute_trigger_comes_first_where_it_is_lower() -> None:
    budget = Budget(200_000, 64_000, 136_000)
    assert budget.trigger_tokens(ContextSettings()) == 108_800
    assert budget.trigger_tokens(ContextSettings(compact_tokens=50_000)) == 50_000
    assert budget.trigger_tokens(ContextSettings(compact_tokens=500_000)) == 108_800


def test_usage_may_exceed_1_and_exactly_the_budget_fits() -> None:
    budget = Budget(100, 0, 100)
    assert Measurement(150, budget).usage_ratio == 1.5
    assert not Measurement(101, budget).fits
    assert Measurement(100, budget).fits


def test_the_ladder_of_the_settings() -> None:
    settings = ContextSettings()
    assert (settings.info_threshold, settings.idle_threshold, settings.compact_threshold) == (0.60, 0.75, 0.80)
    assert settings.target_ratio == 0.50
    assert settings.stages == ("prune", "deduplicate", "summarize", "truncate")


@pytest.mark.parametrize(("threshold", "aim"), [(0.8, 0.5), (0.95, 0.5), (0.5, 0.3125), (0.6, 0.375), (0.65, 0.5)])
def test_the_aim_stays_well_below_the_trigger(threshold: float, aim: float) -> None:
    budget = Budget.of(100_000)
    assert budget.aim_ratio(ContextSettings(compact_threshold=threshold)) == pytest.approx(aim, abs=0.001)
