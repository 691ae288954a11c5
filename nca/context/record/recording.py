"""Choose what a record says and which of the newest steps stay as they are.

Rules, words and decisions of everything that could go get their room first, then the state of the work, and the newest
steps get what is left. A step that stays needs no line in the record, so the next pass gives its room to more steps. So
all of the room is used wherever there is material.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

from nca.config.schema import ContextSettings
from nca.context.draft import Block, Draft
from nca.context.record import ledger as facts
from nca.context.record.allocation import Chosen, Kind, allocate, line_tokens
from nca.context.record.call_facts import call_facts
from nca.context.record.latest import latest_answer
from nca.context.record.ledger import Ledger, Reading
from nca.context.record.pieces import SHORT_CHARS, Forms, headings_tokens, latest_heading_tokens, pieces_of
from nca.context.record.steps import step_lines
from nca.context.record.text import UNKNOWN_NOTE, preface, read_again
from nca.context.record.unseen import (
    LEAST_UNSEEN_TOKENS,
    SMALLEST_CUT_TOKENS,
    cut_step,
    cut_unseen,
    raised_by,
    unseen,
    unseen_share,
)
from nca.context.stages.truncate import TRUNCATED, cut_message
from nca.context.summary import is_summary
from nca.context.tokens import MESSAGE_TOKENS, text_tokens
from nca.context.view import Marker, Summary, seqs
from nca.messages import Entry
from nca.wire import content_text

PRUNE = "prune"
FILES_PART, STEPS_PART, LATEST_PART, ANSWERS_PART = 3, 6, 3, 8
"""The changed files take at most a third of the room, however many they are, as does the answer that the newest message
answers; the steps of the turn take a sixth, and the newest answers an eighth."""
STATE_PART = 8
"""New results are cut for the state of the work too, as far as it takes an eighth of the target."""
PROTECTED = tuple(kind for kind in Kind if kind <= Kind.DECISION)
STATE = (Kind.FAILING, Kind.STATE)
NARRATIVE_PART, SMALL_NARRATIVE_PART, SMALL_NARRATIVE_TOKENS = 5, 3, 700
"""Answers, lists and fixed errors take a fifth of the room before the newest steps, of a small room up to a third, and
what is left after them."""
NEWEST_STEPS_SHARE = 0.15
"""Of the room, for the newest steps where the person's words do not all fit: what was said last is answered next."""
SMALL_ROOM_TOKENS, ERRORS_PART = 2_500, 4
"""Errors that were fixed get a quarter of what a room has above this many tokens, before the newest steps do."""
WORDS_CAP_PART, STATE_CAP_PART = 10, 20
"""Where a person set a bound for words or state, it is also a tenth or a twentieth of the budget at most."""
SLACK_TOKENS = 24
"""What the repairs between a record and the steps behind it may add."""
PASSES = 4
FILLED_SLACK_TOKENS = SMALLEST_CUT_TOKENS + 2 * SHORT_CHARS
"""What words have no room for is more than this: a piece less, or a part of the newest step, leaves none for others."""


@dataclass(frozen=True, slots=True)
class SummaryJob:
    """What is the same for every summary of one compaction.

    focus         what a summary should keep above all
    input_tokens  raw tokens that the summarizer's window leaves for what it reads
    is_last       no later compaction goes on from a record: what it has no room for need not be looked for
    """

    settings: ContextSettings
    budget_tokens: int
    focus: str
    input_tokens: int
    has_summarizer: bool = True
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Rooms:
    """Raw tokens for the record and the steps that stay: `target`, and up to `ceiling` for what cannot be had again.

    That is at least half of what the budget leaves beside what stays, unless the target was named.
    """

    target: int
    ceiling: int


@dataclass(frozen=True, slots=True)
class _Read:
    """What messages state, and the prose and ledgers of other programs' summaries among them."""

    own: Reading
    foreign: list[tuple[str, Ledger]]


