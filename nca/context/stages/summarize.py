"""Summarize: the view is made again from the log, with a record for the messages without room (`context/record`)."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec

from nca.context.draft import Block, Draft, Part, covered
from nca.context.history import History
from nca.context.importance import importances
from nca.context.record.compose import Composer, Prose, filled, room_for
from nca.context.record.past import is_record
from nca.context.record.text import read_again
from nca.context.request import repair
from nca.context.rules.untouchable import COLLAPSE
from nca.context.summary import SummaryFailure, SummaryJob, SummaryReply, SummaryRequest, Written, cut_text, named_by
from nca.context.summary_input import MAX_CHUNKS, MESSAGE_CHARS
from nca.context.summary_writer import BY_CODE, Surroundings, write
from nca.context.tokens import message_tokens, text_tokens
from nca.context.view import Marker, Range, Stub, Summary, Verbatim, View, is_in, merge_ranges, seqs, without_ranges
from nca.messages import Entry, Message
from nca.wire import content_text

PROSE_SHARE = 0.25
"""The share of the room for a model's text."""
SMALLEST_PROSE_TOKENS = 150
"""With less room than this no model is asked."""
WORTH_A_CALL = 3
"""A model is asked only if the messages are at least so many times as long as its answer."""
LIVE_SHARE = 1.4
"""Messages sent before are counted better than a flattened text, so they may fill more of the window (0.6 × 1.4)."""
PRESERVED_SHARE = 0.5
"""The share of the target for the turns that a person wants to keep (context.preserve_turns)."""
RANGE_SHARE = 0.5
"""A record of messages that somebody has chosen takes at most this share of them."""
TARGET_STEPS = 8
"""A target rises for the person's words in so many steps, so by little more than they need."""
LINE_CHARS = 120

_AND_CODE = f" + {BY_CODE}"
Asking = Generator[SummaryRequest, "SummaryReply | SummaryFailure", tuple[Written, Prose]]


def summarize(
    draft: Draft, job: SummaryJob, target: int, most_target: int = 0
) -> Generator[SummaryRequest, SummaryReply | SummaryFailure, tuple[View, Written, int]]:
    """The view of the whole log within the target, and that target.

    The target rises up to `most_target` as far as messages of the person would go otherwise, with their rules.
    A model is asked about the messages that have no room and that no earlier prose speaks of; if somebody has named
    what to keep, about all that have no room.
    """
    composer = _composer(draft, job, _preserved(draft, job, target))
    earlier = _earlier(draft.parts)
    room = room_for(composer, draft.meter, target)
    prior = _earlier_prose(earlier, int(PROSE_SHARE * room))
    most = _most_prose(job, room, prior)
    reserved = Prose(" a" * most) if most else prior
    target = _with_words(draft, composer, reserved, target, max(target, most_target))
    view = filled(composer, draft.meter, target, reserved)
    hidden = [span for item in view.items if isinstance(item, Summary) for span in item.ranges]
    # A named focus is looked for in all hidden messages: earlier prose may have left it out.
    told = Prose() if job.focus else prior
    gone, left_out = _not_told(hidden, told, draft.history, MAX_CHUNKS * job.input_tokens) if most else ([], 0)
    size = sum(message_tokens(entry.message) for entry in gone)
    # Prose is brought up to date once a whole room of talk is missing in it: each question costs and takes its time.
    least = 1 if job.focus else max(room if prior.text else 0, WORTH_A_CALL * most)
    asked = most if most and size >= least else 0
    written, prose = yield from _asked(draft, job, gone, view, earlier, prior, hidden, most=asked, left_out=left_out)
    if reserved is not prior or prose.text != prior.text:
        view = filled(composer, draft.meter, target, replace(prose, is_merged=bool(prose.text)))
    return view, written, target


