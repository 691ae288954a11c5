"""Create stored sessions of any length, with the compactions, summaries and reports that they would have."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.sessions import generated
from nca.context.view import Summary, Verbatim
from nca.messages import Entry, Message, Usage
from nca.sessions import Store
from nca.sessions.transfer import FIRST_VIEW, SessionCopy, ViewCopy, new_copy
from nca.sessions.usage import UsageRow
from nca.sessions.views import CompactionRecord, SummaryPlace

MODEL = "scripted/model"
WINDOW_TOKENS = 32_000
"""So small that a hundred messages have filled it: each length is measured with the same view."""
_MESSAGES_A_COMPACTION = 60
_KEPT = 48
"""Messages that a compaction leaves as they are, as the engine's own do at this window."""
_POOL = 10_000
_SUMMARY_WORDS = 500
_TURN = 6


def make(path: Path, length: int) -> str:
    """A store with one session of `length` messages; gives its id."""
    with Store.open(path) as store:
        return store.add(copy_of(length)).id


def copy_of(length: int) -> SessionCopy:
    """The session as one value. Its messages come from a pool, so that a million fit into memory."""
    pool = generated(min(length, _POOL))
    system, talk = pool[0], pool[1:]
    at = time.time() - length
    entries = [Entry(1, system, at)]
    whole = talk[: len(talk) - len(talk) % _TURN] or talk
    entries += [Entry(seq, whole[(seq - 2) % len(whole)], at + seq) for seq in range(2, length + 1)]
    copy = new_copy(entries, directory="/project", model=MODEL)
    points = list(range(_MESSAGES_A_COMPACTION, length, _MESSAGES_A_COMPACTION))
    heads = [point - (point - 1) % _TURN for point in points if point > _KEPT + 2 * _TURN]
    views = [FIRST_VIEW, *_views(heads)]
    summaries = tuple(_summary(number, view.tail - 1, talk) for number, view in enumerate(views[1:], 1))
    return SessionCopy(
        info=copy.info,
        entries=copy.entries,
        views=tuple(views),
        head_view=len(views) - 1,
        summaries=summaries,
        compactions=tuple(_records(heads)),
        usage=tuple(_reports(length, heads)),
    )


def _views(heads: list[int]) -> Iterator[ViewCopy]:
    for number, head in enumerate(heads, 1):
        items = (Verbatim(1, 1), SummaryPlace(number))
        yield ViewCopy(number, number - 1, items, head - _KEPT + 1)


def _summary(number: int, last: int, talk: list[Message]) -> Summary:
    words = " ".join(message.text for message in talk[number % 90 : number % 90 + 9]).split()[:_SUMMARY_WORDS]
    prose = f"### 1. Goal and intent\nPart {number}: {' '.join(words)}"
    header = "## Conversation Summary (Earlier Context)"
    return Summary(f"{number:08x}", ((2, last),), f"{header}\n{prose}", prose, MODEL)


def _records(heads: list[int]) -> Iterator[CompactionRecord]:
    for number, head in enumerate(heads, 1):
        yield CompactionRecord(
            trigger="threshold",
            stages=("summarize",),
            tokens_before=16_000,
            tokens_after=10_000,
            kept_facts=9,
            total_facts=10,
            seconds=1.0,
            at=float(head),
            view_before=number - 1,
            view_after=number,
            id=f"c{number}",
        )


def _reports(length: int, heads: list[int]) -> Iterator[UsageRow]:
    """Three requests a turn."""
    view = 0
    for seq in range(2, length, 2):
        while view < len(heads) and heads[view] < seq:
            view += 1
        yield UsageRow(seq, MODEL, Usage(12_000, 60), view, float(seq))
