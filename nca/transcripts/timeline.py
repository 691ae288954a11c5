"""The context over a session's turns, as a small SVG: how full it was, and where it was compacted.

The line is what providers reported for each request; where a session has no reports (an imported one), it is the
estimate after each message, and says so. What a view had before and after a compaction is the compaction's own record.
"""

from __future__ import annotations

from nca.context.calibration import Calibration
from nca.context.history import History
from nca.sessions.transfer import SessionCopy
from nca.sessions.views import CompactionRecord
from nca.transcripts.moments import compacted_after

WIDTH, HEIGHT = 960, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 24, 32
_MOST_POINTS = 800
_MOST_TICKS = 60

Point = tuple[int, int]
"""A message's seq, and the tokens of the context when the log ended there."""


def context_line(copy: SessionCopy) -> tuple[list[Point], bool]:
    """The context over the log, and whether it is an estimate."""
    marks = [(seq, record) for seq, record in compacted_after(copy) if not record.undone]
    if not copy.usage:
        return _estimated(copy, marks), True
    timed = [(row.seq, row.at, row.usage.prompt_tokens) for row in copy.usage]
    for seq, record in marks:
        timed += [(seq, record.at, record.tokens_before), (seq, record.at, record.tokens_after)]
    # A sort that is stable: before and after of one compaction stay in this order.
    return [(seq, tokens) for seq, _, tokens in sorted(timed, key=lambda point: point[:2])], False


def timeline(copy: SessionCopy) -> str:
    """The picture; "" where there is nothing to draw. Numbers only: no text of the session is in it."""
    points, is_estimate = context_line(copy)
    head = len(copy.entries)
    if head < 2 or not points:
        return ""
    marks = compacted_after(copy)
    points = _fewer(points)
    top = max([tokens for _, tokens in points] + [record.tokens_before for _, record in marks] + [1])
    kind = "estimated" if is_estimate else "reported"
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Context over the turns">',
        f'<text x="{_LEFT}" y="14">context in tokens ({kind})</text>',
        *_axes(top, head),
        *_turn_ticks(copy),
        f'<polyline class="line" points="{" ".join(f"{_x(seq, head)},{_y(n, top)}" for seq, n in points)}"/>',
        *(_mark(seq, record, head) for seq, record in marks),
        "</svg>",
    ]
    return "\n".join(parts)


def _estimated(copy: SessionCopy, marks: list[tuple[int, CompactionRecord]]) -> list[Point]:
    """The tokens after each message, by the view that was in force then."""
    calibration, history = Calibration.unlearned(), History(copy.entries)
    starts = [(0, 0), *((seq, record.view_after) for seq, record in marks)]
    ends = [seq for seq, _ in starts[1:]] + [history.head]
    points: list[Point] = []
    for (start, number), end in zip(starts, ends, strict=True):
        view = copy.view(number)
        items = history.tokens_of(view) - history.run_tokens(view.tail, history.head)
        points += [
            (seq, calibration.tokens(items + history.run_tokens(view.tail, seq))) for seq in range(start, end + 1)
        ]
    return points


def _fewer(points: list[Point]) -> list[Point]:
    """At most so many that a picture can show: of each stretch the lowest and the highest, in their order."""
    if len(points) <= _MOST_POINTS:
        return points
    size = -(-2 * len(points) // _MOST_POINTS)
    kept: list[Point] = []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
        kept += [point for point in stretch if point in ends][:2]
    return kept


def _axes(top: int, head: int) -> list[str]:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = _y(round(top * share), top)
        parts.append(f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{round(top * share):,}</text>')
    parts.append(f'<text x="{right}" y="{bottom + 28}" text-anchor="end">{head:,} messages</text>')
    return parts


def _turn_ticks(copy: SessionCopy) -> list[str]:
    """A tick where a person spoke, numbered by turn."""
    turns = [e.seq for e in copy.entries if e.message.role == "user" and not e.message.is_synthetic]
    step = -(-len(turns) // _MOST_TICKS) or 1
    bottom = HEIGHT - _BOTTOM
    parts = []
    for place in range(0, len(turns), step):
        x = _x(turns[place], len(copy.entries))
        parts.append(f'<line class="axis" x1="{x}" x2="{x}" y1="{bottom}" y2="{bottom + 4}"/>')
        if place % (step * 5) == 0:
            parts.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{place + 1}</text>')
    return parts


def _mark(seq: int, record: CompactionRecord, head: int) -> str:
    x = _x(seq, head)
    undone = " undone" if record.undone else ""
    title = f"compaction c{record.view_after}: {record.tokens_before:,} to {record.tokens_after:,} tokens{undone}"
    return (
        f'<a href="#c{record.view_after}"><g class="mark{undone}"><title>{title}</title>'
        f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
        f'<circle cx="{x}" cy="{_TOP}" r="4"/></g></a>'
    )


def _x(seq: int, head: int) -> float:
    return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * seq / head, 1)


def _y(tokens: int, top: int) -> float:
    return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * min(tokens, top) / top, 1)
