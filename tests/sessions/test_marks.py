"""Marks: what the words of a text say at once is what the patterns would have found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.sessions import marks
from nca.sessions.marks import SAYS_HOW_MANY, SAYS_WHEN

PIECES = (
    *("last", "next ", "this", "coming_", "am", "pm", "5", "30", " ", "  ", ":", "12", "1999", "20", "3rd", "_", "-"),
    *("Monday", "mon", "day", "ago", "FIVE", "x", "half", "12pm", "7th", "\n", "5:30pm", "9 pm", "\u017f", "\u00e9"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_words_say_what_the_patterns_find(text: str) -> None:
    found = marks.marks(text)
    assert (SAYS_WHEN in found) == (marks._TIME.search(text) is not None)
    assert (SAYS_HOW_MANY in found) == (marks._NUMBER.search(text) is not None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we met yesterday", [SAYS_WHEN]),
        ("We meet at 5:30pm.", [SAYS_WHEN, SAYS_HOW_MANY]),
        ("this is it", [SAYS_WHEN]),
        ("this, is it", []),
        ("two dogs", [SAYS_HOW_MANY]),
        ("the may of it", []),
    ],
)
def test_marks(text: str, expected: list[str]) -> None:
    assert marks.marks(text) == expected
