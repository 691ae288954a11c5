"""The context over a session's turns as an SVG chart: how full it was, of what, and where it was compacted.

The top line shows what the provider reported for each request, or an estimate if the session has no reports. The sizes
before and after a compaction come from its record.

The split by kind, as in `/context`, is estimated with the counts of `nca.context.parts` and the token density learned
from the session's own reports. The remainder goes with every request: the system prompt and the tools, which a session
does not store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nca.context.calibration import Calibration, Lessons
from nca.context.history import History
from nca.context.parts import LABELS, TALK, LogParts, split
from nca.context.view import View
from nca.sessions.transfer import SessionCopy
from nca.sessions.views import CompactionRecord
from nca.transcripts.descriptions import compaction_positions

WIDTH, HEIGHT = 960, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 64, 32
_GROUND = HEIGHT - _BOTTOM
_MOST_POINTS = 300
_MOST_TICKS = 60
_MOST_NUMBERED = 24
"""With more compactions than this, their marks have no numbers."""
_LEGEND_Y = 34
_CHAR_WIDTH = 6.2
"""Pixels per character of the chart's 11 px text, on the wide side."""
FIXED = "fixed"
STACK = {FIXED: "system prompt and tools"} | {kind: LABELS[kind] for kind in TALK}
"""The kinds with their labels, from the bottom of the chart up."""


def timeline(copy: SessionCopy) -> str:
    """The chart; "" if there is nothing to draw. It holds numbers only, no text of the session."""
    sizes, is_estimate = context_sizes(copy)
    head = len(copy.entries)
    if head < 2 or not sizes:
        return ""
    marks = compaction_positions(copy)
    sizes = _thinned(sizes)
    top = max([size.tokens for size in sizes] + [record.tokens_before for _, record in marks] + [1])
    source = "estimated" if is_estimate else "reported; its parts are estimated"
    line = " ".join(f"{_x(size.seq, head)},{_y(size.tokens, top)}" for size in sizes)
    composition = Composition(copy)
    parts = [composition.split(size) for size in sizes]
    kinds = [kind for kind in STACK if any(one[kind] for one in parts)]
    return "\n".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Context over the turns">',
            f'<text x="{_LEFT}" y="14">context in tokens ({source})</text>',
            *_legend(kinds),
            *_areas(kinds, parts, [_x(size.seq, head) for size in sizes], top),
            *_axes(top, head),
            *_turn_ticks(copy),
            f'<polyline class="line" points="{line}"/>',
            *(
                _mark(number, seq, record, head, is_shown=len(marks) <= _MOST_NUMBERED)
                for number, (seq, record) in enumerate(marks, 1)
            ),
            "</svg>",
        ]
    )


def _areas(kinds: Sequence[str], parts: Sequence[dict[str, int]], xs: Sequence[float], top: int) -> Iterator[str]:
    """One area per kind, the topmost first. Each reaches down to the ground; the lower ones are drawn over it."""
    for place in reversed(range(len(kinds))):
        heights = (sum(one[kind] for kind in kinds[: place + 1]) for one in parts)
        points = " ".join(f"{x},{_y(tokens, top)}" for x, tokens in zip(xs, heights, strict=True))
        yield f'<polygon class="k {kinds[place]}" points="{xs[0]},{_GROUND} {points} {xs[-1]},{_GROUND}"/>'


def _legend(kinds: Sequence[str]) -> Iterator[str]:
    """A colour and a label for each kind, from the ground up."""
    x = float(_LEFT)
    for kind in kinds:
        yield f'<rect class="k {kind}" x="{x:.0f}" y="{_LEGEND_Y - 9}" width="10" height="10"/>'
        yield f'<text x="{x + 14:.0f}" y="{_LEGEND_Y}">{STACK[kind]}</text>'
        x += 14 + _CHAR_WIDTH * len(STACK[kind]) + 14


def _thinned(sizes: list[ContextSize]) -> list[ContextSize]:
    """At most _MOST_POINTS sizes: the lowest and the highest of each stretch, in order."""
    if len(sizes) <= _MOST_POINTS:
        return sizes
    length = -(-2 * len(sizes) // _MOST_POINTS)
    kept: list[ContextSize] = []
    for start in range(0, len(sizes), length):
        stretch = sizes[start : start + length]
        ends = {min(stretch, key=lambda size: size.tokens), max(stretch, key=lambda size: size.tokens)}
        kept += [size for size in stretch if size in ends][:2]
    return kept


def _axes(top: int, head: int) -> Iterator[str]:
    right = WIDTH - _RIGHT
    for share in (0.0, 0.5, 1.0):
        tokens = round(top * share)
        y = _y(tokens, top)
        yield f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{tokens:,}</text>'
    yield f'<text x="{right}" y="{_GROUND + 28}" text-anchor="end">{head:,} messages</text>'
    yield f'<text x="{_LEFT}" y="{_GROUND + 28}">turns</text>'


def _turn_ticks(copy: SessionCopy) -> Iterator[str]:
    """A tick for each turn; every fifth has its number. Long sessions skip some."""
    turns = [e.seq for e in copy.entries if e.message.role == "user" and not e.message.is_synthetic]
    step = -(-len(turns) // _MOST_TICKS) or 1
    for place in range(0, len(turns), step):
        x = _x(turns[place], len(copy.entries))
        yield f'<line class="axis" x1="{x}" x2="{x}" y1="{_GROUND}" y2="{_GROUND + 4}"/>'
        if place % (step * 5) == 0:
            yield f'<text x="{x}" y="{_GROUND + 16}" text-anchor="middle">{place + 1}</text>'


def _mark(number: int, seq: int, record: CompactionRecord, head: int, *, is_shown: bool) -> str:
    """A compaction, with its number among them if that is to be shown."""
    x = _x(seq, head)
    undone = " undone" if record.undone else ""
    facts = f", kept {record.kept_facts} of {record.total_facts} facts" if record.total_facts else ""
    change = f"{record.tokens_before:,} to {record.tokens_after:,} tokens"
    title = f"compaction {number}: {change}{facts}{undone}"
    written = f'<text x="{x}" y="{_TOP - 8}" text-anchor="middle">{number}</text>' if is_shown else ""
    return (
        f'<a href="#c{record.view_after}"><g class="mark{undone}"><title>{title}</title>'
        f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{_GROUND}"/>'
        f'<circle cx="{x}" cy="{_TOP}" r="4"/>{written}</g></a>'
    )


def _x(seq: int, head: int) -> float:
    return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * seq / head, 1)


def _y(tokens: int, top: int) -> float:
    return round(_GROUND - (_GROUND - _TOP) * min(tokens, top) / top, 1)


@dataclass(frozen=True, slots=True)
class ContextSize:
    """The size of the context when the log ended at `seq`, and the view that was current."""

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
