"""What somebody hands to a conversation, with who said each part of it.

The prompt is on the screen before anything heavy is imported, so this module needs the standard library alone.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from nca.humanize import clean_text

Source = Literal["typed", "pasted", "piped", "attached", "tool", "model", "nca", "foreign"]
"""Who said a part of a message. It is set where the part enters nca, and stored with it.

typed     the person typed it: it alone may attach files, be a command, or set a rule
pasted    the person pasted it into the prompt
piped     it came through a pipe
attached  a file that the person attached
tool      a program printed it, or a server returned it
model     a model wrote it
nca       nca added it, or the program that a conversation was imported from
foreign   unknown: another program's conversation, or one that an older nca stored
"""


class Span(NamedTuple):
    """A text of one source."""

    text: str
    source: Source


Words = tuple[Span, ...]
"""Spans that follow each other without a space."""


def words(text: str, source: Source = "typed") -> Words:
    """A text that is of one source."""
    return (Span(clean_text(text), source),)


def text_of(said: Words) -> str:
    return "".join(span.text for span in said)


def source_at(said: Words, place: int) -> Source | Literal[""]:
    """Who said the character at a place of the whole text; "" after its end."""
    for span in said:
        if place < len(span.text):
            return span.source
        place -= len(span.text)
    return ""


def part_of(said: Words, start: int, end: int | None = None) -> Words:
    """The words between two places of the whole text."""
    found: list[Span] = []
    for span in said:
        last = len(span.text) if end is None else end
        if text := span.text[max(0, start) : max(0, last)]:
            found.append(span._replace(text=text))
        start, end = start - len(span.text), None if end is None else end - len(span.text)
    return tuple(found)


def replaced(said: Words, start: int, end: int, put: Words) -> Words:
    """The words with others in place of those between two places of the whole text."""
    return merged((*part_of(said, 0, start), *put, *part_of(said, end)))


def marked(said: Words, start: int, end: int, source: Source) -> Words:
    """The words as if this source had said what is between two places of the whole text."""
    return replaced(said, start, end, (Span(text_of(part_of(said, start, end)), source),))


def stripped(said: Words) -> Words:
    """The words without blanks around them."""
    text = text_of(said)
    start = len(text) - len(text.lstrip())
    return part_of(said, start, max(start, len(text.rstrip())))


def merged(said: Words) -> Words:
    """The same in as few spans as there are changes of the source."""
    found: list[Span] = []
    for span in said:
        if found and found[-1].source == span.source:
            found[-1] = Span(found[-1].text + span.text, span.source)
        elif span.text:
            found.append(span)
    return tuple(found)
