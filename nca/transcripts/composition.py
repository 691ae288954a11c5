"""What the context consisted of over a session: at each request its tokens by kind, as /context tells them apart.

The whole is what the provider reported. How it divides is estimated with the counts of `nca.context.parts` and the
density that the session's own reports tell; what they do not explain goes along with every request: system prompt and
tools, which a session does not keep.
"""

from __future__ import annotations

from dataclasses import dataclass

from nca.context.calibration import Calibration, Lessons
from nca.context.history import History
from nca.context.parts import LABELS, TALK, LogParts, split
from nca.context.view import View
from nca.sessions.transfer import SessionCopy
from nca.transcripts.moments import compacted_after

FIXED = "fixed"
STACK = {FIXED: "system prompt and tools"} | {kind: LABELS[kind] for kind in TALK}
"""From the bottom up, with the words for each."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The context when the log ended at `seq`: its tokens, and the view that was in force."""

    seq: int
    tokens: int
    view: int


def moments(copy: SessionCopy) -> tuple[list[Moment], bool]:
    """The context over the log, and whether it is an estimate: a session without reports (an imported one)."""
    marks = [(seq, record) for seq, record in compacted_after(copy) if not record.undone]
    if not copy.usage:
        return _estimated(copy, [(seq, record.view_after) for seq, record in marks]), True
    timed = [(row.seq, row.at, Moment(row.seq, row.usage.prompt_tokens, row.view_id)) for row in copy.usage if row.seq]
    for seq, record in marks:
        timed.append((seq, record.at, Moment(seq, record.tokens_before, record.view_before)))
        timed.append((seq, record.at, Moment(seq, record.tokens_after, record.view_after)))
    # A sort that is stable: before and after of one compaction stay in this order.
    return [moment for _, _, moment in sorted(timed, key=lambda one: one[:2])], False


class Composition:
    """Divides moments of one session."""

    def __init__(self, copy: SessionCopy) -> None:
        self._views: dict[int, View] = {view.number: copy.view(view.number) for view in copy.views}
        self._parts = LogParts(History(copy.entries))
        self._is_estimate = not copy.usage
        self._ratio = Calibration.unlearned().ratio if self._is_estimate else self._learned(copy)

    def of(self, moment: Moment) -> dict[str, int]:
        """Tokens by kind, in the order of STACK; they sum to the moment's."""
        raw = self._parts.shown(moment.view, self._views.get(moment.view, View()), moment.seq)
        talk = moment.tokens if self._is_estimate else min(moment.tokens, round(self._ratio * sum(raw.values())))
        said = split(talk, {kind: raw[kind] for kind in ("conversation", *TALK)}) if talk else {}
        return {FIXED: moment.tokens - talk} | {kind: said.get(kind, 0) for kind in TALK}

    def _learned(self, copy: SessionCopy) -> float:
        """Tokens per raw token, by the session's reports; as they are counted where there are too few."""
        lessons = Lessons()
        for row in copy.usage:
            if row.seq:
                raw = self._parts.shown(row.view_id, self._views.get(row.view_id, View()), row.seq)
                lessons = lessons.add(sum(raw.values()), 0, row.usage.prompt_tokens)
        fitted = lessons.fit(1.0)
        return fitted[0] if fitted is not None else 1.0


def _estimated(copy: SessionCopy, changes: list[tuple[int, int]]) -> list[Moment]:
    """The tokens after each message, by the view that was in force then."""
    calibration, history = Calibration.unlearned(), History(copy.entries)
    starts = [(0, 0), *changes]
    ends = [seq for seq, _ in changes] + [history.head]
    found: list[Moment] = []
    for (start, number), end in zip(starts, ends, strict=True):
        view = copy.view(number)
        items = history.tokens_of(view) - history.run_tokens(view.tail, history.head)
        for seq in range(start, end + 1):
            tokens = calibration.tokens(items + history.run_tokens(view.tail, seq))
            found.append(Moment(seq, tokens, number))
    return found
