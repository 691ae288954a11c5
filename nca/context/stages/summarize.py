"""Summarize: replace the older part by one summary, with the ledger of facts and the person's own words."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, cast

import msgspec

from nca.config.schema import ContextSettings
from nca.context import ledger as facts
from nca.context.draft import Block, Draft, Part, covered
from nca.context.request import repair
from nca.context.stages.truncate import SMALLEST_CONTENT_TOKENS
from nca.context.summary import (
    HEADER,
    SummaryFailure,
    SummaryReply,
    SummaryRequest,
    Written,
    is_summary,
)
from nca.context.summary_format import laid_out, read_again
from nca.context.summary_writer import write
from nca.context.tokens import message_tokens
from nca.context.view import Range, Summary, Verbatim, seqs
from nca.messages import Message

SMALLEST_STRETCH_TOKENS = 160
"""The smallest part that is worth a summary: the frame alone costs a quarter of it."""
WORDS_KEPT = 3
"""The user's words that a summary keeps for later merges, in budgets of what it shows of them; the log has them all."""
LIVE_SHARE = 1.4
"""What was sent before is counted better than a flattened text, so it may fill more of the window (0.6 × 1.4)."""
FRAME_TOKENS = 60
"""Header, preface and headings of a summary."""
LEAST_SHARE = 16
"""What code keeps gets at least this part of the budget, even if unseen results fill the target: those can be cut."""


@dataclass(frozen=True, slots=True)
class SummaryJob:
    """What is the same for every summary of one compaction.

    focus         what a summary should keep above all
    input_tokens  raw tokens that the summarizer's window leaves for what it reads
    """

    settings: ContextSettings
    budget_tokens: int
    focus: str
    input_tokens: int
    has_summarizer: bool = True


@dataclass(frozen=True, slots=True)
class Sizes:
    """Raw tokens that each part of a summary may have."""

    prose: int
    ledger: int
    words: int

    @property
    def total(self) -> int:
        return self.prose + self.ledger + self.words + FRAME_TOKENS


