"""The context over a session's turns as an SVG chart: how full it was, of what, and where it was compacted.

The top line shows what the provider reported for each request, or an estimate if the session has no reports. The sizes
before and after a compaction come from its record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nca.sessions.transfer import SessionCopy
from nca.sessions.views import CompactionRecord
from nca.transcripts.compactions import compaction_positions
from nca.transcripts.context_history import STACK, Composition, ContextSize, context_sizes

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
            *(_mark(seq, record, head, numbered=len(marks) <= _MOST_NUMBERED) for seq, record in marks),
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


def _mark(seq: int, record: CompactionRecord, head: int, *, numbered: bool) -> str:
    x = _x(seq, head)
    undone = " undone" if record.undone else ""
    facts = f", kept {record.kept_facts} of {record.total_facts} facts" if record.total_facts else ""
    change = f"{record.tokens_before:,} to {record.tokens_after:,} tokens"
    title = f"compaction c{record.view_after}: {change}{facts}{undone}"
    number = f'<text x="{x}" y="{_TOP - 8}" text-anchor="middle">c{record.view_after}</text>' if numbered else ""
    return (
        f'<a href="#c{record.view_after}"><g class="mark{undone}"><title>{title}</title>'
        f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{_GROUND}"/>'
        f'<circle cx="{x}" cy="{_TOP}" r="4"/>{number}</g></a>'
    )


def _x(seq: int, head: int) -> float:
    return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * seq / head, 1)


def _y(tokens: int, top: int) -> float:
    return round(_GROUND - (_GROUND - _TOP) * min(tokens, top) / top, 1)
