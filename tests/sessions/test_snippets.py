"""Snippets: limited, on one line, and from the place that answers the question."""

from __future__ import annotations

import pytest
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


FILLER = st.lists(st.sampled_from(["a", "tide", "harbour", "measured", "on", "it.", "why?", "so;"]), max_size=60)


@given(FILLER, FILLER, st.integers(60, 160))
def test_what_was_found_is_shown_between_whole_words_with_what_leads_to_it(
    before: list[str], after: list[str], chars: int
) -> None:
    text = " ".join([*before, "zebra", *after])
    shown = SnippetFinder({"zebra": 1.0}, str).snippet(text, chars)
    line = shown.removeprefix("…").removesuffix("…")
    place = text.index(line)
    assert "zebra" in line
    assert len(line) <= chars
    assert (shown.startswith("…"), shown.endswith("…")) == (place > 0, place + len(line) < len(text))
    assert set(line.split()) <= {"zebra", *before, *after}
    if len(text) <= chars:
        assert shown == text
    elif len(text) - text.index("zebra") > chars:
        assert line.index("zebra") <= chars // 4
    # Where the rest is short, it is shown with sentences before it.
    assert len(line) == len(text) or place + len(line) == len(text) or len(line) >= chars // 2 - 24


@pytest.mark.parametrize(
    ("text", "first", "chars", "shown"),
    [
        ("one two three", 0, 20, "one two three"),
        ("one two three", 0, 13, "one two three"),
        ("one two three", 0, 12, "one two…"),
        ("one two three", 4, 9, "…two three"),
        ("one two three", 4, 20, "one two three"),
        ("One. Two is more. Three.", 5, 12, "…Two is more.…"),
        ("One. Two is more. Three.", 18, 12, "…Three."),
        ("One. Two is more. Three.", 18, 20, "…Three."),
        ("One. Two is more. Three.", 18, 21, "…Two is more. Three."),
        ("One. Two is more. Three.", 18, 24, "One. Two is more. Three."),
        ("one\n\ntwo   three", 0, 30, "one two three"),
        ("x" * 40, 10, 20, "…" + "x" * 20 + "…"),
        ("x" * 40, 30, 20, "…" + "x" * 10),
    ],
)
def test_a_cut_ends_with_a_sentence_or_between_words(text: str, first: int, chars: int, shown: str) -> None:
    assert cut(text, first, chars) == shown


def test_the_weight_of_words_decides_and_each_counts_once() -> None:
    far = " filler" * 40
    finder = SnippetFinder({"zebra": 3.0, "lion": 2.0, "bear": 2.0}, str)
    assert "lion bear" in finder.snippet(f"zebra{far} lion bear{far} end", 60)
    assert finder.snippet(f"zebra{far} lion lion lion{far} end", 60).startswith("zebra")
    assert finder.snippet(f"none of them{far}", 60).startswith("none of them")
    assert SnippetFinder({}, str).snippet("a b", 60) == "a b"
