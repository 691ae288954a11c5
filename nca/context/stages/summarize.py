"""Summarize: a record takes the place of what goes, with a model's prose if one is asked (`context/record`)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from hashlib import blake2b
from typing import Literal, cast

from nca.context.draft import Block, Draft, Part, covered
from nca.context.record.allocation import Chosen
from nca.context.record.ledger import Ledger
from nca.context.record.left_out import left_out
from nca.context.record.prose import harvested, within, without_stale
from nca.context.record.recording import Record, Recording, SummaryJob, raw_of
from nca.context.record.steps import one_line_each
from nca.context.record.text import laid_out
from nca.context.request import repair
from nca.context.summary import HEADER, SummaryFailure, SummaryReply, SummaryRequest, Written, is_summary
from nca.context.summary_writer import BY_CODE, NO_SUMMARIZER, Surroundings, write
from nca.context.tokens import message_tokens, text_tokens
from nca.context.view import Range, Summary, Verbatim, seqs
from nca.messages import Entry, Message

SMALLEST_STRETCH_TOKENS = 160
"""Raw tokens. Less than this is not worth a record: its frame alone costs a quarter of it."""
PROSE_SHARE = 0.25
"""Of the room, for what a model writes: the rest is for what code knows and for the newest steps."""
MERGED_SHARE = 0.5
"""Of the room, at most, where prose of earlier records is to be merged: less would lose what it says."""
SMALLEST_PROSE_TOKENS = 150
"""With less room than this no model is asked."""
WORTH_A_CALL = 3
"""What a model is asked about is so many times as long as its answer."""
LIVE_SHARE = 1.4
"""What was sent before is counted better than a flattened text, so it may fill more of the window (0.6 × 1.4)."""


def summarize(
    draft: Draft,
    job: SummaryJob,
    *,
    target_tokens: int,
    ceiling_tokens: int,
    older: Sequence[Block] | None = None,
) -> Generator[SummaryRequest, SummaryReply | SummaryFailure, Written | None]:
    """Replace the older part by a record; None, and nothing changed, where that would not be smaller.

    ceiling_tokens  what rules, changed files, words and decisions may fill above the target
    older           the blocks that go; None: all but the newest that fit
    """
    settings = job.settings
    recording = Recording(draft, job, target_tokens, ceiling_tokens)
    if older is None:
        recording.make_way()
    held = [text for part in recording.absorbed if (text := without_stale(part.prose))]
    prose_raw = _prose_room(recording, job, older, sum(map(text_tokens, held))) if job.has_summarizer else 0
    held_raw = text_tokens(within(held, _most_prose(recording, prose_raw))) if held else 0
    reserved_raw = max(prose_raw, held_raw)
    if older is None:
        record = _first_worth_it(recording, reserved_raw, held_raw)
    else:
        record = recording.record_of(list(older), *_all(recording))
    if not _is_worth_it(recording, record):
        return None
    is_first, is_whole = _position(draft, recording.absorbed, record.gone)
    written, named = yield from _prose_of(draft, job, recording, record, prose_raw, is_first=is_first)
    written_raw = text_tokens(written.prose) if written.prose else 0
    if older is None and written_raw != reserved_raw:
        # The prose is shorter or longer than what was set aside: lines and the newest steps get what is left.
        record = _first_worth_it(recording, written_raw, reserved_raw, held_raw)
    record = record.with_named(named)
    before: list[Part] = [*recording.absorbed, *recording.markers(record.gone)] if is_whole else []
    leaving = [*before, *record.gone]
    own = settings.summarize
    role = cast('Literal["user", "system"]', own.role)
    rank = 1 + max((part.rank for part in recording.absorbed), default=-1)
    summary = compose(
        covered(leaving),
        written,
        record.ledger,
        record.chosen,
        rank=rank,
        role=role,
        header=own.header,
        answered=draft.history.last_answer,
    )
    return written if _put(draft, leaving, summary) else None


def _prose_of(
    draft: Draft, job: SummaryJob, recording: Recording, record: Record, prose_raw: int, *, is_first: bool
) -> Generator[SummaryRequest, SummaryReply | SummaryFailure, tuple[Written, Ledger]]:
    """A model's prose with the rules and decisions that it named; else what still holds of earlier prose.

    prose_raw  raw tokens that were set aside for a model; 0: none is asked
    is_first   nothing that could go too stands before what goes
    """
    earlier = [*(part.prose for part in recording.absorbed if part.prose), *record.prose]
    failures = () if job.has_summarizer else (NO_SUMMARIZER,)
    if prose_raw and raw_of(record.gone) >= prose_raw:
        room_raw = int(LIVE_SHARE * job.input_tokens) - draft.meter.fixed_raw
        live = _live(draft, record.gone, room_raw) if is_first else ()
        written = yield from _asked(draft, job, record, earlier, max_tokens=prose_raw, live=live)
        prose, named = harvested(written.prose, record.ledger)
        return Written(prose, written.made_by, written.failures), named
    if earlier:
        prose = within(earlier, _most_prose(recording, prose_raw))
        return Written(prose, _maker(recording.absorbed), failures), Ledger()
    return Written("", BY_CODE, failures), Ledger()


def compose(
    ranges: tuple[Range, ...],
    written: Written,
    ledger: Ledger,
    chosen: Chosen,
    *,
    rank: int,
    role: Literal["user", "system"],
    header: str = HEADER,
    answered: int = 0,
) -> Summary:
    """The record as it is sent; its id follows from what it covers and says."""
    parts = laid_out(header, written.prose, chosen.lines, answered), left_out(ledger, chosen, ranges[-1][1])
    text = "\n\n".join(part for part in parts if part)
    digest = blake2b(f"{ranges}{text}".encode("utf-8", "replace"), digest_size=4).hexdigest()
    return Summary(digest, ranges, text, written.prose, ledger, rank, written.made_by, role)


def _put(draft: Draft, leaving: Sequence[Part], summary: Summary) -> bool:
    """Put the record in their place; False, and nothing changed, where that would not be smaller."""
    kept, raw_before = list(draft.parts), draft.raw
    draft.replace(leaving, summary)
    if draft.raw < raw_before:
        return True
    draft.parts, draft.raw = kept, raw_before
    return False


def _live(draft: Draft, gone: Sequence[Block], room_raw: int) -> list[Message]:
    """The request's own beginning up to the last covered message; empty where stubs stand in it or room is short."""
    last = gone[-1].last
    if raw_of(gone) > room_raw:
        return []
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


