"""The view as a function of the log: the pieces that have room, and the view that shows them.

No earlier compaction has any part in it, except for a model's prose, which cannot be computed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise, takewhile
from typing import Literal, cast

import msgspec

from nca.config.schema import SummarizeSettings
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.named import names_of
from nca.context.record.excerpt import GAP
from nca.context.record.past import Past, is_answer, is_record
from nca.context.record.piece import Piece, Section
from nca.context.record.said import TYPED
from nca.context.record.steps import LEAST_WORDS_TOKENS, LEVELS, older, shown, steps_back
from nca.context.record.table import CLOSING, KINDS, NEWEST, STEPS
from nca.context.record.text import laid_out, preface, sections_text
from nca.context.record.walk import WHOLE, Lane, Limit, Taken, Walk
from nca.context.summary import cut_text, without_named, without_pending
from nca.context.tokens import text_tokens
from nca.context.view import (
    Item,
    Marker,
    Range,
    Stub,
    Summary,
    Verbatim,
    View,
    is_in,
    merge_ranges,
    ordered,
    seqs,
    without_ranges,
)

PROSE_PART = 3
"""Prose of other programs takes at most a third of the room."""
PREFACE_PART = 6
"""The note on how to read a record takes at most a sixth of the room beside the heading; in a smaller one the lines
have its place. They never have less in a larger room."""
FILL_ROUNDS = 8
NEARLY = 0.008
"""A view is not made again for room that is no more than this share of all."""
SLACK_TOKENS = 24
"""Tokens that joining lines, and repairs between messages, may add."""


@dataclass(frozen=True, slots=True)
class Prose:
    """A model's text about the conversation, and the messages that it named as ones to keep."""

    text: str = ""
    made_by: str = "extract"
    important: frozenset[int] = frozenset()
    is_merged: bool = False
    """It includes the prose of the records among the messages."""
    of: tuple[Range, ...] = ()
    """The messages that it speaks of."""

    def until(self, ranges: Sequence[Range]) -> int:
        """The message up to which it covers all of these, if it does not cover all; else 0."""
        missing = without_ranges(ranges, self.of) if self.of else ()
        return missing[0][0] - 1 if missing else 0


@dataclass(slots=True)
class _Begun:
    """A walk with this prose, as far as it has come: with so much room, of which so much was for lines and messages."""

    past: Past
    text: str
    left: int
    room: int
    walk: Walk

    def goes_on(self, text: str, left: int, room: int) -> bool:
        """Whether a walk in this room begins with the same pieces."""
        return text == self.text and left >= self.left and room - left == self.room - self.left


