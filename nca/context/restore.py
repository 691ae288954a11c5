"""Show hidden or stubbed messages again as they are.

Undo goes back to a whole earlier view; this keeps the view and puts originals back into it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nca.context.history import History
from nca.context.rules.cut_points import blocks
from nca.context.view import (
    Item,
    Marker,
    Range,
    Stub,
    Summary,
    Verbatim,
    View,
    merge_ranges,
    ordered,
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

    A summary or marker stands for what is left of its messages, and goes where nothing is.
    """
    wanted = without_ranges(ranges, history.view.aside)
    items: list[Item] = []
    shown: list[Range] = []
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
    items += [Verbatim(first, last) for first, last in merge_ranges(shown)]
    return ordered(items, history.view.tail - 1, history.view.aside)


def hidden_item(view: View, wanted: str) -> Summary | Marker | None:
    """The summary or marker whose id begins with `wanted`; None where none, or more than one, does."""
    found = [item for item in view.items if isinstance(item, Summary | Marker) and item.id.startswith(wanted)]
    return found[0] if len(found) == 1 else None
