"""Keep the shown part of a session near its window's size, before anything is counted.

A log that another program wrote, or one that was never compacted, may be a hundred windows long. The first request must
compact it, and the record is made of the whole log, whatever the view shows. So the view begins with the newest
messages, and the cost of opening, `/context` and the first request depends on the window.
"""

from __future__ import annotations

from nca.context.history import History
from nca.context.restore import block_of
from nca.context.stages.truncate import TRUNCATED
from nca.context.view import Item, Marker, Verbatim, View, how_to_recall, without_ranges

MOST_WINDOWS = 4
"""A view that shows less than this is left to compactions."""
_AT_ONCE = 256
"""Messages that are counted together."""


def within_window(history: History, window_tokens: int) -> View:
    """The current view; if it shows MOST_WINDOWS times `window_tokens`, one that begins with the newest of them.

    The tail begins with a message of the user if there is one. Earlier messages are behind a marker, except for system
    messages at the beginning of the log, pins, and the newest message of the user. If there are no others, the
    view stays. Hidden messages are not read.
    """
    view, head = history.view, history.head
    tokens, last = 0, head
    while last >= view.tail and tokens <= MOST_WINDOWS * window_tokens:
        first = max(view.tail, last - _AT_ONCE + 1)
        tokens += history.run_tokens(first, last)
        last = first - 1
    if tokens <= MOST_WINDOWS * window_tokens:
        return view
    start, room = head, window_tokens
    while start > view.tail and room > 0:
        room -= history.run_tokens(start, start)
        start -= 1
    # A step stays or goes whole: neither the tail nor a pin takes a result without its call.
    begin = max(view.tail, block_of(history, _beginning(history, start))[0])
    wanted = {*history.pins, history.newest_user or 0}
    kept = [block_of(history, seq) for seq in wanted if view.tail <= seq < begin]
    systems = view.tail
    while systems < begin and history.message(systems).role == "system":
        kept.append((systems, systems))
        systems += 1
    gone = without_ranges([(view.tail, begin - 1)], kept)
    if not gone:
        return view
    runs = without_ranges([(view.tail, begin - 1)], gone)
    marker = Marker(f"opened{begin}", gone, f"{TRUNCATED} [{how_to_recall(gone)}]")
    placed: list[Item] = sorted([marker, *(Verbatim(*run) for run in runs)], key=_begins)
    return View((*view.items, *placed), begin, view.aside)


def _beginning(history: History, start: int) -> int:
    """The first message from `start` on that a view may begin with."""
    for roles in (("user",), ("assistant", "system")):
        for seq in range(start, history.head + 1):
            if history.message(seq).role in roles:
                return seq
    return start


def _begins(item: Item) -> int:
    return item.ranges[0][0] if isinstance(item, Marker) else item.first if isinstance(item, Verbatim) else 0
