"""Snippets: limited, on one line, and from the place that answers the question."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.sessions.results import SnippetFinder, cut


def same(word: str) -> str:
    return word


def test_the_stretch_that_holds_most_is_shown() -> None:
    text = "red " + "filler " * 100 + "red and blue\nboxes " + "filler " * 100
    snippet = SnippetFinder({"red": 1.0, "blue": 1.0}, same).snippet(text, 80)
    assert "red and blue boxes" in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")


def test_words_are_found_in_other_forms_and_not_inside_others() -> None:
    finder = SnippetFinder({"renaming": 1.0}, lambda word: "renam")
    assert "we renamed it" in finder.snippet("x " * 200 + "we renamed it" + " x" * 200, 60)
    assert "unrenamed" not in finder.snippet("y " * 200 + "unrenamed" + " y" * 200, 60)


def test_wide_characters() -> None:
    assert "東京タワー" in SnippetFinder({"京タ": 1.0}, same).snippet("あ" * 300 + "東京タワー" + "い" * 300, 40)


@given(st.text(max_size=500), st.integers(40, 200))
def test_no_snippet_is_longer_than_asked_for(text: str, chars: int) -> None:
    snippet = SnippetFinder({"a": 1.0, "0": 1.0}, same).snippet(text, chars)
    assert len(snippet) <= chars + 2
    assert "\n" not in snippet


def test_a_short_text_is_shown_whole() -> None:
    assert cut("one  two\nthree", 5, 80) == "one two three"
