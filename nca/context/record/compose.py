"""The view as a function of the log: what of it has room, and the view that shows this.

No earlier compaction has any part in it, but for a model's prose, which cannot be computed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import takewhile
from typing import Literal, cast

import msgspec

from nca.config.schema import SummarizeSettings
from nca.context.history import History
from nca.context.record.past import Past, is_record
from nca.context.record.piece import Piece
from nca.context.record.steps import LEVELS, Step, cut_content, older, steps_back
from nca.context.record.table import KINDS, NEWEST, STEPS
from nca.context.record.text import Section, laid_out, preface, sections_text
from nca.context.record.walk import Lane, Limit, Taken, walk
from nca.context.summary import cut_text
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
    without_ranges,
    without_recall,
)

PROSE_PART = 3
"""Prose of other programs takes at most a third of the room."""
WHOLE = 1 << 30
"""The level of a message that is shown as it is."""
SLACK_TOKENS = 24
"""What joining lines, and repairs between what is shown, may add."""


@dataclass(frozen=True, slots=True)
class Prose:
    """What a model wrote of the conversation, and the messages that it named as ones to keep."""

    text: str = ""
    made_by: str = "extract"
    important: frozenset[int] = frozenset()
    is_merged: bool = False
    """It has taken in what the records among the messages say in prose."""


@dataclass(frozen=True, slots=True)
class Composer:
    """Makes views and records of one log.

    kept        messages that stay as they are, with all that must stay beside them
    unseen      the step whose results the model has not seen: it stays, with as much of them as there is room for
    gone        messages that are no part of the conversation any more: what somebody has cleared
    numbered    whoever reads the record can look up a message by its number
    changed     files that the record of files knows to have changed
    """

    history: History
    settings: SummarizeSettings
    kept: tuple[Range, ...] = ()
    unseen: tuple[Range, ...] = ()
    gone: tuple[Marker, ...] = ()
    numbered: bool = True
    changed: Sequence[tuple[int, str]] = ()
    stubs: tuple[Stub, ...] = ()
    """Messages that a person shortened."""
    most_messages: int = 0
    """So many messages are shown as they are at most; 0: no limit."""
    first_shown: int = 1
    """Older messages are not shown as they are."""

    def view(self, room: int, prose: Prose) -> tuple[View, bool]:
        """The view whose record and newest messages take at most `room` raw tokens; whether anything is left out."""
        past = self._past(prose)
        text = self._prose(past, prose, room)
        if self._frame(text) > room:
            text = ""
        taken = Taken(self.history, room - self._frame(text), self.numbered)
        newest = [self._newest(level) for level in (0, *LEVELS)] if self.unseen else []
        if newest:
            # The calls of this step stay whatever they cost: a request without them would not be valid.
            taken.left -= taken.cost(None, newest[0])
            taken.levels.update(dict.fromkeys(newest[0].shows, 0))
        kept = merge_ranges([*self.kept, *self.unseen])
        taken.levels |= {seq: WHOLE for first, last in self.kept for seq in range(first, last + 1)}
        # An earlier record that came with the messages is read, not shown.
        said = takewhile(
            lambda step: not is_record(self.history.message(step.first)), steps_back(self.history, past.spans)
        )
        coming = (step for step in self._newest_steps(said) if not is_in(step.first, kept))
        walk(taken, self._lanes(past, {NEWEST: iter(newest), STEPS: older(coming)}))
        shown = merge_ranges([*kept, *((seq, seq) for seq in taken.levels)])
        return self._view(taken, shown, past, text, prose), taken.has_left_out

    def record(self, spans: Sequence[Range], room: int, prose: Prose) -> str:
        """The record of these messages alone, in at most `room` raw tokens."""
        past = self._past(prose, spans)
        text = self._prose(past, prose, room)
        taken = walk(Taken(self.history, room - self._frame(text), self.numbered), self._lanes(past, {}))
        return self._text(taken, text)

    def plain(self, spans: Sequence[Range], room: int) -> str:
        """The lines of these messages without a frame, for a reader who has not this log."""
        taken = walk(Taken(self.history, room, False), self._lanes(self._past(Prose(), spans), {}))
        return sections_text(taken.lines.values(), numbered=False)

    def summary(self, ranges: tuple[Range, ...], text: str, prose: Prose) -> Summary:
        """A record as an item of a view; its id follows from what it covers and says."""
        digest = blake2b(f"{ranges}{text}".encode("utf-8", "replace"), digest_size=4).hexdigest()
        role = cast('Literal["user", "system"]', self.settings.role)
        return Summary(digest, ranges, text, prose.text, made_by=prose.made_by, role=role)

    def _newest_steps(self, steps: Iterator[Step]) -> Iterator[Step]:
        count = 0
        for step in steps:
            count += len(step.seqs)
            if step.first < self.first_shown or (self.most_messages and count > self.most_messages):
                return
            yield step

    def _past(self, prose: Prose, spans: Sequence[Range] | None = None) -> Past:
        head, aside = self.history.head, self.history.view.aside
        whole = without_ranges(
            [(1, head)] if spans is None else spans, [*aside, *(span for marker in self.gone for span in marker.ranges)]
        )
        return Past(self.history, whole, self.numbered, self.changed, prose.important)

    def _lanes(self, past: Past, steps: dict[str, Iterator[Piece]]) -> list[Lane]:
        words, state = self.settings.user_turns_tokens, self.settings.ledger_tokens
        limits = {Section.WORDS: Limit(words)} if words else {}
        if state:
            limits |= dict.fromkeys((Section.EFFECTS, Section.FAILED, Section.TURN, Section.CALLS), Limit(state))
        lanes = []
        for kind in KINDS:
            pieces = kind.pieces(past) if kind.pieces is not None else steps.get(kind.name)
            if pieces is not None:
                limit = limits.get(kind.section) if kind.section is not None else None
                lanes.append(Lane(kind.section, kind.weights, pieces, limit))
        return lanes

    def _newest(self, level: int) -> Piece:
        seqs = [seq for first, last in self.unseen for seq in range(first, last + 1)]
        return Piece((NEWEST,), seqs[-1], "", 0, range(seqs[0], seqs[-1] + 1), level)

    def _prose(self, past: Past, prose: Prose, room: int) -> str:
        """What a model wrote, and the prose of other programs' records among the messages."""
        records = past.read_records()
        if prose.is_merged or not records:
            return prose.text
        return cut_text("\n\n".join(filter(None, [*records, prose.text])), max(0, room // PROSE_PART))

    def _frame(self, prose: str) -> int:
        start = preface(answered=self.history.head, numbered=self.numbered)
        return text_tokens(f"{self.settings.header}\n{start}") + text_tokens(prose) + SLACK_TOKENS

    def _text(self, taken: Taken, prose: str) -> str:
        start = preface(answered=self.history.last_answer, numbered=self.numbered)
        return laid_out(self.settings.header, start, prose, taken.lines.values(), numbered=self.numbered)

    def _view(self, taken: Taken, shown: tuple[Range, ...], past: Past, text: str, prose: Prose) -> View:
        hidden = without_ranges(past.spans, shown)
        stubs = {stub.seq: stub for stub in self.stubs}
        stubs |= {seq: stub for seq, level in taken.levels.items() if (stub := self._stub(seq, level)) is not None}
        items: list[Item] = []
        if hidden:
            # Behind the system prompt alone a conversation would have to begin with a message of nobody's.
            is_begun = any(self.history.message(seq).role == "user" for seq in taken.levels)
            made = self.summary(hidden, self._text(taken, text), prose)
            items.append(made if is_begun else msgspec.structs.replace(made, role="user"))
        items += self.gone
        whole = without_ranges(shown, [(seq, seq) for seq in stubs])
        items += [Verbatim(*run) for run in whole] + [stub for seq, stub in stubs.items() if is_in(seq, shown)]
        return ordered(items, self.history.head, self.history.view.aside)

    def _stub(self, seq: int, level: int) -> Stub | None:
        message = self.history.message(seq)
        size = self.history.run_tokens(seq, seq)
        stub = cut_content(message, seq, size, level)
        if stub is None or self.numbered:
            return stub
        return Stub(seq, without_recall(stub.text), stub.stage)


def plain_record(history: History, spans: Sequence[Range], room: int) -> str:
    """What code tells of these messages, in at most `room` raw tokens, for a reader who has not this log."""
    return Composer(history, SummarizeSettings()).plain(spans, room)
