"""Who said each part of the text in the prompt: typed or pasted by the person.

prompt_toolkit edits plain text. Beside it `PromptText` keeps the same text as `Words`, and is told of each change. Text
that comes back (undo, yank, history) has the source that it had. If nobody can know it, the text counts as pasted,
because only typed text may attach files, command, or set a rule.

A text that had no effect, or was not sent, comes back, and the next thing typed replaces it, as one that is selected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput

from nca.words import Span, Words, marked, merged, part_of, replaced, text_of

EARLIER_CHARS = 2_000_000
"""Of the newest states of the text, for undo."""
_MOST_CUTS = 100
_MOST_OFFERS = 500
_MOST_PLACES = 64
"""A piece of text that was said at more places than these counts as pasted: to look at all would take too long."""


class Offer(NamedTuple):
    """A completion or a suggestion: `text` replaces the part between two places of `base`, a text of the prompt."""

    base: str
    start: int
    end: int
    text: str


Offering = Callable[[Offer], None]
"""Is told of each offer, so that one that the person takes counts as typed."""


class KnownTexts:
    """Texts that may come back, with the source of each part. Text both typed and pasted counts as pasted."""

    def __init__(self, most_chars: float = float("inf")) -> None:
        """`most_chars`: beyond this, the oldest are forgotten."""
        self._most_chars = most_chars
        self._chars = 0
        self._said: dict[str, Words] = {}

    def add(self, said: Words) -> None:
        text = text_of(said)
        known = self._said.pop(text, None)
        self._said[text] = said if known is None else _safest(known, said)
        self._chars += len(text) if known is None else 0
        while self._chars > self._most_chars and len(self._said) > 1:
            oldest = next(iter(self._said))
            del self._said[oldest]
            self._chars -= len(oldest)

    def whole(self, text: str) -> Words | None:
        """Who said this text; None if it is not known."""
        return self._said.get(text)

    def part(self, text: str) -> Words | None:
        """Who said a piece of a known text; None if it is in none."""
        found: Words | None = None
        for whole, said in self._said.items():
            place = whole.find(text)
            places = 0
            while place >= 0:
                part = part_of(said, place, place + len(text))
                found = part if found is None else _safest(found, part)
                if places > _MOST_PLACES or (len(found) == 1 and not is_typed_in(found)):
                    return (Span(text, "pasted"),)
                if is_typed_in(said):
                    break
                place, places = whole.find(text, place + 1), places + 1
        return found


class PromptText:
    """The text in the prompt as words, typed and pasted.

    known    earlier messages: the history
    refused  lines of it that had no effect the last time, as a mistyped command; they are not suggested
    """

    def __init__(self, note: Callable[[Words], None] = lambda _: None) -> None:
        """`note` is told of each change."""
        self._note = note
        self.said: Words = ()
        self.refused: set[str] = set()
        self.known = KnownTexts()
        self._earlier = KnownTexts(EARLIER_CHARS)
        self._cut: deque[Words] = deque(maxlen=_MOST_CUTS)
        self._offers: deque[Offer] = deque(maxlen=_MOST_OFFERS)

    def become(self, said: Words) -> None:
        """The text is now this, and who said each part of it is known. Text that was not typed counts as pasted."""
        self.said = merged(tuple(Span(text, "typed" if source == "typed" else "pasted") for text, source in said))
        self._earlier.add(self.said)
        self._note(self.said)

    def offer(self, offer: Offer) -> None:
        """A completion or a suggestion that the person may take; if they take it, it counts as typed."""
        self._offers.append(offer)

    def said_of(self, text: str) -> Words:
        """Who said a text that is in the prompt, or was."""
        if text == text_of(self.said):
            return self.said
        return self.known.whole(text) or self._earlier.whole(text) or (Span(text, "pasted"),)

    def change(self, text: str, cursor: int, put: Span | None = None) -> None:
        """The text has changed to `text`, with the cursor at this place of it.

        put  the text inserted before the cursor, if known; it may have replaced something
        """
        old = text_of(self.said)
        if text == old:
            # An entry of the history may be the very text that was typed.
            if not cursor and (known := self._come_back(text)):
                self.become(_safest(self.said, known))
            return
        self.become(
            (self._put_in(old, text, cursor, put) if put is not None else None)
            # Another entry of the history comes with the cursor at its beginning.
            or (self._taken_or_cut(old, text) if cursor else None)
            or self._come_back(text)
            or self._replaced(old, text)
        )

    def _put_in(self, old: str, text: str, cursor: int, put: Span) -> Words | None:
        start, after = cursor - len(put.text), len(text) - cursor
        is_so = (
            0 <= start <= len(old) - after
            and text[start:cursor] == put.text
            and text.startswith(old[:start])
            and text[cursor:] == old[len(old) - after :]
        )
        return replaced(self.said, start, len(old) - after, (put,)) if is_so else None

    def _taken_or_cut(self, old: str, text: str) -> Words | None:
        """An offer was accepted, or something was deleted."""
        for base, start, end, offered in reversed(self._offers):
            chars = len(text) - start - (len(base) - end)
            if chars > 0 and text == base[:start] + offered[:chars] + base[end:]:
                return replaced(self.said_of(base), start, end, (Span(offered[:chars], "typed"),))
        before, after = _alike(old, text)
        if len(text) < len(old) and before + after == len(text):
            return self._replaced(old, text)
        return None

    def _come_back(self, text: str) -> Words | None:
        known = [said for said in (self.known.whole(text), self._earlier.whole(text)) if said is not None]
        return _safest(known[0], known[-1]) if known else None

    def _replaced(self, old: str, text: str) -> Words:
        """The rest keeps its source. If several places are possible and one was not typed, none counts as typed."""
        before, after = _alike(old, text)
        gone = part_of(self.said, before, len(old) - after)
        put = text[before : len(text) - after]
        if gone:
            self._cut.append(gone)
        said = replaced(self.said, before, len(old) - after, self._origin(put, gone))
        if put and gone:
            return said
        longer, length = (text, len(put)) if put else (old, len(text_of(gone)))
        first = before
        while first and longer[first - 1] == longer[first - 1 + length]:
            first -= 1
        is_typed = is_typed_in(part_of(said if put else self.said, first, before + length))
        return said if is_typed or first == before else marked(said, first, before + len(put), "pasted")

    def _origin(self, put: str, gone: Words) -> Words:
        """The source of inserted text, if known."""
        found = None
        for cut in self._cut:
            if text_of(cut) == put:
                found = cut if found is None else _safest(found, cut)
        if found is None and is_typed_in(gone) and _letters(put) == _letters(text_of(gone)):
            # Transposed, in capitals, with other line breaks; or a new line.
            found = (Span(put, "typed"),)
        return found or self._earlier.part(put) or self.known.part(put) or (Span(put, "pasted"),)


def is_typed_in(said: Words) -> bool:
    """Whether all of it was typed."""
    return all(span.source == "typed" for span in said if span.text)


def _safest(one: Words, other: Words) -> Words:
    """The same text, pasted wherever one of the two is."""
    place = 0
    for span in other:
        if span.source != "typed":
            one = marked(one, place, place + len(span.text), "pasted")
        place += len(span.text)
    return merged(one)


def _alike(old: str, text: str) -> tuple[int, int]:
    """How many characters two texts begin with in common, and how many of the rest they end with."""
    most = min(len(old), len(text))
    before = _count_alike(old, text, most)
    return before, _count_alike(old[::-1], text[::-1], most - before)


def _count_alike(one: str, other: str, most: int) -> int:
    if one[:most] == other[:most]:
        return most
    pairs = islice(zip(one, other, strict=False), most)
    return next(place for place, (mine, theirs) in enumerate(pairs) if mine != theirs)


def _letters(text: str) -> list[str]:
    return sorted("".join(text.split()).casefold())


HINT = "Typing replaces it, Esc empties, → keeps, Enter sends it."
"""Fits a window of 60 columns."""


class ReturnedText(Processor):
    """Knows whether the text of a prompt was sent before, and draws it as selected while it gives way.

    Text comes back if it had no effect, such as a message with `@` and a missing file, or was undone, or was queued
    behind a failure. The next key typed replaces it. Otherwise a person who types on, such as a second `/undo`,
    would append to it and send both. Escape empties the prompt. Any other key keeps the text, to be mended.
    """

    def __init__(self) -> None:
        self._is_new = False
        self.gives_way = False

    @property
    def hint(self) -> str:
        return HINT if self.gives_way else ""

    def sent(self) -> None:
        """A text left the prompt."""
        self._is_new = False

    def written(self) -> None:
        """An editor had the terminal: the text that comes from it was never sent."""
        self._is_new = True

    def begin(self, default: Words, *, was_sent: bool) -> None:
        """A prompt begins with this text. `was_sent`: it is not from an editor, even where one had the terminal."""
        self.gives_way = bool(text_of(default).strip()) and (was_sent or not self._is_new)
        self._is_new = False

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        if not self.gives_way:
            return Transformation(fragments)
        return Transformation([(f"{style} class:selected", text) for style, text, *_ in fragments])
