"""The oldest messages that cannot stay in any case: no stage needs to look at them.

Truncation hides whole turns, oldest first, and shortening leaves words and calls as they are. So once the words and
calls of the newest messages alone have no room, every turn before them goes, whatever the stages do with results.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Set

from nca.context.history import History
from nca.context.record.past import is_answer
from nca.context.restore import block_of
from nca.context.rules.calls import is_valid
from nca.context.rules.messages import is_full
from nca.context.rules.untouchable import untouchable
from nca.context.stages.truncate import truncated
from nca.context.tokens import MESSAGE_TOKENS
from nca.context.view import PASSED, Marker, Verbatim, ordered, without_ranges


def without_oldest(history: History, room_raw: int) -> tuple[History, int]:
    """The log with a view that hides what cannot stay behind a marker; and how many turns that are.

    Only the open tail is looked at. Its first turn stays, and those with untouchable messages.
    room_raw  raw tokens that there are at most beside the untouchable messages
    """
    view, entries, locked = history.view, history.entries, untouchable(history)
    end = _end(history, locked, room_raw)
    messages = ((entry.seq, entry.message) for entry in entries[view.tail - 1 : end])
    said = [seq for seq, message in messages if message.role == "user" and not message.is_synthetic]
    # Behind a plain answer nothing waits for a result, so there is a legal cut.
    cuts = [seq for seq in said[1:] if is_answer(history.message(seq - 1))]
    places = (bisect_right(cuts, seq) for seq in locked)
    kept = [(cuts[place - 1], cuts[place] - 1) for place in places if 0 < place < len(cuts)]
    gone = [*without_ranges([(cuts[0], cuts[-1] - 1)], kept)] if len(cuts) > 1 else []
    turns = sum(bisect_left(said, last) - bisect_left(said, first) for first, last in gone)
    if said and said[-1] == history.newest_user:
        # Of the turn in progress, steps go.
        steps = (block_of(history, said[-1])[1] + 1, block_of(history, end)[0] - 1)
        staying = [block_of(history, seq) for seq in locked if steps[0] <= seq <= steps[1]]
        gone += without_ranges([steps], staying) if steps[0] <= steps[1] else ()
    if not gone:
        return history, 0
    shown = without_ranges([(view.tail, history.head)], gone)
    marker = truncated(PASSED, [Marker(PASSED, tuple(gone), "")])
    items = [*view.items, marker, *(Verbatim(*run) for run in shown)]
    return history.seen_as(ordered(items, history.head, view.aside)), turns


def _end(history: History, locked: Set[int], room_raw: int) -> int:
    """The newest message from which on words and calls exceed the room; 0 if none does."""
    is_locked = False
    for seq in range(history.head, history.view.tail - 1, -1):
        message, is_locked = history.message(seq), is_locked or seq in locked
        if message.role != "tool":
            # Repairs take away what is not sound, and the frames of messages that are joined.
            if not is_locked and is_full(message) and all(map(is_valid, message.tool_calls)):
                room_raw -= history.run_tokens(seq, seq) - MESSAGE_TOKENS
            is_locked = False
            if room_raw < 0:
                return seq
    return 0
