"""Giving out the room of a record: what cannot be had again stays, what can be had again goes.

Every piece has a kind. Room is given in a fixed order of steps: the short form of each piece of the highest kind, then
its full form, then the next kind. What is taken is a prefix of that order. Three laws follow: more room never loses a
piece, no lower piece stays where a higher one went, and the same pieces give the same choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Piece:
    """One line of a record.

    place   where it stands in its section; `section` orders the sections
    forms   the same piece from its shortest form to its full one; one form where it is short
    """

    kind: Kind
    section: Any
    place: int
    forms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """`lines`: the pieces that stay, each in the form that fitted; `left_out`: how many of each kind went."""

    lines: tuple[tuple[Piece, str], ...]
    tokens: int
    left_out: dict[Kind, int]

    def tokens_of(self, *kinds: Kind) -> int:
        """Raw tokens of the lines of these kinds."""
        return sum(line_tokens(text) for piece, text in self.lines if piece.kind in kinds)


def line_tokens(text: str) -> int:
    """Raw tokens of a line of a record, with its end."""
    return text_tokens(text) + 1


def allocate(
    pieces: Sequence[Piece],
    room: int,
    ceiling: int,
    *,
    lower: int | None = None,
    caps: Mapping[Kind, int] = MappingProxyType({}),
) -> Chosen:
    """Choose the pieces and their forms. Counts are raw tokens.

    pieces   of each kind in the order of their worth, the most worth first
    room     what pieces of any kind may take together
    ceiling  what rules, changed files, words and decisions may take; at least `room` counts
    lower    what narrative and contents may take together; None: all that is left
    caps     upper bounds of single kinds; 0: none
    """
    taken: dict[int, int] = {}
    tokens = 0
    for kind in Kind:
        limit = max(room, ceiling) if kind <= LAST_PROTECTED else room
        if lower is not None and kind == Kind.NARRATIVE:
            room = limit = min(room, tokens + lower)
        limit = min(limit, tokens + caps[kind]) if caps.get(kind) else limit
        own = [(index, piece) for index, piece in enumerate(pieces) if piece.kind == kind]
        for index, form, cost in _steps(own):
            if tokens + cost > limit:
                # Nothing lower takes the room that this one wanted, unless it was a bound of its own that ended it.
                room = room if caps.get(kind) else tokens
                ceiling = ceiling if caps.get(kind) else tokens
                break
            taken[index] = form
            tokens += cost
    lines = sorted(
        ((pieces[index], pieces[index].forms[form]) for index, form in taken.items()),
        key=lambda line: (line[0].section, line[0].place),
    )
    left_out: dict[Kind, int] = {}
    for index, piece in enumerate(pieces):
        if index not in taken:
            left_out[piece.kind] = left_out.get(piece.kind, 0) + 1
    return Chosen(tuple(lines), tokens, left_out)


def _steps(own: Sequence[tuple[int, Piece]]) -> list[tuple[int, int, int]]:
    """Of one kind: first each piece's shortest form, then each one's longer forms, with what each step costs."""
    first = [(index, 0, line_tokens(piece.forms[0])) for index, piece in own]
    longer = [
        (index, form, max(0, line_tokens(piece.forms[form]) - line_tokens(piece.forms[form - 1])))
        for index, piece in own
        for form in range(1, len(piece.forms))
    ]
    return first + longer


def from_both_ends(count: int) -> list[int]:
    """Places from the newest and the oldest inwards: 4, 0, 3, 1, 2."""
    return [step // 2 if step % 2 else count - 1 - step // 2 for step in range(count)]
