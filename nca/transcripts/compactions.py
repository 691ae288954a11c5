"""Where compactions happened in a session's log, and what replaced each message."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from nca.context.view import Marker, Stub, Summary, seqs
from nca.sessions.transfer import SessionCopy
from nca.sessions.view_rows import PUTS_ASIDE, CompactionRecord


def compactions(copy: SessionCopy) -> list[CompactionRecord]:
    """Without the views of rewinds, and what a person collapsed, expanded or cleared."""
    return [one for one in copy.compactions if one.trigger not in PUTS_ASIDE and not one.is_by_hand]


def compaction_positions(copy: SessionCopy) -> list[tuple[int, CompactionRecord]]:
    """Each compaction with the seq of the last message before it, oldest first.

    The view has it. One of an older nca does not: there it lies between the last message that the view covers and the
    end of the log, and not before the previous compaction. Within these bounds the timestamps decide.
    """
    begun = {view.number: view.since - 1 for view in copy.views if view.since}
    covered = {view.number: view.tail - 1 for view in copy.views}
    clock = list(accumulate((entry.at for entry in copy.entries), max))
    found: list[tuple[int, CompactionRecord]] = []
    last = 0
    for record in sorted(compactions(copy), key=lambda record: record.view_after):
        known = begun.get(record.view_after)
        last = max(last, covered.get(record.view_after, 0), bisect_right(clock, record.at) if known is None else known)
        found.append((min(last, len(copy.entries)), record))
    return found


def replacements(copy: SessionCopy) -> dict[int, Stub | Summary | Marker | None]:
    """By seq, the view item that replaces a message the model no longer sees in full; None for one that is aside."""
    view = copy.view(copy.head_view)
    found: dict[int, Stub | Summary | Marker | None] = dict.fromkeys(seqs(view.aside))
    for item in view.items:
        match item:
            case Stub(seq):
                found[seq] = item
            case Summary(ranges=ranges) | Marker(ranges=ranges):
                found |= dict.fromkeys(seqs(ranges), item)
    return found


def new_summaries(copy: SessionCopy, record: CompactionRecord) -> list[Summary]:
    """The summaries that a compaction made: those in its view that the previous view did not have."""
    before = _summaries(copy, record.view_before)
    return [summary for summary in _summaries(copy, record.view_after) if summary not in before]


def _summaries(copy: SessionCopy, number: int) -> list[Summary]:
    view = next((view for view in copy.views if view.number == number), None)
    return [item for item in copy.shown_by(view).items if isinstance(item, Summary)] if view else []
