"""`nca.compact` keeps to a target that its caller names."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import nca

WINDOW = 16_000
WORDS = "the report of the quarter needs a table of all the sales by region and month beside its chart " * 2


def _talk(turns: int) -> list[dict[str, Any]]:
    """A person who says much, with a rule in every third message."""
    rows: list[dict[str, Any]] = [{"role": "system", "content": "You are a test."}]
    for number in range(turns):
        rule = f" Never change the sheet {number} without a backup." if number % 3 == 0 else ""
        rows.append({"role": "user", "content": f"Request {number}: {WORDS}{rule}"})
        rows.append({"role": "assistant", "content": f"Done: {number}."})
    return rows


@given(st.integers(100, 300), st.sampled_from([0.3, 0.5, 0.7]))
def test_a_named_target_is_a_limit_to_words_and_rules_too(turns: int, target: float) -> None:
    result = nca.compact(_talk(turns), context_window=WINDOW, target=target)
    assert result.target_tokens == int(target * result.budget_tokens)
    assert 0.8 * result.target_tokens < result.tokens_after <= result.target_tokens


def test_without_a_named_target_they_may_fill_more() -> None:
    result = nca.compact(_talk(300), context_window=WINDOW)
    assert result.tokens_after > result.target_tokens
