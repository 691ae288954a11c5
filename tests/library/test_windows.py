"""Windows, reserves and budgets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nca


@pytest.mark.parametrize(
    ("model", "provider", "tokens"),
    [
        ("gpt-4", "openai", 8_192),
        ("GPT-4", "", 8_192),
        ("openai/gpt-4o", "openai", 128_000),
        ("claude-3-5-haiku-20241022", "anthropic", 200_000),
        ("", "anthropic", 200_000),
        ("", "vertex", 1_048_576),
        ("", "huggingface", 32_000),
        ("something-of-its-own", "mistral", 128_000),
        ("anthropic/claude-3-5-haiku-20241022", "openrouter", 200_000),
        ("", "", 128_000),
    ],
)
def test_windows(model: str, provider: str, tokens: int) -> None:
    assert nca.context_window_size(model, provider) == tokens


@pytest.mark.parametrize(
    ("window", "answer", "reserve"),
    [
        (200_000, 0, 32_000),
        (128_000, 0, 32_000),
        (64_000, 0, 22_400),
        (8_192, 0, 2_868),
        (200_000, 8_000, 8_000),
        (10_000, 9_000, 5_000),
        (100, 100, 50),
    ],
)
def test_reserves(window: int, answer: int, reserve: int) -> None:
    assert nca.output_reserve(window, answer) == reserve
    assert nca.available_input_tokens(context_window=window, max_output_tokens=answer) == window - reserve


@given(st.integers(1, 4_000_000))
def test_a_reserve_is_at_most_half_of_the_window(window: int) -> None:
    assert 0 <= nca.output_reserve(window) <= window / 2
    assert nca.output_reserve(window) <= 32_000


def test_available_tokens_of_a_model() -> None:
    assert nca.available_input_tokens("gpt-4", "openai") == 8_192 - 2_868
    assert nca.available_input_tokens("gpt-4", "openai", 1_000) == 7_192
    assert nca.available_input_tokens("gpt-4", context_window=100_000, max_output_tokens=1_000) == 99_000
    assert nca.available_input_tokens("gpt-4", "", 9_000) == 4_096


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: nca.context_window_size(None), "model: expected text, found nothing"),  # type: ignore[arg-type]
        (lambda: nca.context_window_size("gpt-4", 3), "provider: expected text, found a number"),  # type: ignore[arg-type]
        (lambda: nca.output_reserve(0), "context_window = 0 is not valid; valid: a whole number from 1"),
        (lambda: nca.output_reserve(-1), "context_window = -1 is not valid"),
        (lambda: nca.output_reserve(float("nan")), "context_window = nan is not valid"),  # type: ignore[arg-type]
        (lambda: nca.output_reserve("lots"), "context_window = 'lots' is not valid"),  # type: ignore[arg-type]
        (lambda: nca.output_reserve(100, -1), "max_output_tokens = -1 is not valid"),
        (lambda: nca.available_input_tokens(context_window=-1), "context_window = -1 is not valid"),
    ],
)
def test_bad_arguments_are_named(call: Any, said: str) -> None:
    with pytest.raises(nca.UsageError) as refused:
        call()
    assert said in str(refused.value)
