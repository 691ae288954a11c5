"""Give out the room: one walk over all pieces takes a prefix of them.

Each kind of piece has a lane, in which its pieces come in order, and a weight. The lane that has had least for its
weight is next. This order does not depend on the room, so a larger room has all that a smaller one has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from nca.context.named import names_of
from nca.context.record.past import Past
from nca.context.record.piece import Key, Piece, Section
from nca.context.record.steps import LEAST_WORDS_TOKENS, PART_TOKENS, cut_itself, has_text
from nca.context.tokens import content_tokens, text_tokens
from nca.context.view import Stub

NUMBER_TOKENS = 4
"""`(1234) ` before a line."""
HEADING_TOKENS = 9
WHOLE = 1 << 30
"""The level of a message that is shown as it is."""
LARGEST_STEP_RATIO = 0.04
"""Messages that cannot be cut further wait until they are no more than this share of the taken pieces. So if there is
no room for them, no more than this is left empty."""


@dataclass(slots=True)
class Limit:
    """Raw tokens that are left for some lanes, if a person has set a bound."""

    left: int


@dataclass(slots=True)
class Lane:
    """The pieces of one kind, in order.

    section  None for messages that are shown themselves
    weights  by round; 0: it waits for a later one
    limit    for it and the others that share it; None: no limit
    waits    whether its messages wait while they are large beside the taken pieces
    leads    the round that continues until this lane is exhausted
    """

    section: Section | None
    weights: Sequence[float]
    pieces: Iterator[Piece]
    limit: Limit | None = None
    waits: bool = False
    leads: int | None = None
    head: Piece | None = None
    price: int = 0
    """The cost of its next piece."""
    spent: float = 0.0
    due: float = 0.0
    """Its total by weight once its next piece is taken: the least is next."""
    _weight: float = 0.0
    _is_open: bool = False

    def begin(self, number: int, taken: Taken) -> None:
        """Take part in a round."""
        self.spent, self._weight = 0.0, self.weights[number]
        if not self._is_open:
            self.head, self._is_open = next(self.pieces, None), True
        self._look(taken)

    def move_on(self, tokens: int, taken: Taken) -> None:
        """To the next piece, now that one has taken so many tokens."""
        self.spent += tokens / self._weight
        if self.limit is not None:
            self.limit.left -= tokens
        self.head = next(self.pieces, None)
        self._look(taken)

    def _look(self, taken: Taken) -> None:
        if self.limit is not None and self.limit.left <= 0:
            self.head = None
        if self.head is not None:
            self.price = max(0, taken.cost(self.section, self.head))
            self.due = self.spent + self.price / self._weight

    @property
    def is_exhausted(self) -> bool:
        return self.head is None

    @property
    def has_more(self) -> bool:
        """Whether it has pieces without room, or beyond its limit, as far as is known without reading on."""
        return self.head is not None or (self.limit is not None and self.limit.left <= 0)

    def is_waiting(self, taken: Taken) -> bool:
        """Whether its next piece waits until it is small beside the taken pieces."""
        if not self.waits or self.head is None or self.price <= LARGEST_STEP_RATIO * taken.used:
            return False
        return any(seq not in taken.levels for seq in self.head.subject.shows)


class _Change(NamedTuple):
    """The change from taking a piece: messages by their new level, and lines that are then superfluous."""

    tokens: int
    levels: dict[int, int]
    gone: list[Key]


@dataclass(slots=True)
class Taken:
    """The taken pieces so far. `left` is the rest of the room, in raw tokens.

    levels  how many tokens of each message that is shown itself are shown
    lines   the lines of the record, by key
    """

    past: Past
    left: int
    levels: dict[int, int] = field(default_factory=dict)
    lines: dict[Key, tuple[Section, Piece]] = field(default_factory=dict)
    has_left_out: bool = False
    lacks_words: bool = False
    """Some messages of the person have no room, in whatever form."""
    used: int = 0
    _keys_of: dict[int, list[Key]] = field(default_factory=lambda: defaultdict(list))
    """The lines that come from a message, or tell its text."""
    _headed: set[Section] = field(default_factory=set)
    _stubs: dict[tuple[int, int], Stub | None] = field(default_factory=dict)
    _last: frozenset[int] = frozenset()
    """Messages with no room after them."""

    def cost(self, section: Section | None, piece: Piece) -> int:
        return self._change(section, piece).tokens

    def take(self, section: Section | None, piece: Piece) -> int | None:
        """Take a piece, and return its cost; None if there is no room for it."""
        change = self._change(section, piece)
        if change.tokens > self.left:
            return None
        self.left -= change.tokens
        self.used += change.tokens
        for key in change.gone:
            del self.lines[key]
        for seq, level in change.levels.items():
            self.levels[seq] = level
            self._show(seq, level)
        if section is not None and not change.levels and change.tokens:
            self._write(section, piece)
        return change.tokens

    def with_part(self, section: Section | None, piece: Piece) -> Taken:
        """This with as much of a piece as there is room for. Nothing comes after it, so it may be short."""
        past = copy(self.past)
        past.readable = {*past.readable}
        with_it = replace(
            self,
            past=past,
            has_left_out=True,
            levels={**self.levels},
            lines={**self.lines},
            _headed={*self._headed},
            _keys_of=defaultdict(list, {seq: [*keys] for seq, keys in self._keys_of.items()}),
        )
        with_it._take_part(section, piece)
        return with_it

    def _take_part(self, section: Section | None, piece: Piece) -> None:
        self._last = frozenset(seq for seq in piece.subject.shows if not has_text(self.past, seq, self.levels.get(seq)))
        low, high = 0, max(piece.level, LEAST_WORDS_TOKENS if self._last else 0)
        while high - low > PART_TOKENS:
            middle = (low + high) // 2
            fits = self.cost(section, piece.subject.piece(middle)) <= self.left
            low, high = (middle, high) if fits else (low, middle)
        if low:
            self.take(section, piece.subject.piece(low))

    def stub(self, seq: int, level: int) -> Stub | None:
        """The shown text of a message at a level; None: all of it."""
        if level >= WHOLE:
            return None
        if seq in self._last:
            return cut_itself(self.past, seq, level, is_last=True)
        if (seq, level) not in self._stubs:
            self._stubs[seq, level] = cut_itself(self.past, seq, level)
        return self._stubs[seq, level]

    def _change(self, section: Section | None, piece: Piece) -> _Change:
        subject = piece.subject
        section = section if subject.section is None else subject.section
        if section is None:
            return self._showing(subject.shows, piece.level)
        if subject.seq in self.levels:
            return self._showing([seq for seq in subject.own if seq in self.levels], piece.level)
        if subject.key not in self.lines:
            heading = 0 if section in self._headed else HEADING_TOKENS
            return _Change(piece.tokens + self._number_tokens(piece) + heading, {}, [])
        shorter = self.lines[subject.key][1]
        return _Change(max(1, piece.tokens - shorter.tokens) if piece.level > shorter.level else 0, {}, [])

    def _showing(self, seqs: Sequence[int], level: int) -> _Change:
        """Messages with all of their text that lines tell."""
        more, levels, gone = 0, dict[int, int](), list[Key]()
        for seq in seqs:
            lines = [self.lines[key][1] for key in self._keys_of.get(seq, ()) if key in self.lines]
            line_levels = [line.level for line in lines if seq in line.subject.own]
            now = max(level, self.levels.get(seq, 0), *line_levels)
            if self.levels.get(seq) == now:
                continue
            levels[seq] = now
            more += self._raw(seq, now) - (self._raw(seq, self.levels[seq]) if seq in self.levels else 0)
            leaving = [line for line in lines if line.subject.seq == seq]
            more -= sum(line.tokens + self._number_tokens(line) for line in leaving)
            gone += [line.subject.key for line in leaving]
        return _Change(more, levels, gone)

    def _show(self, seq: int, level: int) -> None:
        stub, message = self.stub(seq, level), self.past.history.message(seq)
        self.past.readable |= self.past.history.named.of(message) if stub is None else names_of(stub.text)

    def _write(self, section: Section, piece: Piece) -> None:
        subject = piece.subject
        section = section if subject.section is None else subject.section
        self._headed.add(section)
        if subject.key not in self.lines:
            for seq in {subject.seq, *subject.own}:
                self._keys_of[seq].append(subject.key)
        self.lines[subject.key] = section, piece
        if section is not Section.NAMES:
            self.past.readable |= names_of(piece.text)

    def _raw(self, seq: int, level: int) -> int:
        size, stub = self.past.history.run_tokens(seq, seq), self.stub(seq, level)
        content = self.past.history.message(seq).content
        return size if stub is None else size - content_tokens(content) + text_tokens(stub.text)

    def _number_tokens(self, piece: Piece) -> int:
        return NUMBER_TOKENS if self.past.numbered and piece.subject.number else 0


class Walk:
    """A walk over all pieces. With more room it goes on where it ended: their order does not depend on the room."""

    def __init__(self, taken: Taken, lanes: Sequence[Lane]) -> None:
        self._taken, self._without_room = taken, _steps(taken, lanes)
        self._words = [lane for lane in lanes if lane.section is Section.WORDS and lane.leads == 0]

    def on(self, more: int = 0) -> Taken:
        """What has room, with so much more of it."""
        self._taken.left += more
        lane = next(self._without_room, None)
        self._taken.lacks_words = any(one.has_more for one in self._words)
        if lane is None or lane.head is None:
            return self._taken
        return self._taken.with_part(lane.section, lane.head)


def _steps(taken: Taken, lanes: Sequence[Lane]) -> Iterator[Lane]:
    """Take pieces until nothing is left. Yields the lane whose next piece has no room, and goes on when it has.

    A round ends with the lanes that lead it, whatever is left in others; one that nobody leads, with all.
    """
    for number in range(len(lanes[0].weights)):
        coming = [lane for lane in lanes if lane.weights[number]]
        leading = [lane for lane in coming if lane.leads == number]
        for lane in coming:
            lane.begin(number, taken)
        coming = [lane for lane in coming if not lane.is_exhausted]
        while coming and not (leading and all(lane.is_exhausted for lane in leading)):
            lane = min(coming, key=lambda one: (one.is_waiting(taken), one.due))
            assert lane.head is not None
            while (tokens := taken.take(lane.section, lane.head)) is None:
                yield lane
            lane.move_on(tokens, taken)
            if lane.is_exhausted:
                coming.remove(lane)
