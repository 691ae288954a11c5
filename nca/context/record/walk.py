"""Give out the room: one walk over all pieces, of which a prefix is taken.

Each kind of piece has a lane, in which its pieces come in order, and a weight. The lane that has had least for its
weight is next. Nothing in this order depends on the room, so a larger room has all that a smaller one has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nca.context.history import History
from nca.context.named import names_of
from nca.context.record.piece import Piece, line
from nca.context.record.steps import shown_raw
from nca.context.record.text import Section
from nca.context.tokens import text_tokens

NUMBER_TOKENS = 4
"""`(1234) ` before a line."""
HEADING_TOKENS = 9
OWN_TEXT = ("said", "answer", "remark")
"""Lines that are a message's own text: where the message is shown itself, more of it is shown instead."""
PART_TOKENS = 64
"""A message that is shown itself has all of its text that a line had, whatever part of it the line ended before."""
PART_SHARES = (0.95, 0.8, 0.5)
LED_ROUNDS = 2
SMALLEST_PART_TOKENS = 24
"""Room that is smaller than this is not worth a part of anything."""

Key = tuple[object, ...]


@dataclass(slots=True)
class Limit:
    """Raw tokens that are left for some lanes, where a person has set a bound."""

    left: int


@dataclass(slots=True)
class Lane:
    """The pieces of one kind, in order.

    section  None for messages that are shown themselves
    weights  by round; 0: it waits for a later one
    limit    what it may take together with others that share it; None: no limit
    """

    section: Section | None
    weights: Sequence[float]
    pieces: Iterator[Piece]
    limit: Limit | None = None
    head: Piece | None = None
    spent: float = 0.0
    due: float = 0.0
    """What it has had for its weight once its next piece is taken: the least is next."""
    _is_open: bool = False

    def begin(self, weight: float, taken: Taken) -> None:
        """Take part in a round."""
        self.spent = 0.0
        if not self._is_open:
            self._is_open = True
            self.head = next(self.pieces, None)
        self._price(weight, taken)

    def move_on(self, tokens: int, weight: float, taken: Taken) -> None:
        """The next piece, now that one has taken so many tokens."""
        self.spent += tokens / weight
        if self.limit is not None:
            self.limit.left -= tokens
        self.head = next(self.pieces, None)
        self._price(weight, taken)

    def _price(self, weight: float, taken: Taken) -> None:
        if self.limit is not None and self.limit.left <= 0:
            self.head = None
        if self.head is not None:
            self.due = self.spent + max(0, taken.cost(self.section, self.head)) / weight


class _Change(NamedTuple):
    """What showing messages would cost: their levels, and the lines that are not needed any more."""

    tokens: int
    levels: dict[int, int]
    gone: list[Key]


