"""The context window as a chart: a bar, and a list of its parts with a grid beside it.

Each kind has its own glyph, so that the chart can be read without colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from nca.context.parts import LABELS
from nca.terminal.render.humanize import percent
from nca.terminal.render.tables import new_table

if TYPE_CHECKING:
    from nca.agent.stats import ContextStats

BAR_CELLS = 60
GRID_COLUMNS = 10
GRID_FROM_WIDTH = 64
"""The grid is shown in windows of at least this many columns."""

LOOKS: Mapping[str, tuple[str, str]] = {
    "system_prompt": ("█", "magenta"),
    "instructions": ("▙", "magenta"),
    "tool_definitions": ("▓", "green"),
    "mcp_tools": ("▜", "green"),
    "summaries": ("▚", "yellow"),
    "ledger": ("▞", "yellow"),
    "conversation": ("▒", "cyan"),
    "tool_calls": ("▌", "blue"),
    "tool_results": ("▄", "blue"),
    "attachments": ("▐", "red"),
}
"""The glyph and colour of each kind, in the order in which they are sent."""


@dataclass(frozen=True, slots=True)
class ChartPart:
    """A part of the window. A part outside of the budget has no share of it."""

    label: str
    tokens: int
    glyph: str
    style: str
    is_in_budget: bool = True


def parts_of(stats: ContextStats, most: int = 0) -> list[ChartPart]:
    """The parts that add up to the window, or to the used tokens if those are more.

    most  at most this many rows: the smallest used parts become one; 0 is no limit
    """
    used = [ChartPart(LABELS[kind], stats.parts[kind], *look) for kind, look in LOOKS.items() if stats.parts.get(kind)]
    rest = list(_unused(stats))
    room = max(2, most - len(rest))
    if most and len(used) > room:
        small = sorted(used, key=lambda part: part.tokens)[: len(used) - room + 1]
        used = [part for part in used if part not in small]
        used.append(ChartPart("everything else", sum(part.tokens for part in small), "▪", "magenta"))
    return [*used, *rest]


def bar(parts: Sequence[ChartPart], width: int) -> Text:
    """One row in proportion."""
    row = Text(no_wrap=True, overflow="crop")
    for part, count in zip(parts, _cell_counts(parts, max(10, min(BAR_CELLS, width - 2))), strict=True):
        row.append(part.glyph * count, style=part.style)
    return row


def chart(parts: Sequence[ChartPart], budget_tokens: int, width: int) -> RenderableType:
    """The parts with their tokens and shares of the budget, and the grid beside them if the window is wide enough."""
    rows = _rows(parts, budget_tokens)
    if width < GRID_FROM_WIDTH:
        return rows
    table = new_table(Column(no_wrap=True), "", gap=3)
    table.add_row(_grid(parts, len(parts)), rows)
    return table


def _unused(stats: ContextStats) -> Iterator[ChartPart]:
    yield ChartPart("free", max(0, stats.budget_tokens - stats.used_tokens), "░", "dim")
    yield ChartPart("reserve for the answer", stats.reserve_tokens, "·", "dim", is_in_budget=False)
    excluded = stats.window_tokens - stats.budget_tokens - stats.reserve_tokens
    if excluded > 0:
        yield ChartPart("excluded (context.max_tokens)", excluded, "-", "dim", is_in_budget=False)


def _grid(parts: Sequence[ChartPart], rows: int) -> Text:
    cells = [
        Text(part.glyph, style=part.style)
        for part, count in zip(parts, _cell_counts(parts, rows * GRID_COLUMNS), strict=True)
        for _ in range(count)
    ]
    lines = (cells[start : start + GRID_COLUMNS] for start in range(0, len(cells), GRID_COLUMNS))
    return Text("\n").join(Text(" ").join(line) for line in lines)


def _rows(parts: Sequence[ChartPart], budget_tokens: int) -> Table:
    tokens, shares = (Column(justify="right", no_wrap=True) for _ in range(2))
    # In a narrow window Rich shortens the column that could wrap: the label.
    table = new_table(Column(no_wrap=True), "", tokens, shares, gap=1)
    for part in parts:
        share = percent(part.tokens / budget_tokens) if part.is_in_budget else ""
        label = Text(part.label, no_wrap=True, overflow="ellipsis")
        table.add_row(Text(part.glyph, style=part.style), label, f"{part.tokens:,}", Text(share, style="quiet"))
    return table


def _cell_counts(parts: Sequence[ChartPart], cells: int) -> list[int]:
    """How many of `cells` each part gets, in proportion; at least one unless it is empty."""
    total = sum(part.tokens for part in parts) or 1
    counts = [max(1, round(part.tokens / total * cells)) if part.tokens else 0 for part in parts]
    while sum(counts) > cells and max(counts) > 1:
        counts[counts.index(max(counts))] -= 1
    if 0 < sum(counts) < cells:
        counts[counts.index(max(counts))] += cells - sum(counts)
    return counts
