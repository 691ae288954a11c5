"""Colours that are right on light and dark backgrounds, and the Rich consoles that use them.

Only the terminal's own foreground, dim, bold and the plain ANSI colours appear: never white, never a background.
`NO_COLOR` is honoured by Rich itself (emphasis stays, colour goes).
"""

from __future__ import annotations

import io
from collections.abc import Mapping

from rich.console import Console
from rich.theme import Theme

PLAIN_WIDTH = 100
"""Columns of panels where no terminal says how wide it is."""

STYLES: dict[str, str] = {
    "quiet": "dim",
    "notice": "yellow",
    "failure": "red",
    "accent": "cyan",
    "added": "green",
    "removed": "red",
    "markdown.paragraph": "none",
    "markdown.text": "none",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold dim",
    "markdown.h5": "underline",
    "markdown.h6": "italic",
    "markdown.code": "cyan",
    "markdown.code_block": "none",
    "markdown.block_quote": "dim",
    "markdown.item.bullet": "cyan",
    "markdown.item.number": "cyan",
    "markdown.hr": "dim",
    "markdown.link": "underline",
    "markdown.link_url": "cyan",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}


def screen_console() -> Console:
    """What renders for the terminal at hand: nothing is highlighted, no markup is read.

    It is for capturing; its own file goes nowhere, because Rich writes to it even then.
    """
    return Console(
        file=io.StringIO(), theme=Theme(STYLES), highlight=False, markup=False, emoji=False, force_terminal=True
    )


def plain_console(environment: Mapping[str, str]) -> Console:
    """What renders for pipes and dumb terminals, for capturing too: no escape code leaves it."""
    columns = environment.get("COLUMNS", "")
    return Console(
        file=io.StringIO(),
        theme=Theme(STYLES),
        highlight=False,
        markup=False,
        emoji=False,
        color_system=None,
        force_terminal=False,
        no_color=True,
        legacy_windows=False,
        width=int(columns) if columns.isdigit() and int(columns) > 0 else PLAIN_WIDTH,
    )
