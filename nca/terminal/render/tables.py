"""Tables without borders, which read well on a screen, in a pipe and aloud."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nca.terminal.render.theme import PLAIN_WIDTH

if TYPE_CHECKING:
    from rich.table import Column, Table
    from rich.text import Text

LEAST_CELLS = 12
"""A column that gives way to others keeps so many cells."""
_GAP = 2


def new_table(*columns: Column | str, has_header: bool = False, gap: int = 2, indent: int = 0) -> Table:
    """An empty table; `gap` and `indent` are in cells."""
    # Imported here because the first prompt needs no table.
    from rich.table import Table

    return Table(
        *columns,
        box=None,
        show_header=has_header,
        pad_edge=indent > 0,
        padding=(0, gap, 0, indent),
        header_style="dim",
    )


def fitting_table(
    columns: Mapping[str, Sequence[Text]],
    *,
    numbers: Sequence[str] = (),
    gives_way: str = "",
    drops: Sequence[str] = (),
    wraps: bool = False,
    styles: Sequence[str] = (),
) -> Table:
    """A table of cells by heading that fits the window with every column whole that it has.

    numbers    columns that stand to the right
    gives_way  the column that gets the room that the others leave; its cells are cut, or fill more lines if it `wraps`
    drops      columns to do without where there is too little room, the first one first
    styles     of each row
    """
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
    cells = {head: max(len(head), *(cell.cell_len for cell in column)) for head, column in columns.items() if column}
    left = dict.fromkeys(columns)

    def room() -> int:
        return width - sum(cells.get(head, 0) + _GAP for head in left if head != gives_way)

    for head in drops:
        if room() >= min(LEAST_CELLS, cells.get(gives_way, 0)):
            break
        left.pop(head)
    table = new_table(has_header=True, gap=_GAP)
    for head in left:
        has_rest = head == gives_way
        table.add_column(
            head,
            justify="right" if head in numbers else "left",
            no_wrap=not (has_rest and wraps),
            overflow="ellipsis",
            max_width=max(room(), 1) if has_rest else None,
        )
    for number, row in enumerate(zip(*(columns[head] for head in left), strict=True)):
        table.add_row(*row, style=styles[number] if styles else None)
    return table
