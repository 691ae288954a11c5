"""Colours that work on light and dark backgrounds, and the Rich consoles that use them.

Text has the terminal's own foreground, dim and bold. A few words have a colour, never white and never a background.
The setting `terminal.theme` names the background; for `auto`, the variable COLORFGBG does, which some terminals set.
The terminal is not asked (OSC 11), because a late answer would be typed into the prompt. On an unknown background the
colours are readable on white and on black.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from nca.humanize import natural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.theme import Theme

PLAIN_WIDTH = 100
"""The width of panels if no terminal tells its width."""

UNKNOWN = "unknown"


class Palette(NamedTuple):
    """Rich's colour names."""

    accent: str
    notice: str
    failure: str
    added: str
    keyword: str
    result: str


PALETTES = {
    "dark": Palette("cyan", "yellow", "bright_red", "green", "bright_magenta", "color(75)"),
    "light": Palette("color(24)", "color(94)", "color(124)", "color(22)", "color(90)", "color(26)"),
    UNKNOWN: Palette("color(30)", "color(130)", "color(196)", "color(28)", "color(133)", "color(27)"),
}
"""By background. The contrast (WCAG 2) to white (`light`) or to black (`dark`, with xterm's plain colours) is at least
4.5, to both at least 3.9: no colour has more than 4.58. xterm's plain colours have 1.7 (yellow) to 2.2 (green) on
white."""

PARTS = {
    "system_prompt": "keyword",
    "instructions": "keyword",
    "tool_definitions": "added",
    "mcp_tools": "added",
    "summaries": "notice",
    "record": "notice",
    "conversation": "accent",
    "tool_calls": "result",
    "tool_results": "result",
    "attachments": "failure",
}
"""The colour of each kind of tokens (`nca.context.parts.KINDS`), by its name in the palette. Wherever tokens are drawn,
the style `part.KIND` has it."""

_LEVELS = (0, 95, 135, 175, 215, 255)
"""Xterm's steps of red, green and blue."""

_LIGHT_NUMBERS = frozenset({7, *range(9, 16)})
"""The light ones of the sixteen colours; 8 is a dark grey."""

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
    """The background by the setting terminal.theme: dark, light or unknown."""
    if theme in PALETTES:
        return theme
    # `15;0`, or `0;default;15`: the foreground's number first, the background's last.
    number = natural(environment.get("COLORFGBG", "").rpartition(";")[2].strip())
    if number is None or number > 15:
        return UNKNOWN
    return "light" if number in _LIGHT_NUMBERS else "dark"


def has_colour(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether to use colour on a capable terminal. Emphasis stays in any case.

    A non-empty NO_COLOR wins, then FORCE_COLOR and CLICOLOR_FORCE; CLICOLOR=0 turns colour off.
    """
    if environment.get("NO_COLOR"):
        return False
    is_forced = any(environment.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    return is_forced or environment.get("CLICOLOR") != "0"


def theme_for(theme: str, environment: Mapping[str, str] = os.environ) -> Theme:
    """Rich's theme for the setting terminal.theme.

    Its colours are styles of its own: Rich keeps the codes that a style gave first, whatever the terminal, and shares
    the styles that it reads from text.
    """
    from rich.style import Style
    from rich.theme import Theme

    palette = PALETTES[background(theme, environment)]
    accented = ("markdown.code", "markdown.item.bullet", "markdown.item.number", "markdown.link_url")
    colours = dict.fromkeys(("accent", *accented), palette.accent)
    colours |= {"notice": palette.notice, "failure": palette.failure, "added": palette.added}
    colours |= {f"part.{kind}": getattr(palette, name) for kind, name in PARTS.items()}
    colours["removed"] = palette.failure
    return Theme(_STYLES | {name: Style(color=colour) for name, colour in colours.items()})


def styled(text: str, style: str, environment: Mapping[str, str] = os.environ) -> str:
    """A text with the escape codes of a style of the theme."""
    colour = theme_for("auto", environment).styles[style]
    return colour.render(text) if has_colour(environment) else text


def prompt_styles(theme: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The styles that lists use, for prompt_toolkit, by class."""
    palette = PALETTES[background(theme, environment)]
    names = {"label": "accent", **{name: name for name in Palette._fields}}
    names |= {f"part.{kind}": name for kind, name in PARTS.items()}
    return {"quiet": "dim"} | {style: _for_prompt(getattr(palette, name)) for style, name in names.items()}


def _for_prompt(colour: str) -> str:
    """Rich's name of a colour as prompt_toolkit writes it. Numbers from 16 on are a cube of 6 × 6 × 6 colours."""
    if not colour.startswith("color("):
        return f"ansi{colour.replace('_', '')}"
    number = int(colour[6:-1]) - 16
    return "#" + "".join(f"{_LEVELS[number // step % 6]:02x}" for step in (36, 6, 1))


def screen_console(environment: Mapping[str, str] = os.environ) -> Console:
    """A console that renders for the current terminal."""
    return _console(environment, force_terminal=True, no_color=not has_colour(environment))


def plain_console(environment: Mapping[str, str]) -> Console:
    """A console that renders for pipes and dumb terminals, without escape codes."""
    return _console(
        environment,
        color_system=None,
        force_terminal=False,
        no_color=True,
        legacy_windows=False,
        width=natural(environment.get("COLUMNS", "")) or PLAIN_WIDTH,
    )


def _console(environment: Mapping[str, str], **options: Any) -> Console:
    """A console without highlighting and markup, for capturing.

    Its file is discarded, because Rich writes to it even while capturing.
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
