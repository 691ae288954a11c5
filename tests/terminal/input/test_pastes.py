"""Folded pastes, and how the prompt displays its text."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import to_plain_text
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import Transformation, TransformationInput

from nca.terminal.input.display import ShownText
from nca.terminal.input.pastes import FoldedPastes, PastedPaths
from nca.words import Span, marked, merged, replaced, text_of, words

LINES = "\n".join(f"line {number}" for number in range(214))


def fold(pastes: FoldedPastes, text: str) -> str:
    return text_of(pastes.fold_pasted(text))


def test_short_ones_stay_and_long_ones_are_folded() -> None:
    pastes = FoldedPastes()
    assert pastes.fold_pasted("one\r\ntwo\rthree") == words("one\ntwo\nthree", "pasted")
    first = fold(pastes, LINES)
    assert len(first) == 1
    assert fold(pastes, LINES) == first
    second, third = fold(pastes, LINES.upper()), fold(pastes, "x" * 3_000)
    labels = [pastes.label(mark) for mark in (first, second, third)]
    assert labels == ["[pasted 214 lines]", "[pasted 214 lines #2]", "[pasted 3,000 characters]"]
    assert pastes.label("x") is None
    assert pastes.label(fold(pastes, f"{LINES}\nlast\n")) == "[pasted 215 lines]"


def test_what_comes_back_stands_as_it_stood() -> None:
    pastes = FoldedPastes()
    marks = (*pastes.fold_pasted(LINES.upper()), Span(" and ", "typed"), *pastes.fold_pasted(LINES))
    typed = merged((Span("look: ", "typed"), *marks, Span("!", "typed")))
    sent = pastes.unfold(typed)
    assert text_of(sent) == f"look: {LINES.upper()} and {LINES}!"
    assert [span.source for span in sent] == ["typed", "pasted", "typed", "pasted", "typed"]
    assert pastes.refold(sent) == typed
    assert pastes.refold(words("something else")) == words("something else")
    place = text_of(sent).index("line 7\n")
    changed = replaced(sent, place, place + len("line 7\n"), ())
    assert pastes.unfold(pastes.refold(changed)) == changed
    assert text_of(pastes.refold(changed))[6] == text_of(typed)[6]


def test_a_paste_that_comes_back_in_another_program_is_folded_as_it_was() -> None:
    """As after /undo in a resumed session or a fork: it filled the window."""
    said = (*words("look: "), *words(LINES, "pasted"), *words(" and this"))
    pastes = FoldedPastes()
    folded = pastes.refold(said)
    assert pastes.shown(text_of(folded)) == "look: [pasted 214 lines] and this"
    assert pastes.unfold(folded) == said
    # What was typed, however long, is shown.
    assert pastes.refold(words(LINES.upper())) == words(LINES.upper())


def test_the_same_paste_with_a_part_that_was_typed_is_another_with_the_same_label() -> None:
    pastes = FoldedPastes()
    mark = fold(pastes, LINES)
    other = pastes.refold(marked(pastes.unfold(words(mark)), 0, 4, "typed"))
    assert pastes.label(text_of(other)) == pastes.label(mark) == "[pasted 214 lines]"
    assert [span.source for span in pastes.unfold(other)] == ["typed", "pasted"]


@given(st.lists(st.text(max_size=3_000) | st.text("\U0010f000\U0010f001x\n", max_size=30), max_size=5))
def test_what_was_pasted_is_what_is_sent(texts: list[str]) -> None:
    pastes = FoldedPastes()
    folded = [pastes.fold_pasted(text) for text in texts]
    for text, shown in zip(texts, folded, strict=True):
        said = pastes.unfold(shown)
        assert text_of(said) == text.replace("\r\n", "\n").replace("\r", "\n")
        assert {span.source for span in said} <= {"pasted"}
        other = FoldedPastes()
        assert other.unfold(other.refold(said)) == said


def test_a_prompt_with_thousands_of_pastes_folds_no_more() -> None:
    pastes = FoldedPastes()
    marks = {fold(pastes, f"{number} " * 1_000) for number in range(4_094)}
    assert {len(mark) for mark in marks} == {1}
    assert fold(pastes, LINES) == LINES


def drawn(text: str, pastes: FoldedPastes) -> Transformation:
    control = BufferControl(Buffer(document=Document(text)))
    given = TransformationInput(control, Document(text), 0, lambda index: index, [("", text)], 80, 24)
    return ShownText(pastes, lambda: 2).apply_transformation(given)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, naïve, 日本", "plain, naïve, 日本"),
        ("a\tb\t\tc", "a   b       c"),
        ("red\u202eevil\x9b31m\U000e0041", "red\ufffdevil\ufffd31m\ufffd"),
        ("family \u200d joiner", "family \u200d joiner"),
    ],
)
def test_what_is_drawn(text: str, shown: str) -> None:
    assert to_plain_text(drawn(text, FoldedPastes()).fragments) == shown


def test_the_cursor_stands_beside_a_label() -> None:
    pastes = FoldedPastes()
    line = drawn(f"a {fold(pastes, LINES)}\tb", pastes)
    assert to_plain_text(line.fragments) == "a [pasted 214 lines]    b"
    places = [line.source_to_display(place) for place in range(6)]
    assert places == [0, 1, 2, 20, 24, 25]
    assert [line.display_to_source(place) for place in (0, 2, 19, 20, 24)] == [0, 2, 2, 3, 4]


async def test_what_the_key_attached_is_forgotten_at_the_next_prompt(tmp_path: Path) -> None:
    """A path that is typed there attaches itself: no line offers to take that back."""
    (tmp_path / "diary.txt").write_text("Dear diary")
    drawn = asyncio.Event()
    paths = PastedPaths(tmp_path, FoldedPastes().unfold, drawn.set)
    paths.begin()
    attached = paths.toggled(words("see @diary.txt", "pasted"))
    assert attached is not None
    paths.look(attached)
    await drawn.wait()
    assert paths.line() == "Enter attaches diary.txt; Alt-A takes that back."
    for _ in range(2):
        drawn.clear()
        paths.begin()
        # The pasted part is looked for on the disk, so the typed one has been judged by then.
        paths.look((*words("see @diary.txt and "), *words("@diary.txt", "pasted")))
        await drawn.wait()
        assert paths.line() == "1 path in the pasted text is not attached; Alt-A attaches it."
        paths.look(words("see @diary.txt"))
        assert paths.line() == ""
