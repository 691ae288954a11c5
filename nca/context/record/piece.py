"""What a view may hold beside what always stays: pieces of the log, each in forms from short to long."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from nca.context.tokens import text_tokens

LINE_TOKENS = 2
"""What frames a line of a record: its dash and its line break."""
T = TypeVar("T")


class Piece(NamedTuple):
    """One form of one piece.

    key     what it shows something of: a longer form with the same key takes the place of a shorter one
    seq     the message that it comes from
    text    a line of the record, without its number; "" for messages that are shown themselves
    tokens  what this form costs
    shows   the messages that it shows themselves: no line has to speak of them
    level   how much of each of these messages is shown, in tokens; 0: all
    order   its place among the pieces of one message
    form    gives its text in about so many tokens; None: it has this form alone
    """

    key: tuple[object, ...]
    seq: int
    text: str
    tokens: int
    shows: range = range(0)
    level: int = 0
    order: int = 0
    form: Callable[[int], str] | None = None


def line(
    key: tuple[object, ...], seq: int, text: str, order: int = 0, form: Callable[[int], str] | None = None
) -> Piece:
    """A line of a record."""
    return Piece(key, seq, text, text_tokens(text) + LINE_TOKENS, order=order, form=form)


def by_age(
    items: Iterable[T],
    levels: Sequence[int],
    form: Callable[[T, int, int], Piece | None],
    power: float,
    *,
    is_each: bool = False,
) -> Iterator[Piece]:
    """Forms of many pieces, newest first, so that a newer piece has more room than an older one.

    The order does not depend on the room: a form comes when its size, times a power of the age of its piece, is next.
    Items are read only as far as somebody asks.

    form     gives the form of an item at a level, and is told the level before (0: none); None: it has no longer one
    power    how fast the room of a piece falls with its age
    is_each  the shortest forms of all come before longer forms of any
    """
    coming = iter(items)
    waiting: list[tuple[float, int, int, T]] = []
    age = 0

    def admit() -> None:
        nonlocal age
        for item in coming:
            age += 1
            heapq.heappush(waiting, (0.0 if is_each else age**power * levels[0], age, 0, item))
            return

    admit()
    while waiting:
        _, born, level, item = heapq.heappop(waiting)
        if level == 0:
            admit()
        piece = form(item, levels[level], levels[level - 1] if level else 0)
        if piece is None:
            continue
        yield piece
        if level + 1 < len(levels):
            heapq.heappush(waiting, (born**power * levels[level + 1], born, level + 1, item))
