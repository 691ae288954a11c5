"""Cutting a text: its ends and its unusual lines, and more room never loses a part."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.record.excerpt import (
    GAP,
    LONGEST_WORD_CHARS,
    PASTE,
    RESULT,
    TALK,
    WORDS,
    Style,
    both_ends,
    excerpt,
    on_one_line,
)
from nca.context.tokens import text_tokens

LINES = st.lists(st.text("abcdefgh 12.:", min_size=1, max_size=120).filter(str.strip), min_size=1, max_size=40)


PLAN = "Here is the plan:\n\n" + "\n".join(
    f"{n}. Step {n} changes the module {n} and all its tests" * 3 for n in range(1, 9)
)
STYLES = st.sampled_from([WORDS, TALK, RESULT, PASTE])


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert excerpt("one\ntwo", 3) == "one\ntwo"
    assert both_ends("one\n two", 8) == "one two"
    assert on_one_line("one\n\n two\n") == "one | two"


def test_the_one_line_that_is_unlike_the_others_stays() -> None:
    lines = [f"2026-01-01 10:{n:02}:00 INFO worker {n} has finished its part" for n in range(60)]
    lines[31] = "2026-01-01 10:31:00 WARN disk /var is 97% full"
    kept = excerpt("\n".join(lines), 200)
    assert lines[31] in kept
    assert lines[0] in kept
    assert lines[-1] in kept
    assert GAP in kept


def test_a_long_line_is_cut_between_its_sentences() -> None:
    text = " ".join(f"Sentence {word} says what it says." for word in ("one", "two", "three", "four")) * 9
    kept = excerpt(text, 90)
    assert text_tokens(kept) < 120
    assert kept.startswith("Sentence one")


def test_what_was_said_begins_as_it_began() -> None:
    assert excerpt("One thing is clear. " * 50, 10, TALK).startswith("One thing is clear.")


def test_a_list_keeps_the_beginning_of_each_item() -> None:
    short = excerpt(PLAN, 150, TALK)
    assert all(f"{n}. Step {n}" in short for n in range(1, 9))


@given(LINES, STYLES, st.integers(1, 800), st.integers(0, 800))
def test_more_room_has_all_that_less_room_had(lines: list[str], style: Style, tokens: int, more: int) -> None:
    """Every word of the smaller cut stands in the larger one, as often."""
    text = "\n".join(f"{place} {line}" for place, line in enumerate(lines))
    small, large = (Counter(re.findall(r"\w+", excerpt(text, size, style))) for size in (tokens, tokens + more))
    assert {word for word in small - large if len(word) < LONGEST_WORD_CHARS} == set()


@given(LINES, STYLES, st.integers(20, 500))
def test_a_cut_is_no_longer_than_asked(lines: list[str], style: Style, tokens: int) -> None:
    text = "\n".join(lines)
    size = text_tokens(text)
    assert size <= tokens or len(excerpt(text, tokens, style)) <= len(text) * tokens / size + 2 * len(GAP)


@pytest.mark.parametrize(
    "text", ["It costs 2 750 and no more", "It costs 2.750,40 and no more", "At 02:30:15 it ended"]
)
def test_no_number_is_cut(text: str) -> None:
    numbers = set(re.findall(r"\d[\d .,:]*\d", text))
    found = {cut for tokens in range(1, 20) for cut in re.findall(r"\d[\d .,:]*\d|\d", excerpt(text, tokens))}
    assert found <= numbers