@dataclass(slots=True)
class Taken:
    """What has room so far. `left` is what is left of it, in raw tokens.

    levels  how many tokens of each message that is shown itself are shown
    lines   the lines of the record, by key
    """

    history: History
    left: int
    numbered: bool
    levels: dict[int, int] = field(default_factory=dict)
    lines: dict[Key, tuple[Section, Piece]] = field(default_factory=dict)
    has_left_out: bool = False
    _keys_of: dict[int, list[Key]] = field(default_factory=lambda: defaultdict(list))
    _headed: set[Section] = field(default_factory=set)
    _named: set[str] = field(default_factory=set)
    """Names that can be read already."""
    _whole: set[int] = field(default_factory=set)

    def cost(self, section: Section | None, piece: Piece) -> int:
        """What taking it needs; 0 where it is shown already."""
        if section is None:
            return self._change(piece.shows, piece.level).tokens
        if section is Section.NAMES and piece.text in self._named:
            return 0
        if section is not Section.NAMES and piece.seq in self.levels:
            return self._change((piece.seq,), piece.tokens + PART_TOKENS).tokens if piece.key[0] in OWN_TEXT else 0
        before = self.lines.get(piece.key)
        if before is not None:
            return max(0, piece.tokens - before[1].tokens)
        return self._line_tokens(section, piece) + (0 if section in self._headed else HEADING_TOKENS)

    def take(self, section: Section | None, piece: Piece) -> int | None:
        """What it took; None where there is no room for it."""
        tokens = self.cost(section, piece)
        if tokens > self.left:
            return None
        self.left -= tokens
        if section is None:
            self._show(self._change(piece.shows, piece.level))
        elif section is not Section.NAMES and piece.seq in self.levels:
            if piece.key[0] in OWN_TEXT:
                self._show(self._change((piece.seq,), piece.tokens + PART_TOKENS))
        elif tokens:
            self._write(section, piece)
        return tokens

    def fill(self, section: Section | None, piece: Piece) -> None:
        """Use what is left, when a piece has no room: for a part of it, then for more of what is there.

        Nothing new is begun: it would be lost where that piece has room.
        """
        if section is None:
            low, high = 0, piece.level
            while high - low > 8:
                middle = (low + high) // 2
                fits = self.cost(None, piece._replace(level=middle)) <= self.left
                low, high = (middle, high) if fits else (low, middle)
            if low:
                self.take(None, piece._replace(level=low))
        else:
            self._lengthen(section, piece)
        for seq in sorted(self.levels, reverse=True):
            size, shown = self.history.run_tokens(seq, seq), self._shown_raw(seq, self.levels[seq])
            if shown < size and self.left >= SMALLEST_PART_TOKENS:
                level = self.levels[seq] + min(self.left, size - shown)
                self.take(None, Piece((), seq, "", 0, range(seq, seq + 1), level))
        for section_of, held in sorted(self.lines.values(), key=lambda row: -row[1].seq):
            self._lengthen(section_of, held)

    def _lengthen(self, section: Section, piece: Piece) -> None:
        """As much of a line as there is room for."""
        held = self.lines[piece.key][1].tokens if piece.key in self.lines else 0
        room = self.left + held - NUMBER_TOKENS - HEADING_TOKENS
        if piece.form is None or piece.seq in self.levels or room < held + SMALLEST_PART_TOKENS:
            return
        for share in PART_SHARES:
            text = piece.form(int(share * room))
            if text_tokens(text) <= room:
                self.take(section, line(piece.key, piece.seq, text, piece.order, piece.form))
                return

    def _change(self, seqs: Sequence[int], level: int) -> _Change:
        more = 0
        levels: dict[int, int] = {}
        gone: list[Key] = []
        for seq in seqs:
            if seq in self.levels:
                levels[seq] = max(level, self.levels[seq])
                more += self._shown_raw(seq, levels[seq]) - self._shown_raw(seq, self.levels[seq])
                continue
            keys = [key for key in self._keys_of.get(seq, ()) if key in self.lines]
            told = (self.lines[key][1].tokens + PART_TOKENS for key in keys if key[0] in OWN_TEXT)
            levels[seq] = max(level, max(told, default=0))
            more += self._shown_raw(seq, levels[seq]) - sum(self._line_tokens(*self.lines[key]) for key in keys)
            gone += keys
        return _Change(more, levels, gone)

    def _show(self, change: _Change) -> None:
        for key in change.gone:
            del self.lines[key]
        for seq, level in change.levels.items():
            size = self.history.run_tokens(seq, seq)
            if seq not in self._whole and self._shown_raw(seq, level) >= size:
                self._whole.add(seq)
                self._named |= self.history.named.of(self.history.message(seq))
        self.levels.update(change.levels)

    def _write(self, section: Section, piece: Piece) -> None:
        is_new = piece.key not in self.lines
        self._headed.add(section)
        self.lines[piece.key] = section, piece
        if section is not Section.NAMES:
            self._named |= names_of(piece.text)
            if is_new:
                self._keys_of[piece.seq].append(piece.key)

    def _shown_raw(self, seq: int, level: int) -> int:
        return shown_raw(self.history.message(seq), self.history.run_tokens(seq, seq), level)

    def _line_tokens(self, section: Section, piece: Piece) -> int:
        return piece.tokens + (NUMBER_TOKENS if self.numbered and section is not Section.NAMES else 0)


def walk(taken: Taken, lanes: Sequence[Lane]) -> Taken:
    """Take pieces until the room is full or nothing is left.

    The first two rounds end with the lane of their own place, whatever is left in others.
    """
    for number in range(len(lanes[0].weights)):
        for lane in lanes:
            if lane.weights[number]:
                lane.begin(lane.weights[number], taken)
        coming = [lane for lane in lanes if lane.weights[number] and lane.head is not None]
        while coming and (number >= LED_ROUNDS or lanes[number].head is not None):
            coming = [lane for lane in coming if lane.limit is None or lane.limit.left > 0]
            if not coming:
                break
            lane = min(coming, key=lambda one: one.due)
            piece = lane.head
            tokens = taken.take(lane.section, piece) if piece is not None else 0
            if tokens is None and piece is not None:
                taken.has_left_out = True
                taken.fill(lane.section, piece)
                return taken
            lane.move_on(tokens or 0, lane.weights[number], taken)
            if lane.head is None:
                coming.remove(lane)
    return taken
