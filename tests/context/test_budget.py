"""Window, reserve, budget and usage."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.layers import defaults
from nca.context.budget import Budget, Measurement, output_reserve
from nca.context.policy import thresholds
from nca.errors import ConfigError

windows = st.integers(1, 3_000_000)


@pytest.mark.parametrize(
    ("window", "max_output", "reserve"),
    [
        (64_000, 0, 22_400),
        (128_000, 0, 32_000),
        (200_000, 0, 32_000),
        (1_000_000, 0, 32_000),
        (8_192, 0, 2_868),
        (8_192, 1_000, 1_000),
        (8_192, 8_000, 4_096),
        (8_192, 8_192, 4_096),
        (8_192, 100_000, 4_096),
        (1, 0, 0),
    ],
)
def test_reserve(window: int, max_output: int, reserve: int) -> None:
    assert output_reserve(window, max_output) == reserve
    assert Budget.of(window, max_output).budget_tokens == window - reserve


@given(windows)
def test_the_reserve_is_35_percent_capped_and_never_more_than_half(window: int) -> None:
    budget = Budget.of(window)
    assert budget.reserve_tokens == min(32_000, ceil(0.35 * window), window // 2)
    assert budget.budget_tokens + budget.reserve_tokens == window


def test_a_window_of_200_000_compacts_at_two_thirds_of_it_and_neurolink_s_as_it_did() -> None:
    for profile, reserve in (("none", 32_000), ("neurolink", 64_000)):
        settings = defaults().with_value("profile", profile, "the test").settings
        budget = Budget.in_window(200_000, settings)
        assert budget.reserve_tokens == reserve
        assert thresholds(budget, settings.context).compact == round(0.8 * (200_000 - reserve))


@given(windows, st.integers(0, 3_000_000))
def test_max_tokens_only_lowers_the_budget(window: int, most: int) -> None:
    free = Budget.of(window).budget_tokens
    assert Budget.of(window, 0, most).budget_tokens == (min(free, most) if most else free)


@pytest.mark.parametrize(("window", "max_output"), [(0, 0), (-5, 0), (8_192, -1)])
def test_numbers_that_make_no_budget_are_refused_with_what_is_valid(window: int, max_output: int) -> None:
    with pytest.raises(ConfigError, match="valid: "):
        Budget.of(window, max_output)


def test_usage_may_exceed_1_and_exactly_the_budget_fits() -> None:
    budget = Budget(100, 0, 100)
    assert Measurement(150, budget).usage_ratio == 1.5
    assert not Measurement(101, budget).fits
    assert Measurement(100, budget).fits
