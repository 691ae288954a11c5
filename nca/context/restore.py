"""Show hidden or stubbed messages again as they are: some, or all that no person has taken away.

Undo goes back to a whole earlier view; this keeps the view and puts originals back into it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nca.context.fit import NEWEST_SHARE
from nca.context.history import History
from nca.context.rules.cut_points import blocks
from nca.context.rules.untouchable import COLLAPSE
from nca.context.view import (
    Item,
    Marker,
    Range,
    Stub,
    Summary,
    Verbatim,
    View,
    hidden_by,
    merge_ranges,
    ordered,
    ranges_of,
    without_ranges,
)
from nca.messages import Message

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

    A summary or marker stays for the rest of its messages, and disappears without any.
    """
    items: list[Item] = []
    shown: list[Range] = []
    for item in history.view.items:
        if isinstance(item, Verbatim):
            shown.append((item.first, item.last))
        elif isinstance(item, Stub):
            if without_ranges(((item.seq, item.seq),), ranges):
                items.append(item)
            else:
                shown.append((item.seq, item.seq))
        else:
            left = without_ranges(item.ranges, ranges)
            shown += without_ranges(item.ranges, left)
            if left:
                items.append(msgspec.structs.replace(item, ranges=left))
    items += [Verbatim(first, last) for first, last in merge_ranges(shown)]
    return ordered(items, history.view.tail - 1, history.view.aside)


def hidden_item(view: View, wanted: str) -> Summary | Marker | None:
    """The summary or marker with an id that begins with `wanted`; None if none, or more than one, does."""
    found = [item for item in view.items if isinstance(item, Summary | Marker) and item.id.startswith(wanted)]
    return found[0] if len(found) == 1 else None


def with_pins(history: History) -> History:
    """The log with a view that shows every pinned message, whatever hid it before."""
    hidden = [block_of(history, pin) for pin in sorted(history.pins) if pin <= history.head and _is_told(history, pin)]
    return history.seen_as(restored(history, hidden)) if hidden else history


def _is_told(history: History, seq: int) -> bool:
    item = hidden_by(history.view, seq)
    return item is not None and bool(item.text)


def never_compacted(history: History) -> History:
    """The log with a view that shows all of it, except for what a person has cleared, put aside or shortened."""
    view = history.view
    if not any((isinstance(item, Summary | Marker) and item.text) or _is_shortened(item) for item in view.items):
        return history
    staying: list[Item] = [item for item in view.items if isinstance(item, Marker) and not item.text]
    staying += [item for item in view.items if isinstance(item, Stub) and not _is_shortened(item)]
    hidden = [*view.aside, *(span for item in staying for span in ranges_of(item))]
    shown = [Verbatim(*run) for run in without_ranges([(1, history.head)], hidden)]
    return history.seen_as(ordered([*staying, *shown], history.head, view.aside))


def as_never_compacted(history: History, room_raw: int) -> tuple[History, bool]:
    """The same, for a compaction to start from: an earlier one's omissions do not affect its outcome.

    Beside it: whether it can be enough to shorten results. If the words and calls do not fit into `room_raw`, it
    cannot, and the history is returned unchanged. The newest message is cut if it needs more than half of the room.
    """
    view = history.view
    has_prose = any(isinstance(item, Summary) and item.prose for item in view.items)
    if has_prose or (history.pins and any(map(_is_shortened, view.items))):
        # A model's prose cannot be made again, and a message that was pinned in its cut form keeps that form.
        return history, True
    whole = never_compacted(history)
    most_of_newest = int(NEWEST_SHARE * room_raw)
    for entry in history.backwards():
        if entry.message.role != "tool":
            tokens = history.run_tokens(entry.seq, entry.seq)
            room_raw -= min(tokens, most_of_newest) if entry.seq == history.newest_user else tokens
        if room_raw < 0:
            return history, False
    return whole, True


def _is_shortened(item: Item) -> bool:
    return isinstance(item, Stub) and item.stage != COLLAPSE