def sizes(
    settings: ContextSettings, budget_tokens: int, gone_raw: int, room_raw: int, words_raw: int, cuttable_raw: int = 0
) -> Sizes:
    """How long each part may be: within the settings, a share of the budget, 3/4 of what it replaces and of the room.

    The person's own words come first: they are few, and a rule among them must not be lost for prose about it.

    cuttable_raw  raw tokens of results that the model has not seen and that may be cut; not counted in `room_raw`
    """
    own = settings.summarize
    most = max(0, min(gone_raw, room_raw - FRAME_TOKENS) * 3 // 4)
    in_need = min(gone_raw, room_raw - FRAME_TOKENS + cuttable_raw) // 2
    by_code = max(most, min(in_need, budget_tokens // LEAST_SHARE))
    words = min(own.user_turns_tokens, budget_tokens // 10, words_raw, by_code // 2)
    ledger = min(own.ledger_tokens, budget_tokens // 20, (by_code - words) // 3)
    return Sizes(max(0, min(own.max_tokens, budget_tokens // 10, most - words - ledger)), ledger, words)


def summarize(
    draft: Draft, job: SummaryJob, *, target_tokens: int, older: Sequence[Block] | None = None
) -> Generator[SummaryRequest, SummaryReply | SummaryFailure, Written | None]:
    """Replace the older part by a summary. None, and nothing has changed, if that would not be smaller.

    older  the blocks that go; None: all but the newest that fit the target
    """
    settings, budget_tokens = job.settings, job.budget_tokens
    absorbed, rank = _absorb(draft)
    room_raw = _room_raw(draft, absorbed, target_tokens)
    gone = list(older) if older is not None else choose(draft, settings, target_tokens, budget_tokens, room_raw)
    is_first, is_whole = _position(draft, absorbed, gone)
    if not is_whole:
        absorbed, rank = [], 0
    gone_raw = sum(part.raw for part in gone)
    if gone_raw < SMALLEST_STRETCH_TOKENS:
        return None
    gone_seqs = [seq for block in gone for seq in block.seqs]
    messages = [draft.history.message(seq) for seq in gone_seqs]
    # A log from elsewhere may hold a summary as a message: it is merged as one, and nobody's own words.
    messages = [msgspec.structs.replace(m, is_synthetic=True) if is_summary(m) else m for m in messages]
    foreign = [read_again(message.text) for message in messages if is_summary(message)]
    others = [part for part in draft.parts if isinstance(part, Summary) and part not in absorbed]
    known = [*(part.ledger for part in (*others, *absorbed)), *(ledger for _, ledger in foreign)]
    ledger = facts.merge([*known, facts.extract(messages, draft.history.facts)])
    ledger = facts.within(ledger, WORDS_KEPT * settings.summarize.user_turns_tokens)
    gone_raw += sum(draft.part_raw(part) for part in absorbed)
    allowed = sizes(settings, budget_tokens, gone_raw, room_raw, facts.words_tokens(ledger), _cuttable_raw(draft))
    told = [(m, draft.score(seq)) for m, seq in zip(messages, gone_seqs, strict=True) if not is_summary(m)]
    written = yield from write(
        [message for message, _ in told],
        existing=[*(prose for prose, _ in foreign), *(part.prose or part.text for part in absorbed)],
        live=_live(draft, gone, int(LIVE_SHARE * job.input_tokens) - draft.meter.fixed_raw)
        if job.has_summarizer and is_first
        else (),
        focus=job.focus,
        max_tokens=allowed.prose,
        input_tokens=job.input_tokens,
        form=settings.summarize.form,
        has_summarizer=job.has_summarizer,
        scores=[score for _, score in told],
    )
    leaving: list[Part] = [*absorbed, *gone]
    role = cast('Literal["user", "system"]', settings.summarize.role)
    summary = compose(
        covered(leaving), written, ledger, allowed, rank=rank, role=role, header=settings.summarize.header
    )
    return written if _put(draft, leaving, summary, others) else None


def choose(
    draft: Draft, settings: ContextSettings, target_tokens: int, budget_tokens: int, room_raw: int
) -> list[Block]:
    """The blocks to summarize: all but the newest turns, or the newest steps of a turn that is too large."""
    turns = draft.turns()
    total_raw = sum(block.raw for block in draft.blocks())
    room = draft.meter.scaled(room_raw - sizes(settings, budget_tokens, total_raw, room_raw, total_raw // 4).total)
    recent = min(room, int(settings.keep_recent_ratio * target_tokens))
    kept: set[int] = set()
    kept_tokens = kept_messages = 0
    for age, turn in enumerate(reversed(turns)):
        cost = draft.meter.scaled(sum(block.raw for block in turn if not block.is_locked))
        size = sum(len(block.seqs) for block in turn)
        fits = kept_tokens + cost <= (room if age < max(1, settings.preserve_turns) else recent)
        if settings.max_messages and kept_messages + size > settings.max_messages and age:
            fits = False
        if not fits:
            if age == 0:
                kept.update(id(block) for block in newest_steps(draft, turn, max(recent, room // 2)))
            break
        kept.update(id(block) for block in turn)
        kept_tokens += cost
        kept_messages += size
    return [block for block in draft.blocks() if id(block) not in kept and not block.is_locked]


def _room_raw(draft: Draft, absorbed: Sequence[Summary], target_tokens: int) -> int:
    """Raw tokens that the target leaves for the summary and the newest turns."""
    others = [part for part in draft.parts if not isinstance(part, Block) and part not in absorbed]
    # What older summaries keep beside their prose goes to the new one: it takes no room of its own.
    staying = sum(draft.part_raw(_slim(part) if isinstance(part, Summary) else part) for part in others)
    staying += _unseen_raw(draft)
    return int((target_tokens - draft.fixed_tokens()) / draft.meter.calibration.ratio) - staying


def _unseen_raw(draft: Draft) -> int:
    return sum(block.raw for block in draft.blocks() if block.is_unseen)


def _cuttable_raw(draft: Draft) -> int:
    """Raw tokens of what the model has not seen that `truncate` may take away."""
    seqs = [seq for block in draft.blocks() if block.is_unseen for seq in block.seqs]
    return sum(max(0, draft.history.run_tokens(seq, seq) - 2 * SMALLEST_CONTENT_TOKENS) for seq in seqs)


def newest_steps(draft: Draft, turn: Sequence[Block], room_tokens: int) -> list[Block]:
    """The newest steps of a turn in progress that fit; the newest of all in any case."""
    kept: list[Block] = []
    tokens = 0
    for block in reversed(turn):
        tokens += 0 if block.is_locked else draft.meter.scaled(block.raw)
        if kept and tokens > room_tokens:
            break
        kept.append(block)
    return kept


def compose(
    ranges: tuple[Range, ...],
    written: Written,
    ledger: facts.Ledger,
    allowed: Sizes,
    *,
    rank: int,
    role: Literal["user", "system"],
    header: str = HEADER,
) -> Summary:
    """The summary as it is sent; its id follows from what it covers and says."""
    rendered = facts.render(ledger, allowed.ledger)
    words = facts.render_user_words(ledger.get(facts.USER_WORDS, ()), allowed.words)
    text = laid_out(header, written.prose, words, rendered)
    digest = blake2b(f"{ranges}{text}".encode("utf-8", "replace"), digest_size=4).hexdigest()
    return Summary(digest, ranges, text, written.prose, ledger, rank, written.made_by, role)


def _absorb(draft: Draft) -> tuple[list[Summary], int]:
    """The newest summaries of ranks 0, 1, 2 …, merged like carries: a fact is rewritten log2(N) times at most."""
    absorbed: list[Summary] = []
    rank = 0
    for part in reversed([part for part in draft.parts if isinstance(part, Summary)]):
        if part.rank != rank:
            break
        absorbed.insert(0, part)
        rank += 1
    return absorbed, rank


def _position(draft: Draft, absorbed: Sequence[Summary], gone: Sequence[Block]) -> tuple[bool, bool]:
    """Whether nothing that could go too stands before `gone`; and whether none stands between it and `absorbed`.

    Where some does (a person chose what goes), a merged summary would tell of later things at an earlier place.
    """
    going = {id(part) for part in (*absorbed, *gone)}
    places = [place for place, part in enumerate(draft.parts) if id(part) in going]
    staying = [
        place
        for place, part in enumerate(draft.parts)
        if isinstance(part, Block) and not part.is_locked and id(part) not in going
    ]
    if not places or not gone:
        return True, True
    first_gone = next(place for place, part in enumerate(draft.parts) if part is gone[0])
    return not any(place < first_gone for place in staying), not any(
        places[0] < place < places[-1] for place in staying
    )


def _put(draft: Draft, leaving: Sequence[Part], summary: Summary, others: Sequence[Summary]) -> bool:
    """Put the summary in their place. False, and nothing has changed, if that would not be smaller.

    Older summaries hand their ledger to the newest, so that no fact stands twice.
    """
    kept, raw_before = list(draft.parts), draft.raw
    draft.replace(leaving, summary)
    for part in others:
        if (slim := _slim(part)) is not part:
            draft.replace([part], slim)
    if draft.raw < raw_before:
        return True
    draft.parts, draft.raw = kept, raw_before
    return False


def _slim(part: Summary) -> Summary:
    """The summary with its prose alone; itself where it has no ledger."""
    if not part.ledger:
        return part
    text = laid_out(part.text.partition("\n")[0], part.prose)
    return msgspec.structs.replace(part, text=text, ledger={})


def _live(draft: Draft, gone: Sequence[Block], room_raw: int) -> list[Message]:
    """The request's own beginning up to the last covered message; empty where stubs stand in it or room is short."""
    last = gone[-1].last
    covered_seqs = set(seqs(covered(gone)))
    messages: list[Message] = []
    for item in (*draft.history.view.items, Verbatim(draft.history.view.tail, draft.history.head)):
        if isinstance(item, Verbatim):
            messages += [entry.message for entry in draft.history.entries[item.first - 1 : min(item.last, last)]]
            if item.last >= last:
                break
        elif not isinstance(item, Summary) and any(seq in covered_seqs for seq in [getattr(item, "seq", 0)]):
            return []
        else:
            shown = draft.history.shown(item)
            messages += [shown] if shown is not None else []
    messages = repair(messages, draft.meter.provider)
    return messages if sum(map(message_tokens, messages)) <= room_raw else []
