"""Colours that are right on light and dark backgrounds, and the Rich consoles that use them.

Text has the terminal's own foreground, dim and bold; a few words have a colour, never white, never a background. What
the background is, `terminal.theme` says, or for `auto` the variable COLORFGBG, which some terminals set. The terminal
itself is not asked (OSC 11): an answer that comes late would be typed into the prompt. Where nobody knows, the colours
are some that can be read on white and on black.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console
    from rich.theme import Theme

PLAIN_WIDTH = 100
"""Columns of panels where no terminal says how wide it is."""

UNKNOWN = "unknown"


class Palette(NamedTuple):
    """Rich's names of the colours, and what prompt_toolkit calls the first two."""

    accent: str
    notice: str
    failure: str
    added: str
    keyword: str
    prompt_accent: str
    prompt_notice: str


PALETTES = {
    "dark": Palette("cyan", "yellow", "bright_red", "green", "bright_magenta", "ansicyan", "ansiyellow"),
    "light": Palette("color(24)", "color(94)", "color(124)", "color(22)", "color(90)", "#005f87", "#875f00"),
    UNKNOWN: Palette("color(30)", "color(130)", "red", "color(28)", "color(133)", "#008787", "#af5f00"),
}
"""By background. Contrast to white (`light`), to black (`dark`, as xterm has the plain colours) or both: 3.5 and more,
where the plain ones of xterm have 1.7 (yellow) to 2.2 (green) on white."""

_LIGHT_NUMBERS = frozenset({7, *range(9, 16)})
"""Of the sixteen colours, those that text of the others is read on; 8 is a dark grey."""

_STYLES: dict[str, str] = {
    "quiet": "dim",
    "markdown.paragraph": "none",
    "markdown.text": "none",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold dim",
    "markdown.h5": "underline",
    "markdown.h6": "italic",
    "markdown.code_block": "none",
    "markdown.block_quote": "dim",
    "markdown.hr": "dim",
    "markdown.link": "underline",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}


def background(theme: str, environment: Mapping[str, str] = os.environ) -> str:
    """What the setting terminal.theme comes to: dark, light or unknown."""
    if theme in PALETTES:
        return theme
    # `15;0`, or `0;default;15`: the foreground's number first, the background's last.
    number = environment.get("COLORFGBG", "").rpartition(";")[2].strip()
    if not number.isdecimal() or not 0 <= int(number) <= 15:
        return UNKNOWN
    return "light" if int(number) in _LIGHT_NUMBERS else "dark"


def has_colour(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a capable terminal gets colour; emphasis stays in any case.

    NO_COLOR with any text is the strongest, then FORCE_COLOR and CLICOLOR_FORCE; CLICOLOR=0 wants none.
    """
    if environment.get("NO_COLOR"):
        return False
    is_forced = any(environment.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    return is_forced or environment.get("CLICOLOR") != "0"


def theme_for(theme: str, environment: Mapping[str, str] = os.environ) -> Theme:
    """Rich's theme for the setting terminal.theme."""
    from rich.theme import Theme

    palette = PALETTES[background(theme, environment)]
    accented = ("markdown.code", "markdown.item.bullet", "markdown.item.number", "markdown.link_url")
    colours = dict.fromkeys(("accent", *accented), palette.accent)
    colours |= {"notice": palette.notice, "failure": palette.failure, "added": palette.added}
    return Theme(_STYLES | colours | {"removed": palette.failure})


def screen_console(environment: Mapping[str, str] = os.environ) -> Console:
    """What renders for the terminal at hand."""
    return _console(environment, force_terminal=True, no_color=not has_colour(environment))


def plain_console(environment: Mapping[str, str]) -> Console:
    """What renders for pipes and dumb terminals: no escape code leaves it."""
    columns = environment.get("COLUMNS", "")
    return _console(
        environment,
        color_system=None,
        force_terminal=False,
        no_color=True,
        legacy_windows=False,
        width=int(columns) if columns.isdigit() and int(columns) > 0 else PLAIN_WIDTH,
    )


def _console(environment: Mapping[str, str], **options: Any) -> Console:
    """Nothing is highlighted, no markup is read.

    It is for capturing; its own file goes nowhere, because Rich writes to it even then.
    """
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        theme=theme_for("auto", environment),
        highlight=False,
        markup=False,
        emoji=False,
        **options,
    )
