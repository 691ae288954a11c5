"""Show hidden or stubbed messages again as they are.

Undo goes back to a whole earlier view; this keeps the view and puts originals back into it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nca.context.history import History
from nca.context.record import ledger as facts
from nca.context.record.allocation import allocate
from nca.context.record.pieces import pieces_of
from nca.context.rules.cut_points import blocks
from nca.context.stages.summarize import compose
from nca.context.summary import HEADER, Written
from nca.context.view import (
    Item,
    Marker,
    Range,
    Stub,
    Summary,
    Verbatim,
    View,
    check_partition,
    merge_ranges,
    ranges_of,
    seqs,
    without_ranges,
)
from nca.messages import Message

RECORD_TOKENS = 4_000
"""Raw tokens for what a summary keeps by code when it is made anew."""
NEAR = 64
"""Messages to both sides of one that are looked at first: a log may have a million, and a call's results are near."""


def block_of(history: History, seq: int) -> Range:
    """The smallest stretch around a message that may stand by itself: a call comes with its results."""
    head = history.head
    if not 1 <= seq <= head:
        raise ValueError(f"the log has no message {seq}")
    reach = NEAR
    while True:
        before, until = max(0, seq - 1 - reach), min(head, seq + reach)
        messages = [entry.message for entry in history.entries[before:until]]
        start, end = next(span for span in blocks(messages) if span[0] <= seq - 1 - before <= span[1])
        is_all = before == 0 and until == head
        is_inside = (start > 0 or before == 0) and (end < len(messages) - 1 or until == head)
        if is_all or (is_inside and _is_closed(messages[start : end + 1])):
            return before + start + 1, before + end + 1
        reach *= 4


def _is_closed(messages: Sequence[Message]) -> bool:
    """Whether calls and results of a stretch belong together: then nothing far from it is a part of it."""
    calls = sorted(call.id for message in messages for call in message.tool_calls)
    return calls == sorted(message.tool_call_id for message in messages if message.role == "tool")


def restored(history: History, ranges: Sequence[Range]) -> View:
    """The view with these messages as they are, in the order of the log; every other item stays.

    A summary or marker stands for what is left of its messages, and goes where nothing is. What its ledger held of
    other summaries is handed to the newest of those, within RECORD_TOKENS.
    """
    wanted = without_ranges(ranges, history.view.aside)
    items: list[Item] = []
    shown: list[Range] = []
    orphaned: list[Summary] = []
    for item in history.view.items:
        if isinstance(item, Verbatim):
            shown.append((item.first, item.last))
        elif isinstance(item, Stub):
            if without_ranges(((item.seq, item.seq),), wanted):
                items.append(item)
            else:
                shown.append((item.seq, item.seq))
        else:
            left = without_ranges(item.ranges, wanted)
            shown += without_ranges(item.ranges, left)
            if left:
                items.append(msgspec.structs.replace(item, ranges=left))
            elif isinstance(item, Summary) and item.ledger:
                orphaned.append(item)
    if orphaned:
        items = _with_ledger(history, items)
    items += [Verbatim(first, last) for first, last in merge_ranges(shown)]
    return _ordered(items, history.view)


def _ordered(items: list[Item], before: View) -> View:
    """Each item where its first message stood, as stages place them."""
    placed, tail = sorted(items, key=lambda item: min(first for first, _ in ranges_of(item))), before.tail
    if placed and isinstance(last := placed[-1], Verbatim) and last.last == tail - 1:
        tail = last.first
        placed.pop()
    view = View(tuple(placed), tail, before.aside)
    check_partition(view)
    return view


def _with_ledger(history: History, items: list[Item]) -> list[Item]:
    """The newest summary that is left keeps the facts of all that are left."""
    left = [item for item in items if isinstance(item, Summary)]
    if not left or any(item.ledger for item in left):
        return items
    covered = merge_ranges(span for item in left for span in item.ranges)
    known = facts.merge([facts.extract([history.entries[seq - 1] for seq in seqs(covered)], history.facts)])
    newest = left[-1]
    header = newest.text.partition("\n")[0] or HEADER
    full = compose(
        newest.ranges,
        Written(newest.prose, newest.made_by),
        known,
        allocate(pieces_of(known), RECORD_TOKENS, RECORD_TOKENS),
        rank=newest.rank,
        role=newest.role,
        header=header,
        answered=history.last_answer,
    )
    full = msgspec.structs.replace(full, id=newest.id)
    return [full if item is newest else item for item in items]


def hidden_item(view: View, wanted: str) -> Summary | Marker | None:
    """The summary or marker whose id begins with `wanted`; None where none, or more than one, does."""
    found = [item for item in view.items if isinstance(item, Summary | Marker) and item.id.startswith(wanted)]
    return found[0] if len(found) == 1 else None