@dataclass(frozen=True, slots=True)
class Composer:
    """Makes views and records of one log.

    kept        messages that stay as they are, with all that must stay beside them
    unseen      the step whose results the model has not seen: it stays, with as much of them as there is room for
    listed      the step with the todo list: it stays, with what else it brought in as in any older step
    gone        messages that are no longer part of the conversation: somebody has cleared them
    numbered    the record's reader can look up a message by its number
    changed     files that the record of files knows to have changed
    """

    history: History
    settings: SummarizeSettings
    kept: tuple[Range, ...] = ()
    unseen: tuple[Range, ...] = ()
    listed: tuple[Range, ...] = ()
    gone: tuple[Marker, ...] = ()
    numbered: bool = True
    changed: Sequence[tuple[int, str, str]] = ()
    stubs: tuple[Stub, ...] = ()
    """Messages that a person shortened."""
    most_messages: int = 0
    """So many messages are shown as they are at most; 0: no limit."""
    first_shown: int = 1
    """Older messages are not shown as they are."""
    steps_ratio: float = 1.0
    """The largest share of the room for messages that need not stay as they are."""
    _begun: dict[Prose, _Begun] = field(default_factory=dict, init=False, repr=False, compare=False)

    def view(self, room: int, prose: Prose) -> tuple[View, int | None]:
        """The view with a record and newest messages of at most `room` raw tokens together.

        Beside it: the rest of the room if something was left out; None if nothing was.
        """
        taken, kept, text = self._fill(room, prose)
        itself = merge_ranges([*kept, *((seq, seq) for seq in taken.levels)])
        return self._view(taken, itself, text, prose, room), taken.left if taken.has_left_out else None

    def has_words(self, room: int, prose: Prose) -> bool:
        """Whether that view has each message of the person, if in short."""
        return not self._fill(room, prose)[0].lacks_words

    def _fill(self, room: int, prose: Prose) -> tuple[Taken, tuple[Range, ...], str]:
        """What has room, the messages that stay whatever the room, and the prose."""
        begun = self._begun.get(prose)
        past = begun.past if begun is not None else self._past(prose)
        text = self._prose(past, prose, room)
        left = self._beside_frame(text, room)
        if left < 0:
            text, left = "", self._beside_frame("", room)
        if begun is None or not begun.goes_on(text, left, room) or self.steps_ratio < 1:
            begun = self._begun[prose] = _Begun(past, text, left, room, self._walk(past, left, room))
        taken = begun.walk.on(left - begun.left)
        begun.left, begun.room = left, room
        return taken, merge_ranges([*self.kept, *self.unseen]), text

    def _walk(self, past: Past, left: int, room: int) -> Walk:
        """A walk over all pieces that has taken nothing but what stays whatever the room."""
        past.readable = set()
        taken = Taken(past, left, used=room - left)
        for seq in seqs(self.kept):
            taken.levels[seq] = WHOLE
            past.readable |= self._names(seq)
        own: dict[str, Iterator[Piece]] = {}
        # The calls of these steps stay whatever they cost: a request without the newest would not be valid.
        staying = [shown(past, range(first, last + 1)) for first, last in (*self.listed, *self.unseen)]
        for step in staying:
            taken.left -= taken.cost(None, step.piece(0))
            taken.levels.update(dict.fromkeys(step.shows, 0))
        if self.unseen:
            own[NEWEST] = map(staying[-1].piece, LEVELS)
        elif self._ends_with_answer(past):
            answer = shown(past, range(self.history.head, self.history.head + 1))
            own[CLOSING], own[NEWEST] = iter([answer.piece(LEAST_WORDS_TOKENS)]), map(answer.piece, LEVELS)
        kept = merge_ranges([*self.kept, *self.unseen])
        # An earlier record that came with the messages is read, not shown.
        steps = (step for step in steps_back(self.history, past.spans) if not is_in(step[0], kept))
        said = takewhile(lambda step: not is_record(self.history.message(step[0])), self._newest(steps))
        limit = Limit(int(self.steps_ratio * room)) if self.steps_ratio < 1 else None
        return Walk(taken, self._lanes(past, {**own, STEPS: older(past, said)}, limit))

    def _names(self, seq: int) -> frozenset[str]:
        """The names that can be read in a message which stays."""
        stub = next((stub for stub in self.stubs if stub.seq == seq), None)
        return self.history.named.of(self.history.message(seq)) if stub is None else names_of(stub.text)

    def record(self, spans: Sequence[Range], room: int, prose: Prose) -> str:
        """The record of these messages alone, in at most `room` raw tokens."""
        taken, text = self._filled(spans, room, prose)
        return self._text(taken, text, prose.until(spans), room)

    def tells_words(self, spans: Sequence[Range], room: int, prose: Prose) -> bool:
        """Whether that record has each message of the person, if in short."""
        return not self._filled(spans, room, prose)[0].lacks_words

    def _filled(self, spans: Sequence[Range], room: int, prose: Prose) -> tuple[Taken, str]:
        past = self._past(prose, spans)
        text = self._prose(past, prose, room)
        return Walk(Taken(past, self._beside_frame(text, room)), self._lanes(past, {})).on(), text

    def plain(self, spans: Sequence[Range], room: int) -> str:
        """The lines of these messages without a frame, for a reader without this log."""
        past = replace(self, numbered=False)._past(Prose(), spans)
        taken = Walk(Taken(past, room), self._lanes(past, {})).on()
        return sections_text(taken.lines.values(), numbered=False)

    def summary(self, ranges: tuple[Range, ...], text: str, prose: Prose) -> Summary:
        """A record as an item of a view; its id follows from its messages and text."""
        digest = blake2b(f"{ranges}{text}".encode("utf-8", "replace"), digest_size=4).hexdigest()
        role = cast('Literal["user", "system"]', self.settings.role)
        of = prose.of if prose.text and without_ranges(ranges, prose.of) else ()
        return Summary(digest, ranges, text, prose.text, made_by=prose.made_by, role=role, prose_of=of)

    def _ends_with_answer(self, past: Past) -> bool:
        """Whether an answer ends the log that is not kept anyway.

        The newest message of the person stays. Without its answer after it, it would look like one to be answered.
        """
        head = self.history.head
        is_one = is_in(head, past.spans) and is_answer(self.history.message(head))
        return is_one and head > (self.history.newest_user or head) and not is_in(head, self.kept)

    def _newest(self, steps: Iterator[range]) -> Iterator[range]:
        """Those that may be shown unchanged: not the first of all, so that the record covers something."""
        count = sum(self.history.message(seq).role != "system" for seq in seqs([*self.kept, *self.unseen]))
        for step, _ in pairwise(steps):
            count += len(step)
            if step[0] < self.first_shown or (self.most_messages and count > self.most_messages):
                return
            yield step

    def _past(self, prose: Prose, spans: Sequence[Range] | None = None) -> Past:
        head, aside = self.history.head, self.history.view.aside
        whole = without_ranges(
            [(1, head)] if spans is None else spans, [*aside, *(span for marker in self.gone for span in marker.ranges)]
        )
        return Past(self.history, whole, self.numbered, self.changed, prose.important)

    def _lanes(self, past: Past, steps: dict[str, Iterator[Piece]], of_steps: Limit | None = None) -> list[Lane]:
        of_words, state = self.settings.user_turns_tokens, self.settings.ledger_tokens
        limits: dict[Section | None, Limit | None] = {Section.WORDS: Limit(of_words) if of_words else None}
        done = (Section.EFFECTS, Section.FAILED, Section.TURN, Section.CALLS)
        limits |= dict.fromkeys(done, Limit(state) if state else None)
        lanes = []
        for kind in KINDS:
            pieces = kind.pieces(past) if kind.pieces is not None else steps.get(kind.name)
            if pieces is not None:
                limit = of_steps if kind.name == STEPS else limits.get(kind.section)
                waits = kind.name == STEPS
                lanes.append(Lane(kind.section, kind.weights, pieces, limit, waits=waits, leads=kind.leads))
        return lanes

    def _prose(self, past: Past, prose: Prose, room: int) -> str:
        """A model's text, and the prose of other programs' records among the messages."""
        records, said = past.records[0], without_named(prose.text)
        if prose.is_merged or not records:
            return said
        return cut_text("\n\n".join(filter(None, [*records, said])), max(0, room // PROSE_PART))

    def _beside_frame(self, prose: str, room: int) -> int:
        """Raw tokens of a room for the lines of a record."""
        rest, note = self._rest_and_note(prose, room)
        return (rest - note if rest >= PREFACE_PART * note else min(rest, (PREFACE_PART - 1) * note)) - text_tokens(
            prose
        )

    def _rest_and_note(self, prose: str, room: int) -> tuple[int, int]:
        """Raw tokens of a room beside the heading, and those of the longest note on how to read a record."""
        head, header = self.history.head, self.settings.header
        until = head if prose else 0
        note = preface(has_gaps=True, answered=head, waits=head, prose_until=until, numbered=self.numbered)
        of_header = text_tokens(header)
        return room - of_header - SLACK_TOKENS, text_tokens(f"{header}\n{note}") - of_header

    def _text(self, taken: Taken, prose: str, prose_until: int, room: int, *, is_behind: bool = False) -> str:
        start, head = "", self.history.head
        prose = without_pending(prose) if prose_until else prose
        rest, note = self._rest_and_note(prose, room)
        if (taken.lines or prose) and rest >= PREFACE_PART * note:
            until = prose_until if prose else 0
            start = preface(
                has_gaps=taken.lacks_words or taken.past.has_gaps or any(map(_is_cut, taken.lines.values())),
                answered=self.history.last_answer,
                waits=taken.past.newest_user if is_behind and not is_answer(self.history.message(head)) else 0,
                prose_until=until,
                numbered=self.numbered,
            )
        return laid_out(self.settings.header, start, prose, taken.lines.values(), numbered=self.numbered)

    def _view(self, taken: Taken, shown: tuple[Range, ...], text: str, prose: Prose, room: int) -> View:
        hidden = without_ranges(taken.past.spans, shown)
        stubs = {stub.seq: stub for stub in self.stubs}
        stubs |= {seq: stub for seq, level in taken.levels.items() if (stub := taken.stub(seq, level)) is not None}
        items: list[Item] = []
        # What was done for the newest message stands behind it. In front of it, the message would look unanswered.
        is_behind = is_in(self.history.head, hidden)
        if hidden:
            # Behind the system prompt alone a conversation would have to begin with a message of nobody's.
            is_begun = any(self.history.message(seq).role == "user" for seq in taken.levels)
            made = self.summary(hidden, self._text(taken, text, prose.until(hidden), room, is_behind=is_behind), prose)
            items.append(made if is_begun else msgspec.structs.replace(made, role="user"))
        items += self.gone
        whole = without_ranges(shown, [(seq, seq) for seq in stubs])
        items += [Verbatim(*run) for run in whole] + [stub for seq, stub in stubs.items() if is_in(seq, shown)]
        view = ordered(items, self.history.head, self.history.view.aside)
        if not is_behind:
            return view
        behind = sorted(view.items, key=lambda item: isinstance(item, Summary))
        return msgspec.structs.replace(view, items=tuple(behind))


def _is_cut(line: tuple[Section, Piece]) -> bool:
    """Whether a line is a part of what the person typed."""
    section, piece = line
    return section is Section.WORDS and piece.subject.key[0] == TYPED and GAP in piece.text


def room_for(composer: Composer, meter: Meter, target: int) -> int:
    """Raw tokens below the target beside the parts that stay."""
    history = composer.history
    fixed = meter.fixed_raw + sum(history.run_tokens(first, last) for first, last in composer.kept)
    for stub in composer.stubs:
        if is_in(stub.seq, composer.kept):
            fixed -= history.run_tokens(stub.seq, stub.seq) - history.item_tokens(stub)
    return max(0, meter.raw_for(target) - fixed)


def filled(composer: Composer, meter: Meter, target: int, prose: Prose) -> View:
    """The view that fills the target, by exact counts: joined parts count a little more or less than alone."""
    room, history = room_for(composer, meter, target), composer.history
    best: View | None = None
    best_tokens, misses, fitting, missing = 0, 0, 0, room
    for _ in range(FILL_ROUNDS):
        view, left = composer.view(room, prose)
        meter.look(history, view)
        tokens = meter.total(meter.raw_with(history, view))
        fits = tokens <= target
        if best is None or (fits and not best_tokens <= target) or (fits and tokens > best_tokens):
            best, best_tokens = view, tokens
        # The excess of the parts' counts.
        error = meter.raw_for(target) - meter.raw_for(tokens) - max(0, left or 0)
        if (fits and (left is None or error <= NEARLY * room)) or (room <= 0 and error <= 0):
            break
        # With another room other pieces are taken, which may be counted too low again: each miss leaves more beside.
        misses += not fits
        fitting, missing = (room, missing) if fits else (fitting, room)
        wanted = room + (int(0.9 * error) if fits else misses * error - 8)
        room = wanted if not misses or fitting < wanted < missing else (fitting + missing) // 2
        if misses and room == fitting:
            break
    assert best is not None
    if best_tokens > target and prose.text:
        # The parts that stay exceed the target: nobody's prose has room.
        return filled(composer, meter, target, Prose(made_by=prose.made_by, important=prose.important))
    return best


def plain_record(history: History, spans: Sequence[Range], room: int) -> str:
    """Code's record of these messages, in at most `room` raw tokens, for a reader without this log."""
    return Composer(history, SummarizeSettings()).plain(spans, room)
