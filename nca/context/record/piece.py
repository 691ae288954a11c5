"""The optional contents of a view: subjects of the log, each in forms from short to long."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from nca.context.tokens import text_tokens

LINE_TOKENS = 2
"""The frame of a record's line: its dash and its line break."""
AGE_POWER = 0.5
"""How fast the room of a subject falls with its age."""
GROWTH = 3
"""The factor by which each form of a subject is longer than the one before."""
Key = tuple[object, ...]


class Section(IntEnum):
    """The sections of a record, in order."""

    WORDS = 0
    ANSWERS = 1
    TURN = 2
    EFFECTS = 3
    FAILED = 4
    CALLS = 5
    NAMES = 6


class Piece(NamedTuple):
    """One form of one subject.

    text    a line of the record, without its number; "" for messages that are shown themselves
    tokens  cost of the line, without its number
    level   about how many tokens of the subject, or of each of its messages, it shows
    """

    subject: Subject
    text: str
    tokens: int
    level: int


class Subject(NamedTuple):
    """The subject of a record's line, or messages that can be shown themselves.

    key    a longer form takes the place of a shorter one with the same key
    seq    the message that it comes from
    form   its text in about so many tokens; a longer form has all that a shorter one has
    size   tokens of its longest form
    order  its place among the subjects of one message
    own    the messages with the text that it tells: if they are shown themselves, more of them is shown instead
    shows  the messages that it shows themselves: no line has to speak of them
    number the message that its line names; 0: none, as for a line of an earlier record
    section  of its line, whatever its kind; None: the kind's section
    """

    key: Key
    seq: int
    form: Callable[[int], str]
    size: int = 0
    order: int = 0
    own: tuple[int, ...] = ()
    shows: range = range(0)
    is_from_record: bool = False
    section: Section | None = None

    @property
    def number(self) -> int:
        return 0 if self.is_from_record else self.seq

    def piece(self, level: int) -> Piece:
        text = "" if self.shows else self.form(level)
        return Piece(self, text, text_tokens(text) + LINE_TOKENS, level)


def fixed(key: Key, seq: int, text: str, order: int = 0, own: tuple[int, ...] = (), level: int = 0) -> Piece:
    """A line that has one form alone."""
    return Subject(key, seq, lambda _: text, 0, order, own).piece(level)


def by_age(
    subjects: Iterable[Subject],
    levels: Sequence[int],
    *,
    above: int = 0,
    is_each: bool = False,
) -> Iterator[Piece]:
    """Forms of many subjects, newest first, so that a newer one has more room than an older one.

    The order does not depend on the room: a form comes when its size, times a power of the age of its subject, is next.
    Subjects are read only as far as needed.

    levels   the first forms, in tokens; after the last one each is GROWTH times as long, until the whole is there
    above    a form of this many tokens of each is already there
    is_each  the shortest forms of all come before longer forms of any
    """
    coming = enumerate(subjects, 1)
    waiting: list[tuple[float, int, int, Subject]] = []

    def level_at(place: int) -> int:
        last = len(levels) - 1
        grown: int = GROWTH ** max(0, place - last)
        return levels[min(place, last)] * grown

    def admit() -> None:
        age, subject = next(coming, (0, None))
        if subject is not None:
            heapq.heappush(waiting, (0.0 if is_each else age**AGE_POWER * levels[0], age, 0, subject))

    admit()
    while waiting:
        _, age, place, subject = heapq.heappop(waiting)
        if place == 0:
            admit()
        before = level_at(place - 1) if place else above
        if before and subject.size <= before:
            continue
        yield subject.piece(level_at(place))
        heapq.heappush(waiting, (age**AGE_POWER * level_at(place + 1), age, place + 1, subject))
