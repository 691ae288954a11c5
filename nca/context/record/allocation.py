"""Giving out the room of a record: what cannot be had again stays, what can be had again goes.

Every piece has a kind. Room is given in a fixed order of steps: the shortest form of each piece of the highest kind,
then its longer forms, then the next kind; but the full forms of long messages with rules come after the changed files,
and in turns with the person's other words; what the changes of files are about comes after these. What is taken is a
prefix of that order. Three laws follow: more room never loses a piece, no lower piece stays where a higher one went,
and the same pieces give the same choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import IntEnum
from heapq import merge
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

from nca.context.tokens import text_tokens


class Kind(IntEnum):
    """What a piece is, by how it can be had again: rules, words and decisions from nobody, state at the price of work,
    errors that were fixed and narrative in part, contents with one call.

    LATEST  the answer that the newest message answers: without it "yes, the second" says nothing
    FILES   which files were changed: of the state it costs least and is missed most, so it comes early, within bounds
    STEPS   what the turn in progress has done: what the model is working from, within bounds
    FAILING what still fails, and STATE how the other commands ended
    ANSWERS the newest answers, within bounds: a question without its answer is asked again; older ones are NARRATIVE
    """

    RULE = 1
    LATEST = 2
    FILES = 3
    WORDS = 4
    DECISION = 5
    STEPS = 6
    FAILING = 7
    ANSWERS = 8
    STATE = 9
    ERRORS = 10
    NARRATIVE = 11
    CONTENTS = 12


LAST_PROTECTED = Kind.ANSWERS
"""Pieces up to this kind may take a record above the target, up to the ceiling."""

RULES_SHARE = 0.9
"""Of the room where long messages with rules and other words compete: a rule's own sentence has its room already."""
BUT_FULL, FULL = slice(-1), slice(-1, None)
"""Which of a piece's longer forms: all but the last, or the last alone."""


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
    ceiling  what rules, the latest answer, changed files, words and decisions may take; at least `room` counts
    lower    what narrative and contents may take together; None: all that is left
    caps     upper bounds of single kinds; 0: none
    """
    taken: dict[tuple[Kind, int], tuple[Piece, str]] = {}
    own, closed, tokens = dict.fromkeys(Kind, 0), set[Kind](), 0
    for place, piece, form, cost in _steps(queues, closed):
        kind = piece.kind
        if lower is not None and kind >= Kind.NARRATIVE:
            room, lower = min(room, tokens + lower), None
        if caps.get(kind) and own[kind] + cost > caps[kind]:
            closed.add(kind)
            continue
        if tokens + cost > (max(room, ceiling) if kind <= LAST_PROTECTED else room):
            # Nothing lower takes the room that this one wanted.
            break
        taken[kind, place] = piece, piece.forms[form]
        own[kind] += cost
        tokens += cost
    lines = sorted(taken.values(), key=lambda line: (line[0].section, line[0].place))
    stay = Counter(piece.kind for piece, _ in lines)
    left_out: dict[Kind, int | None] = {
        kind: queue.count - stay[kind] for kind, queue in queues.items() if stay[kind] < queue.count
    }
    return Chosen(tuple(lines), tokens, left_out)


class Step(NamedTuple):
    """One more form of the piece at `place` in its queue, and what it costs above the one before, in raw tokens.

    A longer form may cost less, where the shorter one cuts words into more tokens.
    """

    place: int
    piece: Piece
    form: int
    cost: int


def _steps(queues: Mapping[Kind, Queue], closed: Set[Kind]) -> Iterator[Step]:
    """In which order room is given; it depends on nothing but the pieces. A kind that is `closed` meanwhile ends."""
    pieces = {kind: enumerate(queues[kind].pieces) if kind in queues else iter(()) for kind in Kind}
    long: dict[Kind, list[tuple[int, Piece]]] = {kind: [] for kind in Kind}

    def shortest(kind: Kind) -> Iterator[Step]:
        for place, piece in takewhile(lambda _: kind not in closed, pieces[kind]):
            if len(piece.forms) > 1:
                long[kind].append((place, piece))
            yield Step(place, piece, 0, piece.costs[0] if piece.costs else line_tokens(piece.forms[0]))

    def longer(kind: Kind, which: slice = slice(None)) -> Iterator[Step]:
        for place, piece in takewhile(lambda _: kind not in closed, long[kind]):
            costs = piece.costs or tuple(map(line_tokens, piece.forms))
            for form in range(1, len(piece.forms))[which]:
                yield Step(place, piece, form, costs[form] - costs[form - 1])

    yield from shortest(Kind.RULE)
    yield from longer(Kind.RULE, BUT_FULL)
    yield from shortest(Kind.LATEST)
    yield from shortest(Kind.FILES)
    ordered = merge(_paced(longer(Kind.RULE, FULL), RULES_SHARE), _paced(shortest(Kind.WORDS), 1 - RULES_SHARE))
    yield from (step for *_, step in ordered)
    yield from longer(Kind.LATEST)
    yield from longer(Kind.WORDS)
    yield from longer(Kind.FILES)
    for kind in [kind for kind in Kind if kind > Kind.WORDS]:
        yield from shortest(kind)
        yield from longer(kind)


def _paced(steps: Iterable[Step], share: float) -> Iterator[tuple[float, Kind, int, int, Step]]:
    """Steps with how far they have come when they are taken, and what orders two that have come equally far."""
    tokens = 0
    for step in steps:
        tokens += step.cost
        yield tokens / share, step.piece.kind, step.place, step.form, step


def from_both_ends(count: int) -> list[int]:
    """Places from the newest and the oldest inwards: 4, 0, 3, 1, 2."""
    return [step // 2 if step % 2 else count - 1 - step // 2 for step in range(count)]
