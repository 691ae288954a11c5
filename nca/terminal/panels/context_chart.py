"""The window as a picture: a bar, and a grid beside the list of what is in it.

Each kind has a glyph of its own, so the picture can be read without colours too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from nca.context.parts import LABELS
from nca.terminal.render.tables import new_table
from nca.terminal.render.wording import percent

if TYPE_CHECKING:
    from rich.table import Table

    from nca.agent.stats import ContextStats

BAR_CELLS = 60
GRID_COLUMNS = 10
GRID_FROM_WIDTH = 64
"""Columns of a window from which on the grid has room beside the list."""

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
"""Of each kind its glyph and colour, in the order in which it is sent."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the window. What lies outside of the budget has no share of it."""

    label: str
    tokens: int
    glyph: str
    style: str
    is_in_budget: bool = True


def parts_of(stats: ContextStats, most: int = 0) -> list[Part]:
    """What there is of the window's parts; together they are the window, or what is used where that is more.

    most  so many rows: what is smallest of the used parts is then one row; 0: no limit
    """
    used = [Part(LABELS[kind], stats.parts[kind], *look) for kind, look in LOOKS.items() if stats.parts.get(kind)]
    rest = list(_unused(stats))
    room = max(2, most - len(rest))
    if most and len(used) > room:
        small = sorted(used, key=lambda part: part.tokens)[: len(used) - room + 1]
        used = [part for part in used if part not in small]
        used.append(Part("everything else", sum(part.tokens for part in small), "▪", "magenta"))
    return [*used, *rest]


def _unused(stats: ContextStats) -> Iterator[Part]:
    yield Part("free", max(0, stats.budget_tokens - stats.used_tokens), "░", "dim")
    yield Part("reserve for the answer", stats.reserve_tokens, "·", "dim", is_in_budget=False)
    left_out = stats.window_tokens - stats.budget_tokens - stats.reserve_tokens
    if left_out > 0:
        yield Part("left out (context.max_tokens)", left_out, "-", "dim", is_in_budget=False)


def bar(parts: Sequence[Part], width: int) -> Text:
    """One row in proportion."""
    row = Text(no_wrap=True, overflow="crop")
    for part, count in zip(parts, _counts(parts, max(10, min(BAR_CELLS, width - 2))), strict=True):
        row.append(part.glyph * count, style=part.style)
    return row


def picture(parts: Sequence[Part], budget_tokens: int, width: int) -> RenderableType:
    """The list of the parts with their shares of the budget, and the grid beside it where there is room."""
    rows = _rows(parts, budget_tokens)
    if width < GRID_FROM_WIDTH:
        return rows
    table = new_table(gap=3)
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row(_grid(parts, len(parts)), rows)
    return table


def _grid(parts: Sequence[Part], rows: int) -> Text:
    cells = [
        Text(part.glyph, style=part.style)
        for part, count in zip(parts, _counts(parts, rows * GRID_COLUMNS), strict=True)
        for _ in range(count)
    ]
    lines = (cells[start : start + GRID_COLUMNS] for start in range(0, len(cells), GRID_COLUMNS))
    return Text("\n").join(Text(" ").join(line) for line in lines)


def _rows(parts: Sequence[Part], budget_tokens: int) -> Table:
    table = new_table(gap=1)
    table.add_column(no_wrap=True)
    # Where the window is narrow only the name gives way: Rich shortens the column that could wrap.
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for part in parts:
        share = percent(part.tokens / budget_tokens) if part.is_in_budget else ""
        label = Text(part.label, no_wrap=True, overflow="ellipsis")
        table.add_row(Text(part.glyph, style=part.style), label, f"{part.tokens:,}", Text(share, style="quiet"))
    return table


def _counts(parts: Sequence[Part], cells: int) -> list[int]:
    """So many cells in proportion; what is there at all has at least one."""
    total = sum(part.tokens for part in parts) or 1
    counts = [max(1, round(part.tokens / total * cells)) if part.tokens else 0 for part in parts]
    while sum(counts) > cells and max(counts) > 1:
        counts[counts.index(max(counts))] -= 1
    if 0 < sum(counts) < cells:
        counts[counts.index(max(counts))] += cells - sum(counts)
    return counts
