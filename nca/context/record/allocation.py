"""Giving out the room of a record: what cannot be had again stays, what can be had again goes.

Every piece has a kind. Room is given in a fixed order of steps: the short form of each piece of the highest kind, then
its full form, then the next kind. What is taken is a prefix of that order. Three laws follow: more room never loses a
piece, no lower piece stays where a higher one went, and the same pieces give the same choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from nca.context.tokens import text_tokens


class Kind(IntEnum):
    """What a piece is, by how it can be had again: rules, words and decisions from nobody, state at the price of work,
    errors that were fixed and narrative in part, contents with one call.

    FILES  which files were changed: of the state it costs least and is missed most, so it comes early, within bounds
    """

    RULE = 1
    FILES = 2
    WORDS = 3
    DECISION = 4
    STATE = 5
    ERRORS = 6
    NARRATIVE = 7
    CONTENTS = 8


LAST_PROTECTED = Kind.DECISION
"""Pieces up to this kind may take a record above the target, up to the ceiling."""


class Piece(NamedTuple):
    """One line of a record.

    place   where it stands in its section; `section` orders the sections
    forms   the same piece from its shortest form to its full one; one form where it is short
    """

    kind: Kind
    section: Any
    place: int
    forms: tuple[str, ...]
    costs: tuple[int, ...] = ()
    """Raw tokens of each form, where they are known."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The `count` pieces of one kind, the most worth first. They are made one by one: there is room for few of many."""

    count: int = 0
    pieces: Iterable[Piece] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """`lines`: the pieces that stay, each in the form that fitted; `left_out`: how many of each kind went.

    A kind that nobody looked for, as there was no room for it, is left out with None.
    """

    lines: tuple[tuple[Piece, str], ...]
    tokens: int
    left_out: dict[Kind, int | None]

    def tokens_of(self, *kinds: Kind) -> int:
        """Raw tokens of the lines of these kinds."""
        return sum(line_tokens(text) for piece, text in self.lines if piece.kind in kinds)


def line_tokens(text: str) -> int:
    """Raw tokens of a line of a record, with its end."""
    return text_tokens(text) + 1


def allocate(
    queues: Mapping[Kind, Queue],
    room: int,
    ceiling: int,
    *,
    lower: int | None = None,
    caps: Mapping[Kind, int] = MappingProxyType({}),
) -> Chosen:
    """Choose the pieces and their forms. Counts are raw tokens.

    room     what pieces of any kind may take together
    ceiling  what rules, changed files, words and decisions may take; at least `room` counts
    lower    what narrative and contents may take together; None: all that is left
    caps     upper bounds of single kinds; 0: none
    """
    lines: list[tuple[Piece, str]] = []
    left_out: dict[Kind, int | None] = {}
    tokens = 0
    for kind in Kind:
        limit = max(room, ceiling) if kind <= LAST_PROTECTED else room
        if lower is not None and kind == Kind.NARRATIVE:
            room = limit = min(room, tokens + lower)
        limit = min(limit, tokens + caps[kind]) if caps.get(kind) else limit
        queue, taken = queues.get(kind, Queue()), dict[int, tuple[Piece, str]]()
        for place, piece, form, cost in _steps(queue.pieces):
            if tokens + cost > limit:
                # Nothing lower takes the room that this one wanted, unless it was a bound of its own that ended it.
                room = room if caps.get(kind) else tokens
                ceiling = ceiling if caps.get(kind) else tokens
                break
            taken[place] = piece, piece.forms[form]
            tokens += cost
        lines += taken.values()
        if len(taken) < queue.count:
            left_out[kind] = queue.count - len(taken)
    lines.sort(key=lambda line: (line[0].section, line[0].place))
    return Chosen(tuple(lines), tokens, left_out)


def _steps(pieces: Iterable[Piece]) -> Iterator[tuple[int, Piece, int, int]]:
    """First each piece's shortest form, then each one's longer forms, with what each step costs."""
    longer: list[tuple[int, Piece]] = []
    for place, piece in enumerate(pieces):
        if len(piece.forms) > 1:
            longer.append((place, piece))
        yield place, piece, 0, piece.costs[0] if piece.costs else line_tokens(piece.forms[0])
    for place, piece in longer:
        costs = piece.costs or tuple(map(line_tokens, piece.forms))
        for form in range(1, len(piece.forms)):
            yield place, piece, form, max(0, costs[form] - costs[form - 1])


def from_both_ends(count: int) -> list[int]:
    """Places from the newest and the oldest inwards: 4, 0, 3, 1, 2."""
    return [step // 2 if step % 2 else count - 1 - step // 2 for step in range(count)]
