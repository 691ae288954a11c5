"""The context over a session's turns, as a small SVG: how full it was, of what, and where it was compacted.

The top line is what providers reported for each request; where a session has no reports (an imported one), it is the
estimate after each message, and says so. What a view had before and after a compaction is the compaction's own record.
"""

from __future__ import annotations

from collections.abc import Sequence

from nca.sessions.transfer import SessionCopy
from nca.sessions.views import CompactionRecord
from nca.transcripts.composition import STACK, Composition, Moment, moments
from nca.transcripts.moments import compacted_after

WIDTH, HEIGHT = 960, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 64, 32
_MOST_POINTS = 300
_MOST_TICKS = 60
_MOST_NUMBERED = 24
"""More compactions than this are marked without their numbers."""
_LEGEND_Y = 34
_CHAR_WIDTH = 6.2
"""Of the picture's 11 px letters, on the wide side."""

Point = tuple[int, int]
"""A message's seq, and the tokens of the context when the log ended there."""


def context_line(copy: SessionCopy) -> tuple[list[Point], bool]:
    """The context over the log, and whether it is an estimate."""
    found, is_estimate = moments(copy)
    return [(moment.seq, moment.tokens) for moment in found], is_estimate


def timeline(copy: SessionCopy) -> str:
    """The picture; "" where there is nothing to draw. Numbers only: no text of the session is in it."""
    found, is_estimate = moments(copy)
    head = len(copy.entries)
    if head < 2 or not found:
        return ""
    marks = compacted_after(copy)
    found = _fewer(found)
    top = max([moment.tokens for moment in found] + [record.tokens_before for _, record in marks] + [1])
    kind = "estimated" if is_estimate else "reported; its parts are estimated"
    line = " ".join(f"{_x(moment.seq, head)},{_y(moment.tokens, top)}" for moment in found)
    numbered = len(marks) <= _MOST_NUMBERED
    areas, kinds = _areas(copy, found, head, top)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Context over the turns">',
        f'<text x="{_LEFT}" y="14">context in tokens ({kind})</text>',
        *_legend(kinds),
        *areas,
        *_axes(top, head),
        *_turn_ticks(copy),
        f'<polyline class="line" points="{line}"/>',
        *(_mark(seq, record, head, numbered=numbered) for seq, record in marks),
        "</svg>",
    ]
    return "\n".join(parts)


def _areas(copy: SessionCopy, found: Sequence[Moment], head: int, top: int) -> tuple[list[str], list[str]]:
    """One area a kind, and the kinds that there are. Each reaches to the ground; what is below is drawn over it."""
    composition = Composition(copy)
    parts = [composition.of(moment) for moment in found]
    kinds = [kind for kind in STACK if any(one[kind] for one in parts)]
    ground = HEIGHT - _BOTTOM
    first, last = _x(found[0].seq, head), _x(found[-1].seq, head)
    areas = []
    for place in reversed(range(len(kinds))):
        heights = (sum(one[kind] for kind in kinds[: place + 1]) for one in parts)
        points = (f"{_x(moment.seq, head)},{_y(n, top)}" for moment, n in zip(found, heights, strict=True))
        areas.append(
            f'<polygon class="k {kinds[place]}" points="{first},{ground} {" ".join(points)} {last},{ground}"/>'
        )
    return areas, kinds


def _legend(kinds: Sequence[str]) -> list[str]:
    """From the ground up, as the areas lie."""
    parts, x = [], float(_LEFT)
    for kind in kinds:
        parts.append(f'<rect class="k {kind}" x="{x:.0f}" y="{_LEGEND_Y - 9}" width="10" height="10"/>')
        parts.append(f'<text x="{x + 14:.0f}" y="{_LEGEND_Y}">{STACK[kind]}</text>')
        x += 14 + _CHAR_WIDTH * len(STACK[kind]) + 14
    return parts


def _fewer(found: list[Moment]) -> list[Moment]:
    """At most so many that a picture can show: of each stretch the lowest and the highest, in their order."""
    if len(found) <= _MOST_POINTS:
        return found
    size = -(-2 * len(found) // _MOST_POINTS)
    kept: list[Moment] = []
    for start in range(0, len(found), size):
        stretch = found[start : start + size]
        ends = {min(stretch, key=lambda moment: moment.tokens), max(stretch, key=lambda moment: moment.tokens)}
        kept += [moment for moment in stretch if moment in ends][:2]
    return kept


def _axes(top: int, head: int) -> list[str]:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = _y(round(top * share), top)
        parts.append(f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{round(top * share):,}</text>')
    parts.append(f'<text x="{right}" y="{bottom + 28}" text-anchor="end">{head:,} messages</text>')
    parts.append(f'<text x="{_LEFT}" y="{bottom + 28}">turns</text>')
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


def _mark(seq: int, record: CompactionRecord, head: int, *, numbered: bool) -> str:
    x = _x(seq, head)
    undone = " undone" if record.undone else ""
    facts = f", kept {record.kept_facts} of {record.total_facts} facts" if record.total_facts else ""
    change = f"{record.tokens_before:,} to {record.tokens_after:,} tokens"
    title = f"compaction c{record.view_after}: {change}{facts}{undone}"
    number = f'<text x="{x}" y="{_TOP - 8}" text-anchor="middle">c{record.view_after}</text>' if numbered else ""
    return (
        f'<a href="#c{record.view_after}"><g class="mark{undone}"><title>{title}</title>'
        f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
        f'<circle cx="{x}" cy="{_TOP}" r="4"/>{number}</g></a>'
    )


def _x(seq: int, head: int) -> float:
    return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * seq / head, 1)


def _y(tokens: int, top: int) -> float:
    return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * min(tokens, top) / top, 1)
