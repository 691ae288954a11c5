"""Tables without borders, which read well on a screen, in a pipe and aloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Column, Table


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
