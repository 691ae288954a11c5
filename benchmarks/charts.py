"""Draw line charts as SVG: both axes logarithmic, with their own background for dark pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

from benchmarks.bars import GROUND, INK

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 574, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 144, 34, 44
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9")
"""Told apart also by who does not see all colours (Okabe and Ito)."""
_GREY = "#808080"


def curves(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """The picture as text. Points with a coordinate of 0 or less are left out: they have no place on such axes."""
    shown = {name: [(x, y) for x, y in points if x > 0 and y > 0] for name, points in series.items()}
    xs = [x for points in shown.values() for x, _ in points]
    ys = [y for points in shown.values() for _, y in points]
    if not xs:
        raise ValueError(f"{title}: there is nothing to show")
    across, up = _Axis(xs, _LEFT, WIDTH - _RIGHT), _Axis(ys, HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        f' font-family="sans-serif" font-size="11" fill="{INK}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{GROUND}"/>',
        f'<text x="{_LEFT}" y="18" font-size="13" font-weight="bold">{escape(title)}</text>',
        *_grid(across, up),
        f'<text x="{(_LEFT + WIDTH - _RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text x="14" y="{(_TOP + HEIGHT - _BOTTOM) / 2:.0f}" text-anchor="middle"'
        f' transform="rotate(-90 14 {(_TOP + HEIGHT - _BOTTOM) / 2:.0f})">{escape(y_label)}</text>',
    ]
    ends = _apart([up.place(points[-1][1]) for points in shown.values() if points])
    for number, (name, points) in enumerate((name, points) for name, points in shown.items() if points):
        parts += _curve(name, points, _COLOURS[number % len(_COLOURS)], across, up, ends[number])
    return "\n".join([*parts, "</svg>"]) + "\n"


def shown_number(value: float) -> str:
    """Short, as beside an axis: 0.01, 10, 100k, 1M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


class _Axis:
    """Whole powers of ten from below the least value to above the largest, between two places on the picture."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self.first = floor(log10(min(values)) + 1e-9)
        self.last = max(self.first + 1, ceil(log10(max(values)) - 1e-9))
        self._start, self._end = start, end

    def place(self, value: float) -> float:
        share = (log10(value) - self.first) / (self.last - self.first)
        return round(self._start + share * (self._end - self._start), 1)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.first, self.last + 1)]


def _grid(across: _Axis, up: _Axis) -> list[str]:
    parts = []
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    for tick in across.ticks():
        x = across.place(tick)
        parts.append(f'<path d="M{x} {_TOP}V{bottom}" stroke="{_GREY}" stroke-opacity=".25"/>')
        parts.append(f'<text x="{x}" y="{bottom + 15}" text-anchor="middle">{shown_number(tick)}</text>')
    for tick in up.ticks():
        y = up.place(tick)
        parts.append(f'<path d="M{_LEFT} {y}H{right}" stroke="{_GREY}" stroke-opacity=".25"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{shown_number(tick)}</text>')
    return parts


def _curve(name: str, points: Points, colour: str, across: _Axis, up: _Axis, label_y: float) -> list[str]:
    places = [(across.place(x), up.place(y)) for x, y in points]
    line = " ".join(f"{x},{y}" for x, y in places)
    marks = [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places]
    x = places[-1][0]
    return [
        f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *marks,
        f'<path d="M{x + 8} {label_y}h10" stroke="{colour}" stroke-width="2"/>',
        f'<text x="{x + 22}" y="{label_y + 4}">{escape(name)}</text>',
    ]


def _apart(places: Sequence[float], least: float = 13.0) -> list[float]:
    """The labels' places, moved so that none stands on another; their order stays."""
    moved = list(places)
    order = sorted(range(len(moved)), key=moved.__getitem__)
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + least)
    return moved
