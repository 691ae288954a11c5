"""The context window as a picture: a row for each part, whose bar begins where the bar above it ends.

Across, a row says what the part is; down, the bars add up to the window. No colour is needed to read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from nca.context.parts import KINDS, LABELS
from nca.humanize import percent

if TYPE_CHECKING:
    from nca.agent.stats import ContextStats

BLOCK, FREE, RESERVE = "█", "░", "·"
_MARK = "┊"
_LEAST_BAR, _LEAST_LABEL, _SHARE = 5, 8, 4
"""Cells that the bars and the labels have at least, and those of a percentage."""


class WindowPart(NamedTuple):
    """A part of the window. One that is no part of the budget has no share of it."""

    label: str
    tokens: int
    style: str
    glyph: str = BLOCK
    is_in_budget: bool = True


def parts_of(stats: ContextStats, most: int = 0) -> list[WindowPart]:
    """The parts that add up to the window, or to the used tokens if those are more.

    most  at most this many: the smallest used parts become one; 0 is no limit
    """
    used = [WindowPart(LABELS[kind], stats.parts[kind], f"part.{kind}") for kind in KINDS if stats.parts.get(kind)]
    rest = list(_unused(stats))
    room = max(2, most - len(rest))
    if most and len(used) > room:
        small = sorted(used, key=lambda part: part.tokens)[: len(used) - room + 1]
        used = [part for part in used if part not in small]
        used.append(WindowPart("everything else", sum(part.tokens for part in small), "none"))
    return [*used, *rest]


def picture(stats: ContextStats, width: int, most: int = 0) -> Text:
    """The parts (see `parts_of`) in a window of `width` columns, and where compaction begins."""
    parts = parts_of(stats, most)
    tokens = max(len(f"{part.tokens:,}") for part in parts)
    around = tokens + _SHARE + 7
    label = min(max(cell_len(part.label) for part in parts), max(_LEAST_LABEL, width - around - _LEAST_BAR))
    cells = max(1, width - around - label - 1)
    total = sum(part.tokens for part in parts) or 1
    mark = round(stats.compact_at_tokens / total * cells) if stats.auto == "on" else cells
    lines = []
    for part, bar in zip(parts, _bars(parts, cells), strict=True):
        share = percent(part.tokens / stats.budget_tokens) if part.is_in_budget else ""
        line = Text(f" {_cut(part.label, label)}  {part.tokens:>{tokens},}  ")
        line.append(f"{share:>{_SHARE}}  "[: width - line.cell_len], style="quiet")
        lines.append(line.append(_marked(bar, part, mark)))
    if said := _under_mark(f"compaction at {stats.compact_at_tokens:,}", mark, cells):
        lines.append(Text(" " * (around + label) + said, style="quiet"))
    return Text("\n", no_wrap=True, overflow="crop").join(lines)


def _unused(stats: ContextStats) -> Iterator[WindowPart]:
    yield WindowPart("free", max(0, stats.budget_tokens - stats.used_tokens), "quiet", FREE)
    yield WindowPart("answer reserve", stats.reserve_tokens, "quiet", RESERVE, is_in_budget=False)
    excluded = stats.window_tokens - stats.budget_tokens - stats.reserve_tokens
    if excluded > 0:
        yield WindowPart("over max_tokens", excluded, "quiet", RESERVE, is_in_budget=False)


def _bars(parts: Sequence[WindowPart], cells: int) -> Iterator[str]:
    """Each part's bar behind as many blanks as the parts before it take; what is not empty has at least one cell."""
    total, before = sum(part.tokens for part in parts) or 1, 0
    for part in parts:
        start = min(cells - 1, round(before / total * cells))
        before += part.tokens
        end = max(start + 1, round(before / total * cells)) if part.tokens else start
        yield " " * start + part.glyph * (end - start) + " " * (cells - end)


def _marked(bar: str, part: WindowPart, mark: int) -> Text:
    """The bar, with a mark where compaction begins, unless a used part stands there, or one of a single cell."""
    is_free = mark < len(bar) and (bar[mark] == " " or (part.glyph != BLOCK and bar.count(part.glyph) > 1))
    text = Text(bar[:mark] + _MARK + bar[mark + 1 :] if is_free else bar, style=part.style)
    if is_free:
        text.stylize("notice", mark, mark + 1)
    text.rstrip()
    return text


def _under_mark(text: str, mark: int, cells: int) -> str:
    """The text at the foot of the mark, to its right or to its left; "" where it has no room, or there is no mark."""
    if mark >= cells:
        return ""
    if mark + 2 + len(text) <= cells:
        return f"{' ' * mark}└ {text}"
    return f"{text} ┘".rjust(mark + 1) if len(text) + 2 <= mark + 1 else ""


def _cut(label: str, cells: int) -> str:
    return set_cell_size(label, cells) if cell_len(label) <= cells else f"{set_cell_size(label, cells - 1)}…"