def summarize_range(
    draft: Draft, job: SummaryJob, older: Sequence[Block], target_tokens: int = 0
) -> Generator[SummaryRequest, SummaryReply | SummaryFailure, Written | None]:
    """Replace these blocks by a record; None, and nothing changed, if that would not be smaller.

    target_tokens  of the request with the record, if it can be met; 0: somebody has chosen these messages, and what
                   the person said in them stays, if in short
    """
    if not older:
        return None
    absorbed, before = _neighbours(draft, older)
    gone_raw = sum(block.raw for block in older)
    leaving_raw = gone_raw + sum(map(draft.part_raw, absorbed))
    composer, leaving = _composer(draft, job), [*before, *older]
    ranges, room = covered(leaving), max(1, int(RANGE_SHARE * leaving_raw))
    if target_tokens:
        room = max(SMALLEST_PROSE_TOKENS, min(room, draft.meter.raw_for(target_tokens) - draft.raw + leaving_raw))
    elif not (room := _room_for_words(composer, ranges, room, leaving_raw, Prose())):
        return None
    earlier = _earlier(absorbed)
    prior = _earlier_prose(earlier, room // 2)
    most = _most_prose(job, min(room, gone_raw), prior)
    gone = [draft.history.entries[seq - 1] for block in older for seq in block.seqs]
    asked = most if job.focus or gone_raw >= WORTH_A_CALL * most else 0
    written, prose = yield from _asked(draft, job, gone, draft.view(), earlier, prior, ranges, most=asked)
    if not target_tokens and prose.text:
        if beside := _room_for_words(composer, ranges, room, leaving_raw, prose):
            room = beside
        else:
            prose = Prose(made_by=prose.made_by, important=prose.important)
    record = composer.record(ranges, room, prose)
    parts_before, raw_before = list(draft.parts), draft.raw
    draft.replace(leaving, composer.summary(ranges, record, prose))
    if draft.raw < raw_before:
        return written
    draft.parts, draft.raw = parts_before, raw_before
    return None


def _room_for_words(composer: Composer, ranges: Sequence[Range], least: int, most: int, prose: Prose) -> int:
    """The raw tokens from `least` to `most` in which a record tells what the person said in this range; 0: none do."""
    tried = (least + (most - least) * step // TARGET_STEPS for step in range(TARGET_STEPS + 1))
    return next((room for room in tried if composer.tells_words(ranges, room, prose)), 0)


def target_with_words(draft: Draft, job: SummaryJob, least: int, most: int) -> int:
    """The target from `least` to `most` tokens at which a view has each message of the person, if in short."""
    return _with_words(draft, _composer(draft, job), Prose(), least, most)


def words_would_go(draft: Draft, job: SummaryJob, target: int, most: int) -> bool:
    """Whether words of the person would go, or be shortened once more, for this target. Of an earlier record, which
    is all that a program without a log has of them, each line is what was left of some.
    """
    has_record = any(is_record(draft.history.message(block.first)) for block in draft.blocks() if block.turn == 0)
    return has_record or target_with_words(draft, job, target, most) > target


def _with_words(draft: Draft, composer: Composer, prose: Prose, least: int, most: int) -> int:
    tried = (least + (most - least) * step // TARGET_STEPS for step in range(TARGET_STEPS)) if least < most else ()
    return next(
        (target for target in tried if composer.has_words(room_for(composer, draft.meter, target), prose)), most
    )


def _preserved(draft: Draft, job: SummaryJob, target: int) -> list[Block]:
    """The newest turns that a person wants to keep, within their share of the target."""
    preserved: list[Block] = []
    left = draft.meter.raw_for(int(PRESERVED_SHARE * target))
    for turn in draft.turns()[: -1 - job.settings.preserve_turns : -1]:
        left -= sum(block.raw for block in turn)
        if left < 0:
            break
        preserved += turn
    return preserved


def _composer(draft: Draft, job: SummaryJob, preserved: Sequence[Block] = ()) -> Composer:
    """The parts that always stay: locked and preserved blocks, and the step with new results."""
    history = draft.history
    staying = {id(block) for block in preserved}
    locked = [block for block in draft.blocks() if block.is_locked or id(block) in staying]
    stubs = [stub for block in draft.blocks() for stub in block.stubs.values()]
    # A message that was pinned in its cut form keeps that form.
    pinned = [(block.first, block.last) for block in locked if not history.pins.isdisjoint(block.seqs)]
    kept_stubs = [
        stub for stub in stubs if stub.stage == COLLAPSE or stub.seq == draft.newest_user or is_in(stub.seq, pinned)
    ]
    gone = tuple(part for part in draft.parts if isinstance(part, Marker) and not part.text)
    listed = [block for block in locked if id(block) not in staying and _is_listed(draft, block)]
    kept = [(block.first, block.last) for block in locked if not block.is_unseen and block not in listed]
    return Composer(
        history,
        job.settings.summarize,
        kept=without_ranges(kept, [*(span for marker in gone for span in marker.ranges), *history.view.aside]),
        unseen=tuple((block.first, block.last) for block in locked if block.is_unseen),
        listed=tuple((block.first, block.last) for block in listed),
        gone=gone,
        numbered=job.has_recall,
        changed=job.changed_files,
        stubs=tuple(kept_stubs),
        most_messages=job.settings.max_messages,
        steps_ratio=job.settings.keep_recent_ratio,
        # Turns that were trimmed for their number stay hidden.
        first_shown=min((block.first for block in draft.blocks()), default=1) if job.settings.max_turns else 1,
    )


def _is_listed(draft: Draft, block: Block) -> bool:
    """Whether a step stays for its todo list alone, so that what else it brought in may be cut."""
    seq = draft.history.newest_list[0] if draft.history.newest_list is not None else 0
    return block.first == seq and not block.is_unseen and draft.history.pins.isdisjoint(block.seqs)


def _earlier(parts: Sequence[Part]) -> list[Prose]:
    """Earlier prose of models, oldest first: it cannot be computed again."""
    found = (part for part in parts if isinstance(part, Summary) and part.prose)
    return [Prose(one.prose, one.made_by, of=one.prose_of or one.ranges) for one in found]


def _records(gone: Sequence[Entry]) -> list[str]:
    """The prose of records among these messages: another program's, or the rest of one in a program's own list."""
    texts = (read_again(entry.message.text)[0] for entry in gone if is_record(entry.message))
    return [text for text in texts if text]


def _earlier_prose(earlier: Sequence[Prose], most: int) -> Prose:
    """The newest of these that fit together; of the newest alone its beginning."""
    kept: list[Prose] = []
    left = most
    for one in reversed(earlier):
        left -= text_tokens(one.text) + 1
        if left < 0:
            break
        kept.append(one)
    if earlier and not kept and most >= SMALLEST_PROSE_TOKENS // 3:
        kept = [replace(earlier[-1], text=cut_text(earlier[-1].text, most))]
    if not kept:
        return Prose()
    return replace(kept[0], text="\n\n".join(one.text for one in kept[::-1]), of=_of(kept))


def _of(them: Iterable[Prose]) -> tuple[Range, ...]:
    return merge_ranges(span for one in them for span in one.of)


def _most_prose(job: SummaryJob, room: int, prior: Prose) -> int:
    """Raw tokens for a model's prose; 0: none is asked."""
    if not job.has_summarizer:
        return 0
    most = min(int(PROSE_SHARE * room), job.budget_tokens // 10, job.settings.summarize.max_tokens or room)
    most = max(most, text_tokens(prior.text))
    return most if most >= SMALLEST_PROSE_TOKENS else 0


def _not_told(hidden: Sequence[Range], prior: Prose, history: History, most_raw: int) -> tuple[list[Entry], int]:
    """The hidden messages that no prose speaks of yet, and how many of the middle are not read.

    most_raw  of questions to a model; both ends get as much, so the middle is left out first
    """
    ranges = without_ranges(hidden, prior.of)
    entries = history.entries
    front = list(_until(most_raw, (entries[seq - 1] for seq in seqs(ranges))))
    reached = front[-1].seq if front else 0
    behind = without_ranges(ranges, [(1, reached)])
    newest = (entries[seq - 1] for first, last in reversed(behind) for seq in range(last, first - 1, -1))
    back = list(_until(most_raw, newest))
    count = sum(last - first + 1 for first, last in ranges)
    return [*front, *reversed(back)], count - len(front) - len(back)


def _until(most_raw: int, them: Iterable[Entry]) -> Iterator[Entry]:
    """The number of messages that fill so many raw tokens in their shortest forms."""
    shortest = MESSAGE_CHARS[-1] // 4
    for entry in them:
        if most_raw < 0:
            return
        most_raw -= min(message_tokens(entry.message), shortest)
        yield entry


def _asked(
    draft: Draft,
    job: SummaryJob,
    gone: Sequence[Entry],
    view: View,
    earlier: Sequence[Prose],
    prior: Prose,
    ranges: Sequence[Range],
    *,
    most: int,
    left_out: int = 0,
) -> Asking:
    """A model's text about the messages that go and the earlier prose; `prior` if it writes nothing.

    ranges    the messages that its prose then covers, beside the earlier prose's
    most      raw tokens of the answer; 0: it is not asked
    left_out  see `write`
    """
    history = draft.history
    prior = replace(prior, important=named_by(prior.text, history.head))
    if not most:
        return Written(prior.text, prior.made_by), prior
    shown = [entry for entry in gone if not is_record(entry.message)]
    staying = [entry for entry in history.seen_as(view).visible() if entry.seq > gone[-1].seq]
    said = ("\n".join((one.message.text, *(call.arguments for call in one.message.tool_calls))) for one in staying)
    newest = history.message(history.newest_user).text if history.newest_user else ""
    written = yield from write(
        [_numbered(entry) if job.has_recall else entry.message for entry in shown],
        existing=[*_records(gone), *(one.text for one in earlier)],
        live=_live(draft, gone, int(LIVE_SHARE * job.input_tokens) - draft.meter.fixed_raw),
        focus=job.focus,
        max_tokens=most,
        input_tokens=job.input_tokens,
        left_out=left_out,
        form=job.settings.summarize.form,
        scores=lambda: [one.score for one in importances(shown).values()],
        surroundings=Surroundings(newest, list(map(_one_line, staying)), "\n".join(said)),
    )
    if not written.prose:
        made_by = prior.made_by if prior.text else written.made_by
        # Code tells the rest that the earlier prose does not.
        both = f"{made_by.removesuffix(_AND_CODE)}{_AND_CODE}" if prior.text and written.failures else made_by
        return Written(prior.text, both, written.failures), replace(prior, made_by=made_by)
    of = merge_ranges([*_of(earlier), *ranges])
    named = named_by(written.prose, history.head)
    return written, Prose(written.prose, written.made_by, named, is_merged=True, of=of)


def _numbered(entry: Entry) -> Message:
    """The message with its number, by which a model can name it."""
    text = f"({entry.seq}) {content_text(entry.message.content)}"
    return msgspec.structs.replace(entry.message, content=text)


def _one_line(entry: Entry) -> str:
    message = entry.message
    calls = ", ".join(call.name for call in message.tool_calls)
    said = " ".join(message.text[: 4 * LINE_CHARS].split())[:LINE_CHARS]
    return f"({entry.seq}) {message.role}: {' '.join(filter(None, [said, f'calls {calls}' if calls else '']))}"


def _live(draft: Draft, gone: Sequence[Entry], room_raw: int) -> list[Message]:
    """The request's own beginning up to the last covered message; empty if it contains stubs or room is short."""
    history, last = draft.history, gone[-1].seq
    covered_seqs = {entry.seq for entry in gone}
    messages: list[Message] = []
    for item in (*history.view.items, Verbatim(history.view.tail, history.head)):
        if isinstance(item, Verbatim):
            messages += [entry.message for entry in history.entries[item.first - 1 : min(item.last, last)]]
            if item.last >= last:
                break
        elif isinstance(item, Stub) and item.seq in covered_seqs:
            return []
        elif (shown := history.shown(item)) is not None:
            messages.append(shown)
    messages = repair(messages, draft.meter.provider)
    return messages if sum(map(message_tokens, messages)) <= room_raw else []


def _neighbours(draft: Draft, older: Sequence[Block]) -> tuple[list[Summary], list[Part]]:
    """Earlier records that the new one takes in, and the parts that go with them: if nothing between them stays.

    Otherwise the record would tell of later things at an earlier place.
    """
    going = {id(block) for block in older}
    absorbed = [part for part in draft.parts if isinstance(part, Summary)]
    places = [place for place, part in enumerate(draft.parts) if id(part) in going or isinstance(part, Summary)]
    between = draft.parts[places[0] : places[-1] + 1]
    if any(isinstance(part, Block) and not part.is_locked and id(part) not in going for part in between):
        return [], []
    return absorbed, [part for part in between if isinstance(part, Summary) or (isinstance(part, Marker) and part.text)]
