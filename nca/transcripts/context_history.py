"""The size of the context over a session, and what it consisted of: tokens by kind, as in `/context`.

The totals are what the provider reported. Their split is estimated with the counts of `nca.context.parts` and the
token density learned from the session's own reports. The remainder goes with every request: the system prompt and the
tools, which a session does not store.
"""

from __future__ import annotations

from dataclasses import dataclass

from nca.context.calibration import Calibration, Lessons
from nca.context.history import History
from nca.context.parts import LABELS, TALK, LogParts, split
from nca.context.view import View
from nca.sessions.transfer import SessionCopy
from nca.transcripts.compactions import compaction_positions

FIXED = "fixed"
STACK = {FIXED: "system prompt and tools"} | {kind: LABELS[kind] for kind in TALK}
"""The kinds with their labels, from the bottom of the chart up."""


@dataclass(frozen=True, slots=True)
class ContextSize:
    """The size of the context when the log ended at `seq`, and the view that was in force."""

    seq: int
    tokens: int
    view: int


def context_sizes(copy: SessionCopy) -> tuple[list[ContextSize], bool]:
    """The context's size over the log, and whether it is estimated because the session has no reports (an import)."""
    done = [(seq, record) for seq, record in compaction_positions(copy) if not record.undone]
    if not copy.usage:
        return _estimated(copy, [(seq, record.view_after) for seq, record in done]), True
    timed = [
        (row.seq, row.at, ContextSize(row.seq, row.usage.prompt_tokens, row.view_id)) for row in copy.usage if row.seq
    ]
    for seq, record in done:
        timed.append((seq, record.at, ContextSize(seq, record.tokens_before, record.view_before)))
        timed.append((seq, record.at, ContextSize(seq, record.tokens_after, record.view_after)))
    # The sort is stable, so a compaction's size before stays in front of its size after.
    return [size for _, _, size in sorted(timed, key=lambda one: one[:2])], False


class Composition:
    """Splits the context sizes of one session by kind."""

    def __init__(self, copy: SessionCopy) -> None:
        self._views: dict[int, View] = {view.number: copy.view(view.number) for view in copy.views}
        self._parts = LogParts(History(copy.entries))
        self._is_estimate = not copy.usage
        self._ratio = Calibration.unlearned().ratio if self._is_estimate else self._learned(copy)

    def split(self, size: ContextSize) -> dict[str, int]:
        """Tokens by kind, in the order of STACK. They add up to `size.tokens`."""
        raw = self._parts.shown(size.view, self._views.get(size.view, View()), size.seq)
        talk = size.tokens if self._is_estimate else min(size.tokens, round(self._ratio * sum(raw.values())))
        shares = split(talk, {kind: raw[kind] for kind in ("conversation", *TALK)}) if talk else {}
        return {FIXED: size.tokens - talk} | {kind: shares.get(kind, 0) for kind in TALK}

    def _learned(self, copy: SessionCopy) -> float:
        """Tokens per raw token by the session's reports; 1.0 if there are too few."""
        lessons = Lessons()
        for row in copy.usage:
            if row.seq and row.usage.prompt_tokens:
                raw = self._parts.shown(row.view_id, self._views.get(row.view_id, View()), row.seq)
                lessons = lessons.add(sum(raw.values()), 0, row.usage.prompt_tokens)
        fitted = lessons.fit(1.0)
        return fitted[0] if fitted is not None else 1.0


def _estimated(copy: SessionCopy, changes: list[tuple[int, int]]) -> list[ContextSize]:
    """The estimated size after each message. `changes`: the seq after which each compacted view came into force."""
    calibration, history = Calibration.unlearned(), History(copy.entries)
    starts = [(0, 0), *changes]
    ends = [seq for seq, _ in changes] + [history.head]
    found: list[ContextSize] = []
    for (start, number), end in zip(starts, ends, strict=True):
        view = copy.view(number)
        items = history.tokens_of(view) - history.run_tokens(view.tail, history.head)
        for seq in range(start, end + 1):
            tokens = calibration.tokens(items + history.run_tokens(view.tail, seq))
            found.append(ContextSize(seq, tokens, number))
    return found
