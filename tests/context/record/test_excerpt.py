"""Cutting a text: its ends and its unusual lines, and more room never loses a part."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.context.record.excerpt import GAP, both_ends, chars_for, excerpt, first_sentences

LINES = st.lists(st.text("abcdefgh 12.:", min_size=1, max_size=120).filter(str.strip), min_size=1, max_size=40)


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert excerpt("one\ntwo", 7) == "one\ntwo"
    assert first_sentences("One. Two.", 9) == "One. Two."
    assert both_ends("one\n two", 8) == "one two"


def test_the_one_line_that_is_unlike_the_others_stays() -> None:
    lines = [f"2026-01-01 10:{n:02}:00 INFO worker {n} has finished its part" for n in range(60)]
    lines[31] = "2026-01-01 10:31:00 WARN disk /var is 97% full"
    kept = excerpt("\n".join(lines), 500)
    assert lines[31] in kept
    assert lines[0] in kept
    assert lines[-1] in kept
    assert GAP in kept


def test_a_long_line_is_cut_between_its_sentences() -> None:
    text = " ".join(f"Sentence {word} says what it says." for word in ("one", "two", "three", "four")) * 9
    kept = excerpt(text, 400)
    assert len(kept) < 500
    assert kept.startswith("Sentence one")


@given(LINES, st.integers(10, 2_000), st.integers(0, 2_000))
def test_more_room_has_all_that_less_room_had(lines: list[str], chars: int, more: int) -> None:
    """Every line that is whole in the smaller cut stands in the larger one."""
    text = "\n".join(lines)
    small, large = excerpt(text, chars), excerpt(text, chars + more)
    whole = [line for line in small.splitlines() if line in lines and GAP not in line]
    assert all(line in large for line in whole)


@given(LINES, st.integers(40, 1_000))
def test_a_cut_is_about_as_long_as_asked(lines: list[str], chars: int) -> None:
    assert len(excerpt("\n".join(lines), chars)) <= chars + (len(GAP) + 3) * (chars // 3 + 2)


def test_characters_follow_from_the_tokens_of_the_text() -> None:
    text = "word " * 100
    assert chars_for(text, 1_000) == len(text)
    assert 0 < chars_for(text, 10) < len(text) // 5