def _first_worth_it(recording: Recording, *prose_raws: int) -> Record:
    """The record with the first of these lengths of prose with which enough goes; else the last one."""
    for prose_raw in prose_raws:
        record = recording.choose(prose_raw)
        if _is_worth_it(recording, record):
            break
    return record


def _is_worth_it(recording: Recording, record: Record) -> bool:
    """Whether enough goes for a record, be it messages or what an earlier record need not say any more."""
    gone_raw = raw_of(record.gone)
    saved_raw = gone_raw + recording.absorbed_raw - recording.record_raw(record)
    return bool(gone_raw) and max(gone_raw, saved_raw if recording.absorbed else 0) >= SMALLEST_STRETCH_TOKENS


def _prose_room(recording: Recording, job: SummaryJob, older: Sequence[Block] | None, held_raw: int) -> int:
    """Raw tokens for a model's prose; 0 where too little is left to say anything beside what is held already.

    held_raw  what still holds of the prose of earlier records: the new one has room for it and for more
    """
    most = job.settings.summarize.max_tokens or job.budget_tokens
    room = min(int(PROSE_SHARE * recording.rooms.target), job.budget_tokens // 10)
    merged = min(held_raw + 2 * SMALLEST_PROSE_TOKENS, int(MERGED_SHARE * recording.rooms.target)) if held_raw else 0
    worth = raw_of(recording.movable if older is None else older) // WORTH_A_CALL
    room = min(max(room, merged), most, held_raw + worth)
    return room if room >= held_raw + SMALLEST_PROSE_TOKENS else 0


def _most_prose(recording: Recording, prose_raw: int) -> int:
    """Raw tokens that the prose of earlier records may keep."""
    return max(prose_raw, int(MERGED_SHARE * recording.rooms.target))


def _all(recording: Recording) -> tuple[int, int]:
    return max(0, recording.rooms.target - recording.frame), max(0, recording.rooms.ceiling - recording.frame)


def _asked(
    draft: Draft,
    job: SummaryJob,
    record: Record,
    earlier: Sequence[str],
    *,
    max_tokens: int,
    live: Sequence[Message],
) -> Generator[SummaryRequest, SummaryReply | SummaryFailure, Written]:
    """What a model makes of the messages that go. Earlier prose is merged only where it keeps its room."""
    history = draft.history
    shown = [seq for block in record.gone for seq in block.seqs if not is_summary(history.message(seq))]
    holding = [text for prose in earlier if (text := without_stale(prose))]
    last = record.gone[-1].last
    staying = [history.entries[seq - 1] for block in draft.blocks() for seq in block.seqs if seq > last]
    newest = history.message(history.newest_user).text if history.newest_user else ""
    written = yield from write(
        list(map(history.message, shown)),
        existing=holding,
        live=live,
        focus=job.focus,
        max_tokens=max_tokens,
        input_tokens=job.input_tokens,
        form=job.settings.summarize.form,
        scores=lambda: list(map(draft.score, shown)),
        surroundings=Surroundings(newest, one_line_each(staying), "\n".join(map(_said_in, staying))),
    )
    return (
        written
        if written.prose or not holding
        else Written(within(holding, max_tokens), written.made_by, written.failures)
    )


def _said_in(entry: Entry) -> str:
    return "\n".join((entry.message.text, *(call.arguments for call in entry.message.tool_calls)))


def _maker(absorbed: Sequence[Summary]) -> str:
    return next((part.made_by for part in reversed(absorbed) if part.prose), BY_CODE)


def _position(draft: Draft, absorbed: Sequence[Summary], gone: Sequence[Block]) -> tuple[bool, bool]:
    """Whether nothing that could go too stands before `gone`; and whether none stands between it and `absorbed`.

    Where some does (a person chose what goes), a merged record would tell of later things at an earlier place.
    """
    going = {id(part) for part in (*absorbed, *gone)}
    places = [place for place, part in enumerate(draft.parts) if id(part) in going]
    staying = [
        place
        for place, part in enumerate(draft.parts)
        if isinstance(part, Block) and not part.is_locked and id(part) not in going
    ]
    first_gone = next(place for place, part in enumerate(draft.parts) if part is gone[0])
    is_first = not any(place < first_gone for place in staying)
    return is_first, not any(places[0] < place < places[-1] for place in staying)
