"""The prompt's rows break between words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.terminal.input.display import in_rows


def rows(text: str, cells: int) -> list[str]:
    shown = "".join(piece for _, piece in in_rows([("", character) for character in text], cells))
    return [shown[start : start + cells] for start in range(0, len(shown), cells)]


def test_a_word_that_does_not_fit_begins_the_next_row() -> None:
    assert rows("a person types words", 10) == ["a person  ", "types     ", "words"]
    assert rows("exactly10! then", 10) == ["exactly10!", "then"]
    assert rows("a wordthatislongerthanarow b", 10) == ["a wordthat", "islongerth", "anarow b"]


@given(st.lists(st.text("abc", min_size=1, max_size=6)), st.sampled_from([" ", "  "]), st.integers(6, 12))
def test_every_word_that_fits_a_row_is_whole(words: list[str], between: str, cells: int) -> None:
    assert [word for row in rows(between.join(words), cells) for word in row.split()] == words
