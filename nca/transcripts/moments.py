"""Where in a session things happened: after which message each compaction was, what stands for which message."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from nca.context.view import Marker, Range, Stub, Summary, seqs
from nca.sessions.transfer import SessionCopy
from nca.sessions.views import CompactionRecord


def compacted_after(copy: SessionCopy) -> list[tuple[int, CompactionRecord]]:
    """Each compaction with the last message that was there, oldest first.

    The store does not keep that number. It lies between what the view covers and the end of the log, and never before
    the compaction before; within that, the clock decides.
    """
    covered = {view.number: view.tail - 1 for view in copy.views}
    clock = list(accumulate((entry.at for entry in copy.entries), max))
    found: list[tuple[int, CompactionRecord]] = []
    last = 0
    for record in sorted(copy.compactions, key=lambda record: record.view_after):
        last = max(last, covered.get(record.view_after, 0), bisect_right(clock, record.at))
        found.append((min(last, len(copy.entries)), record))
    return found


def standing_for(copy: SessionCopy) -> dict[int, Stub | Summary | Marker]:
    """For each message that the model no longer sees as it is: what it sees in its place."""
    found: dict[int, Stub | Summary | Marker] = {}
    for item in copy.view(copy.head_view).items:
        match item:
            case Stub(seq):
                found[seq] = item
            case Summary(ranges=ranges) | Marker(ranges=ranges):
                found |= dict.fromkeys(seqs(ranges), item)
    return found


def brought(copy: SessionCopy, record: CompactionRecord) -> list[Summary]:
    """The summaries that a compaction made: those of its view that the view before it did not have."""
    before = _summaries(copy, record.view_before)
    return [summary for summary in _summaries(copy, record.view_after) if summary not in before]


def in_words(ranges: tuple[Range, ...]) -> str:
    """messages 1–8, 12"""
    spans = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in ranges)
    return f"message{'s' * (len(ranges) > 1 or ranges[0][0] != ranges[0][1])} {spans}" if ranges else "no messages"


def _summaries(copy: SessionCopy, number: int) -> list[Summary]:
    if number not in {view.number for view in copy.views}:
        return []
    return [item for item in copy.view(number).items if isinstance(item, Summary)]
