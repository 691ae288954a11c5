"""Who said each character of the prompt's text, beside a list of characters that never forgets it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from nca.terminal.input.editor import retold
from nca.terminal.input.prompt_text import Offer, PromptText, is_typed_in
from nca.words import Source, Span, Words, merged, part_of, source_at, stripped, text_of, words

Characters = list[tuple[str, Source]]
FEW, UNLIKE = "a@ \n", "".join(map(chr, range(0x4E00, 0x5E00)))


class Naive:
    """The text as characters with their sources, and copies of it where prompt_toolkit keeps texts."""

    def __init__(self, entries: list[Characters]) -> None:
        self.text: Characters = []
        self.place = 0
        self.killed: Characters = []
        self.undone: list[Characters] = []
        self.entries = entries


class Both:
    """The same steps for a real buffer and the naive text."""

    def __init__(self, entries: list[Characters]) -> None:
        self.naive = Naive(entries)
        self.prompt = PromptText()
        for entry in entries:
            self.prompt.known.add(merged(tuple(Span(*one) for one in entry)))
        self.buffer = Buffer()
        self.put: Span | None = None
        self.buffer.on_text_changed += self._note

    def _note(self, buffer: Buffer) -> None:
        self.prompt.change(buffer.text, buffer.cursor_position, self.put)

    def type(self, text: str) -> None:
        for character in text:
            self._insert(character, "typed")

    def paste(self, text: str) -> None:
        self._insert(text, "pasted")

    def _insert(self, text: str, source: Source) -> None:
        self.put = Span(text, source)
        self.buffer.insert_text(text)
        self.put = None
        self._insert_naively([(one, source) for one in text])

    def _insert_naively(self, put: Characters) -> None:
        naive = self.naive
        naive.text[naive.place : naive.place] = put
        naive.place += len(put)

    def move(self, place: int) -> None:
        self.naive.place = self.buffer.cursor_position = min(place, len(self.naive.text))

    def backspace(self, count: int) -> None:
        self.buffer.delete_before_cursor(min(count, self.naive.place))
        naive = self.naive
        start = max(0, naive.place - count)
        del naive.text[start : naive.place]
        naive.place = start

    def kill(self, count: int) -> None:
        self.buffer.delete(count)
        naive = self.naive
        naive.killed = naive.text[naive.place : naive.place + count]
        del naive.text[naive.place : naive.place + count]

    def yank(self) -> None:
        self.buffer.insert_text("".join(text for text, _ in self.naive.killed))
        self._insert_naively(self.naive.killed)

    def save(self) -> None:
        self.naive.undone.append(list(self.naive.text))

    def undo(self) -> None:
        if self.naive.undone:
            self._come(self.naive.undone.pop())

    def up(self, number: int) -> None:
        if self.naive.entries:
            self._come(self.naive.entries[number % len(self.naive.entries)])

    def _come(self, text: Characters) -> None:
        """As prompt_toolkit shows another entry: the cursor at its beginning when the text changes."""
        self.naive.text = list(text)
        self.naive.place = 0
        shown = "".join(one for one, _ in text)
        is_same = shown == self.buffer.text
        self.buffer.document = Document(shown, 0)
        if is_same:
            self.buffer.on_text_changed.fire()


NUMBER = st.integers(0, 12)


def steps(text: st.SearchStrategy[str]) -> st.SearchStrategy[list[Callable[[Both], None]]]:
    return st.lists(
        st.one_of(
            text.map(lambda one: lambda both: both.type(one)),
            text.map(lambda one: lambda both: both.paste(one)),
            NUMBER.map(lambda one: lambda both: both.move(one)),
            NUMBER.map(lambda one: lambda both: both.backspace(one)),
            NUMBER.map(lambda one: lambda both: both.kill(one)),
            NUMBER.map(lambda one: lambda both: both.up(one)),
            st.sampled_from((Both.yank, Both.save, Both.undo)),
        ),
        max_size=14,
    )


SOURCES: st.SearchStrategy[Source] = st.sampled_from(("typed", "pasted"))
ENTRIES = st.lists(st.lists(st.tuples(st.sampled_from(FEW), SOURCES), min_size=1, max_size=6), max_size=2)


@given(ENTRIES, steps(st.text(FEW, max_size=4)))
def test_what_was_pasted_is_never_typed(entries: list[Characters], steps: list[Callable[[Both], None]]) -> None:
    both = Both(entries)
    for step in steps:
        step(both)
        assert text_of(both.prompt.said) == both.buffer.text == "".join(text for text, _ in both.naive.text)
        for place, (_, source) in enumerate(both.naive.text):
            assert source == "typed" or source_at(both.prompt.said, place) == "pasted"


@given(st.data())
def test_what_was_typed_stays_typed_where_no_text_is_said_twice(data: st.DataObject) -> None:
    unused = iter(UNLIKE)
    fresh = st.integers(0, 4).map(lambda count: "".join(next(unused) for _ in range(count)))
    both = Both([])
    for step in data.draw(steps(fresh)):
        step(both)
        said = [(text, source_at(both.prompt.said, place)) for place, text in enumerate(both.buffer.text)]
        assert said == both.naive.text


def text_with(*steps: tuple[str, int, Span | None], begun: Words = ()) -> PromptText:
    text = PromptText()
    text.become(begun)
    for step in steps:
        text.change(*step)
    return text


def test_an_offer_that_is_taken_counts_as_typed_and_a_letter_more_of_it_too() -> None:
    text = text_with(begun=(*words("x\n", "pasted"), *words("see @sr")))
    base = text_of(text.said)
    text.offer(Offer(base, len(base) - 2, len(base), "src/parse.py "))
    text.change("x\nsee @src/parse.py ", 19, None)
    assert text.said == (*words("x\n", "pasted"), *words("see @src/parse.py "))
    text.change(base, len(base), None)
    assert text.said == (*words("x\n", "pasted"), *words("see @sr"))


@pytest.mark.parametrize(
    ("before", "after", "source"),
    [
        ("fix it", "FIX it", "typed"),
        ("fi xit", "fix it", "typed"),
        ("one\ntwo", "one two", "typed"),
        ("fix it", "fix it\n", "typed"),
        ("fix it", "something else", "pasted"),
    ],
)
def test_what_the_editing_keys_make_of_typed_text_is_typed(before: str, after: str, source: Source) -> None:
    assert is_typed_in(text_with((after, 0, None), begun=words(before)).said) == (source == "typed")
    assert not is_typed_in(text_with((after, 0, None), begun=words(before, "pasted")).said)


def test_what_nobody_typed_counts_as_pasted() -> None:
    text = text_with(begun=(Span("a", "foreign"), Span("b", "typed"), Span("c", "tool")))
    assert text.said == (*words("a", "pasted"), *words("b"), *words("c", "pasted"))
    assert text.said_of("never seen") == words("never seen", "pasted")


LOG = words("see @~/diary.txt please\nand the rest of it\nend\n", "pasted")


@pytest.mark.parametrize(
    ("after", "typed"),
    [
        ("Why? see @~/diary.txt please\nand the rest of it\nend\n", "Why? "),
        ("see @~/diary.txt thanks\nand the rest of it\nend\n", "thanks"),
        ("end\nand the rest of it\nnow see @~/diary.txt please\n", "now "),
        ("moved: @~/diary.txt", "moved: "),
        ("Look at @mine.txt\nsee @~/diary.txt please\nand the rest of it\nend\n", "Look at @mine.txt\n"),
        ("", ""),
    ],
)
def test_what_stays_or_moves_in_an_editor_keeps_its_source(after: str, typed: str) -> None:
    said = retold(LOG, after)
    assert text_of(said) == after
    own = "".join(span.text for span in said if span.source == "typed")
    assert own.split() == typed.split()


@given(
    st.lists(st.tuples(st.sampled_from(("@a ", "b ", "c\n")), SOURCES)), st.lists(st.sampled_from(("@a ", "b ", "c\n")))
)
def test_a_word_that_was_only_pasted_comes_back_from_an_editor_typed_only_if_it_is_there_more_often(
    before: list[tuple[str, Source]], after: list[str]
) -> None:
    said = tuple(Span(*one) for one in before)
    back = retold(said, "".join(after))
    assert text_of(back) == "".join(after)
    assert retold(said, text_of(said)) == merged(said)
    for word in ("@a ", "b "):
        if word in after and ("typed" not in [source for text, source in before if text == word]):
            kept = [one for one in before if one[0] == word]
            typed = sum(span.text.count(word) for span in back if span.source == "typed")
            assert typed <= max(0, after.count(word) - len(kept)) or not kept


def test_parts_of_words_are_put_together_again() -> None:
    said = (*words("ab"), *words("cd", "pasted"))
    assert merged((*part_of(said, 0, 3), *part_of(said, 3))) == said
    assert stripped(said) == said
