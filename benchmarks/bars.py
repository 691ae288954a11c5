"""Draw bar charts as SVG, on a linear or logarithmic scale, with their own background for dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor, log10

WIDTH, ROW, LEFT, RIGHT, TOP = 700, 24, 280, 90, 36
GROUND, INK = "#ffffff", "#3d444d"
OWN, OTHER = "#0072b2", "#999999"
"""nca's bars and the others'; told apart also by who does not see all colours."""

Bar = tuple[str, float, str]
"""Name, value, and the value as it is written."""


def bars(title: str, rows: Sequence[Bar], *, is_log: bool = False) -> str:
    """The picture as text. On a logarithmic scale each bar begins at the power of ten below the least value."""
    if not rows:
        raise ValueError(f"{title}: there is nothing to show")
    height = TOP + ROW * len(rows) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        f' font-family="sans-serif" font-size="12" fill="{INK}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="{GROUND}"/>',
        f'<text x="8" y="20" font-size="13" font-weight="bold">{escape(title)}</text>',
    ]
    lengths = _lengths([value for _, value, _ in rows], is_log=is_log)
    for number, ((name, _, written), length) in enumerate(zip(rows, lengths, strict=True)):
        y = TOP + ROW * number
        colour = OWN if name.split(",")[0].split(".")[0] == "nca" else OTHER
        parts.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y + 4}" width="{length:.1f}" height="{ROW - 8}" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + length + 6:.1f}" y="{y + 15}">{escape(written)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _lengths(values: Sequence[float], *, is_log: bool) -> list[float]:
    room = WIDTH - LEFT - RIGHT
    above = [value for value in values if value > 0]
    if not above:
        return [0.0 for _ in values]
    if not is_log:
        return [room * max(0.0, value) / max(above) for value in values]
    first = floor(log10(min(above)))
    span = max(1e-9, log10(max(above)) - first)
    return [room * (log10(value) - first) / span if value > 0 else 0.0 for value in values]