@dataclass(frozen=True, slots=True)
class Record:
    """The blocks that go, what holds of them and of everything before, and the lines that fit."""

    gone: list[Block]
    ledger: Ledger
    chosen: Chosen
    give: Callable[[Ledger], Chosen]
    """Give the same room out for another ledger."""
    prose: tuple[str, ...] = ()
    """Of summaries of other programs among the messages."""

    def with_named(self, named: Ledger) -> Record:
        """The record with the rules and decisions that a model named, within the same room."""
        if not named:
            return self
        ledger = facts.merge([self.ledger, named])
        return replace(self, ledger=ledger, chosen=self.give(ledger))


class Recording:
    """One record while it is made. `rooms` leave out what stays in any case."""

    def __init__(self, draft: Draft, job: SummaryJob, target_tokens: int, ceiling_tokens: int) -> None:
        self.draft = draft
        self.settings = settings = job.settings
        own = settings.summarize
        self.caps = {
            Kind.WORDS: min(own.user_turns_tokens, job.budget_tokens // WORDS_CAP_PART),
            **dict.fromkeys(STATE, -(-min(own.ledger_tokens, job.budget_tokens // STATE_CAP_PART) // len(STATE))),
        }
        self.absorbed = [part for part in draft.parts if isinstance(part, Summary)]
        self._hidden = [part for part in draft.parts if isinstance(part, Marker) and part.text.startswith(TRUNCATED)]
        self.absorbed_raw = sum(map(draft.part_raw, self.absorbed))
        self.movable = [block for block in draft.blocks() if not block.is_locked]
        self._aims = target_tokens, ceiling_tokens
        self._budget_tokens = job.budget_tokens
        self._prose_raw = 0
        settled = [place for place, block in enumerate(self.movable, 1) if block.settled_turns]
        self._settled = self.movable[: max(settled, default=0)]
        self._held: dict[int, tuple[Ledger, tuple[str, ...]]] = {}
        """What `_holding` found, by the number of movable blocks: it is asked again while the room is given out."""
        self._later: dict[int, Ledger] = {}
        """What the messages behind one leave of the work."""
        self._forms = Forms()
        self._remember()
        self.rooms = self._rooms()
        self._begin(is_short=job.is_last and not job.has_summarizer and self._may_be_filled())
        if self._is_short and not self._is_filled():
            self._begin(is_short=False)
        self._unread = self._kinds_unread() if self._is_short else {}
        # Which answer the preface names is known later; no number is longer than that of the newest message.
        self.frame = (
            text_tokens(f"{settings.summarize.header}\n{preface(draft.history.head)}{UNKNOWN_NOTE}")
            + headings_tokens()
            + SLACK_TOKENS
        )

    def make_way(self) -> None:
        """Cut the largest new results as far as rules, words, decisions and the state of the work need their room."""
        sizes = [size for size, *_ in unseen(self.draft)]
        if not sizes:
            return
        room = max(self.rooms.ceiling, sum(max(0, size - LEAST_UNSEEN_TOKENS) for size in sizes))
        chosen = self.record_of(self.movable, room, room).chosen
        state = min(chosen.tokens_of(*STATE), self._aims[0] // STATE_PART)
        excess = chosen.tokens_of(*PROTECTED) + state + self.frame - self.rooms.target
        most = self._budget_tokens if self._aims[1] > self._aims[0] else self._aims[1]
        left = (self._left_of(aim) + sum(sizes) for aim in (self._aims[1], most))
        need, excess = excess, min(excess, sum(sizes) - unseen_share(*left))
        if excess <= 0:
            return
        ratio, (target, ceiling) = self.draft.meter.calibration.ratio, self._aims
        raised = raised_by(excess, int((ceiling - target) / ratio), missing=need - excess)
        self._aims = target + int(raised * ratio), ceiling
        if excess > raised and cut_unseen(self.draft, excess - raised):
            self._remember()
        self.rooms = self._rooms()

    def _begin(self, *, is_short: bool) -> None:
        """Read the blocks up to the last that is certain to go once: nearly all of a long session.

        is_short  only what the person said is read, and which files were changed
        """
        self._is_short = is_short
        self._held.clear()
        self._beginning = self._read(self._settled, self._nothing_read())

    def _nothing_read(self) -> _Read:
        return _Read(Reading(self.draft.history.facts, only=facts.SHORT if self._is_short else facts.ALL), [])

    def _may_be_filled(self) -> bool:
        """Whether it is worth looking first at what the person said alone: it may take all the room."""
        if not self._settled or self.caps[Kind.WORDS]:
            return False
        users = (entry.seq for entry in self._entries(self.movable) if entry.message.role == "user")
        sizes = (self.draft.history.run_tokens(seq, seq) for seq in users)
        return any(said > self.rooms.ceiling for said in accumulate(sizes, initial=self.absorbed_raw))

    def _is_filled(self) -> bool:
        """Whether what the person said takes all the room that there can be, so that nothing lower gets any."""
        most = self.rooms.ceiling + sum(size for size, *_ in unseen(self.draft)) + FILLED_SLACK_TOKENS
        pieces = pieces_of(self._holding(self.movable)[0], forms=self._forms)
        return bool(allocate({kind: pieces[kind] for kind in (Kind.RULE, Kind.WORDS)}, most, most).left_out)

    def _kinds_unread(self) -> dict[Kind, int | None]:
        """What nobody looks for where words take all the room. Only commands leave a state of the work behind."""
        seqs = (seq for block in reversed(self.movable) for seq in reversed(block.seqs))
        calls = (call_facts(call) for seq in seqs for call in self.draft.history.message(seq).tool_calls)
        has_state = any(one.command and not one.says_little for one in calls)
        return dict.fromkeys((Kind.DECISION, *STATE) if has_state else (Kind.DECISION,))

    def _remember(self) -> None:
        self._blocks_before = [(block, dict(block.stubs), block.raw) for block in self.movable]
        self._raw_before = self.draft.raw

    def choose(self, prose_raw: int) -> Record:
        """What goes and what of it is recorded, with `prose_raw` set aside for what a model writes.

        It can be asked again with another number: the draft's blocks are taken as they were.
        """
        for block, stubs, raw in self._blocks_before:
            block.stubs, block.raw = dict(stubs), raw
        self.draft.raw = self._raw_before
        self._prose_raw = prose_raw
        room = self.rooms.target - self.frame - prose_raw
        kept: list[Block] = []
        for _ in range(PASSES):
            going = self.movable[: len(self.movable) - len(kept)]
            record = self.record_of(going, max(0, room - raw_of(kept)), self._ceiling(kept), is_first=True)
            chosen = record.chosen
            # Above the ceiling a record may take room that the steps behind it do not: they would be hidden again.
            most = min(self.rooms.ceiling, self._left_of(self._aims[1])) - self.frame - prose_raw - chosen.tokens
            if chosen.tokens_of(*STATE) or not chosen.left_out.keys().isdisjoint(STATE):
                most = min(most, room - chosen.tokens_of(*PROTECTED, *STATE))
            more = self._newest(room - chosen.tokens, most)
            if len(more) <= len(kept):
                break
            kept = more
        self._restore(kept, room - record.chosen.tokens - raw_of(kept))
        going = self.movable[: len(self.movable) - len(kept)]
        return self.record_of(going, max(0, room - raw_of(kept)), self._ceiling(kept))

    def record_raw(self, record: Record) -> int:
        """Raw tokens of the record with the prose that was set aside for it."""
        return record.chosen.tokens + self.frame + self._prose_raw

    def _restore(self, kept: Sequence[Block], room: int) -> None:
        """Show the newest results again that an earlier stage cleared, as far as there is room."""
        for block in reversed(kept):
            for seq in sorted((seq for seq, stub in block.stubs.items() if stub.stage == PRUNE), reverse=True):
                cost = -self.draft.saving(block, seq, content_text(self.draft.history.message(seq).content))
                if cost > room and room >= SMALLEST_CUT_TOKENS:
                    self.draft.remove_stub(block, seq)
                    cut_message(self.draft, block, seq, room - MESSAGE_TOKENS, "shorten")
                    return
                if cost > room:
                    return
                self.draft.remove_stub(block, seq)
                room -= cost

    def record_of(self, gone: list[Block], room: int, ceiling: int, *, is_first: bool = False) -> Record:
        """What holds of these blocks and of everything before them, and what of it fits.

        is_first  the newest steps have no room yet: answers and lists leave it to them
        """
        ledger, foreign = self._holding(gone)
        ledger = facts.as_of_now(ledger, *self._behind(gone))
        latest = latest_answer(self.draft.history, self.movable, self.absorbed, gone)
        narrative = min(room // SMALL_NARRATIVE_PART, max(room // NARRATIVE_PART, SMALL_NARRATIVE_TOKENS))
        error_tokens = max(0, self.rooms.target - SMALL_ROOM_TOKENS) // ERRORS_PART
        most = max(1, room, ceiling)
        files = len(STATE) * self.caps[Kind.STATE] or most // FILES_PART + 1
        caps = {**self.caps, Kind.FILES: files, Kind.STEPS: most // STEPS_PART + 1, Kind.ANSWERS: most // ANSWERS_PART}
        if latest:
            least = line_tokens(latest[0]) + latest_heading_tokens()
            caps[Kind.LATEST] = max(least, most // LATEST_PART)

        def give(ledger: Ledger, room: int = room, ceiling: int = ceiling) -> Chosen:
            pieces = pieces_of(ledger, latest=latest, error_tokens=error_tokens, forms=self._forms)
            lower = narrative if is_first else room
            chosen = allocate(pieces, room, ceiling, lower=lower, caps=caps)
            return replace(chosen, left_out=chosen.left_out | self._unread)

        chosen = give(ledger)
        if is_first and chosen.left_out.get(Kind.WORDS) and not caps[Kind.WORDS]:
            most = min(room, int((1 - NEWEST_STEPS_SHARE) * (self.rooms.target - self.frame - self._prose_raw)))
            chosen = give(ledger, most, most)
        return Record(gone, ledger, chosen, give, foreign)

    def _behind(self, gone: Sequence[Block]) -> tuple[Ledger, set[int]]:
        """What the messages behind these blocks leave of the work, and which of them are shown as they are."""
        last = gone[-1].last if gone else 0
        behind = [block for block in self.draft.blocks() if block.first > last]
        whole = {seq for block in behind if not block.stubs for seq in block.seqs}
        if last not in self._later:
            self._later[last] = Reading(self.draft.history.facts, only=facts.STATE).read(self._entries(behind)).ledger()
        return self._later[last], whole

    def _holding(self, gone: Sequence[Block]) -> tuple[Ledger, tuple[str, ...]]:
        """What these blocks and everything before them state, and the prose of other programs' summaries in them."""
        is_beginning = gone == self.movable[: len(gone)]
        if is_beginning and len(gone) in self._held:
            return self._held[len(gone)]
        count = len(self._settled) if gone[: len(self._settled)] == self._settled else 0
        read = self._beginning if count else self._nothing_read()
        read = self._read(gone[count:], _Read(read.own.copy(), [*read.foreign]))
        newest = self.draft.history.newest_user or 0
        parts = [*(part.ledger for part in self.absorbed), *(ledger for _, ledger in read.foreign)]
        parts += [self._nothing_read().own.read(self._behind_markers(gone)).ledger()] if self._hidden else []
        in_progress = self._entries(block for block in gone if block.last > newest)
        parts += [read.own.ledger(), {facts.STEPS: step_lines(in_progress, newest)}]
        ledger = facts.without_old_steps(facts.merge(parts), newest)
        held = ledger, tuple(prose for prose, _ in read.foreign if prose)
        if is_beginning:
            self._held[len(gone)] = held
        return held

    def markers(self, gone: Sequence[Block]) -> list[Marker]:
        """The markers among these blocks: the record stands for what they hide too, which an earlier one did not."""
        return [one for one in self._hidden if gone and one.ranges[-1][1] < gone[-1].last]

    def _behind_markers(self, gone: Sequence[Block]) -> list[Entry]:
        return [self.draft.history.entries[seq - 1] for one in self.markers(gone) for seq in seqs(one.ranges)]

    def _read(self, blocks: Sequence[Block], before: _Read) -> _Read:
        """Read on in these blocks."""
        entries = list(self._entries(blocks))
        records = [entry for entry in entries if entry.message.role in ("user", "system") and is_summary(entry.message)]
        if records:
            given = {entry.seq for entry in records}
            before.foreign.extend(read_again(entry.message.text) for entry in records)
            entries = [entry for entry in entries if entry.seq not in given]
        before.own.read(entries)
        return before

    def _entries(self, blocks: Iterable[Block]) -> Iterator[Entry]:
        entries = self.draft.history.entries
        return chain.from_iterable(entries[block.first - 1 : block.last] for block in blocks)

    def _ceiling(self, kept: Sequence[Block]) -> int:
        return self.rooms.ceiling - self.frame - self._prose_raw - raw_of(kept)

    def _rooms(self) -> Rooms:
        target, ceiling, most = map(self._left_of, (*self._aims, self._budget_tokens))
        # A large newest step may leave nothing below the ceiling, and half of the budget's rest is still free.
        return Rooms(target, max(target, ceiling, most // 2) if ceiling > target else target)

    def _left_of(self, aim_tokens: int) -> int:
        """Raw tokens that what stays in any case leaves of so many."""
        draft, ratio = self.draft, self.draft.meter.calibration.ratio
        staying = draft.raw - raw_of(self.movable) - self.absorbed_raw
        extra = draft.meter.total(draft.raw) - draft.raw * ratio
        return int((aim_tokens - extra) / ratio) - staying

    def _newest(self, room: int, most: int) -> list[Block]:
        """The newest blocks within `room`, oldest first; of one more a part, where its results can be cut to fit.

        Of the newest a beginning stays even where there is no room, as far as `most` allows: not at the cost of state.
        """
        own, kept, messages, left = self.settings, list[Block](), 0, room
        older = int(own.keep_recent_ratio * max(0, self.rooms.target))
        preserved = max((block.turn for block in self.draft.blocks()), default=0) - own.preserve_turns
        for block in reversed(self.draft.blocks()):
            messages += len(block.seqs)
            if block.is_locked:
                continue
            if own.max_messages and messages > own.max_messages and kept:
                return self._whole_turns(kept)
            left = room if block.turn > preserved else min(room, older)
            allowed = left if kept else max(left, min(most, SMALLEST_CUT_TOKENS))
            if block.raw > allowed and not cut_step(self.draft, block, allowed):
                break
            kept.append(block)
            room, older = room - block.raw, older - block.raw
        return self._whole_turns(kept) if left < room else kept[::-1]

    def _whole_turns(self, kept: Sequence[Block]) -> list[Block]:
        """Where a bound of the settings ended it, and not the room: the turns that are kept whole, oldest first."""
        starts = [place for place, block in enumerate(kept) if self.draft.history.message(block.first).role == "user"]
        return list(kept[: starts[-1] + 1] if starts else kept)[::-1]


def raw_of(blocks: Sequence[Block]) -> int:
    return sum(block.raw for block in blocks)
