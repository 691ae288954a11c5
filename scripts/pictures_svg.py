"""Draw the screen of a terminal as SVG: text in runs, block characters as rectangles, so that fonts cannot break them.

A picture has its own ground, so it can be read on a light page and on a dark one; it fetches nothing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

CELL, LINE, SIZE = 8.4, 19, 14
"""Pixels: width of a cell, height of a row, size of the letters."""
MARGIN, HEAD = 16, 36
"""Pixels around the text, and of the title above it."""
GAP = 1.5
"""Pixels between two rows of blocks."""
GROUND, EDGE, INK, QUIET = "#1a1d23", "#3d434d", "#d6dae0", "#9aa1ac"
FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
COLOURS = {
    "default": INK,
    "black": "#3c4048",
    "red": "#f07178",
    "green": "#8cc878",
    "yellow": "#e8c060",
    "blue": "#6ea0f0",
    "magenta": "#c88ce6",
    "cyan": "#60c4d0",
    "white": "#d6dae0",
    "brightblack": "#8a919c",
    "brightred": "#ff8c91",
    "brightgreen": "#aadc96",
    "brightyellow": "#fad782",
    "brightblue": "#8cb9ff",
    "brightmagenta": "#dcaaf5",
    "brightcyan": "#82dce6",
    "brightwhite": "#ffffff",
}
XTERM_COLOURS = {
    "default": "#000000",
    "black": "#000000",
    "red": "#cd0000",
    "green": "#00cd00",
    "yellow": "#cdcd00",
    "blue": "#0000ee",
    "magenta": "#cd00cd",
    "cyan": "#00cdcd",
    "white": "#e5e5e5",
    "brightblack": "#7f7f7f",
    "brightred": "#ff0000",
    "brightgreen": "#00ff00",
    "brightyellow": "#ffff00",
    "brightblue": "#5c5cff",
    "brightmagenta": "#ff00ff",
    "brightcyan": "#00ffff",
    "brightwhite": "#ffffff",
}
"""As xterm has them, which are the hardest to read on white."""
BLOCKS = {"█": 1.0, "▓": 0.75, "░": 0.25}
"""Characters that fill their cell, and how densely."""


class Shades(NamedTuple):
    """A terminal's ground and colours, as #rrggbb; `edge` and `title` are those of the picture around it."""

    ground: str = GROUND
    edge: str = EDGE
    title: str = QUIET
    colours: Mapping[str, str] = COLOURS

    @property
    def ink(self) -> str:
        return self.colours["default"]

    def colour(self, name: str, otherwise: str | None = None) -> str:
        """#rrggbb of a colour as pyte names it; `otherwise` of the default one."""
        if name == "default":
            return self.ink if otherwise is None else otherwise
        return f"#{name}" if re.fullmatch(r"[0-9a-f]{6}", name) else self.colours[name.replace("brown", "yellow")]

    def faint(self, ink: str) -> str:
        """Two thirds of the ink, one of the ground."""
        pairs = zip(_parts(ink), _parts(self.ground), strict=True)
        return "#" + "".join(f"{round(one * 0.66 + other * 0.34):02x}" for one, other in pairs)


DARK = Shades()
LIGHT = Shades(ground="#ffffff", edge="#c8ccd2", title="#606772", colours=XTERM_COLOURS)


class Look(NamedTuple):
    """How a cell is drawn. Colours as #rrggbb; an empty ground is the picture's own."""

    ink: str = INK
    ground: str = ""
    bold: bool = False
    italic: bool = False
    underline: bool = False


class Cell(NamedTuple):
    """One place of the screen."""

    text: str
    look: Look


def card(body: Sequence[str], *, title: str, width: float, height: float, shades: Shades = DARK) -> str:
    """A picture of `width` × `height` pixels around what `body` draws."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
        f' height="{height:g}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="{shades.ground}"'
        f' stroke="{shades.edge}"/>',
    )
    return "\n".join((*head, *body, "</svg>")) + "\n"


def screen(rows: Sequence[Sequence[Cell]], title: str, shades: Shades = DARK) -> str:
    """The picture of a screen's rows, all of the same length."""
    width = len(rows[0]) * CELL + 2 * MARGIN
    height = HEAD + len(rows) * LINE + MARGIN / 2
    body = [
        f'<text x="{width / 2:g}" y="23" fill="{shades.title}" text-anchor="middle"'
        f' font-family="system-ui,sans-serif" font-size="13">{escape(title)}</text>',
        f'<g font-family="{FONTS}" font-size="{SIZE}">',
        *(part for number, row in enumerate(rows) for part in _row(row, number)),
        "</g>",
    ]
    return card(body, title=title, width=width, height=height, shades=shades)


def _row(row: Sequence[Cell], number: int) -> Iterator[str]:
    """What has a ground of its own, then blocks and text in runs that look alike."""
    top = HEAD + number * LINE
    place = 0
    for (look, kind), run in itertools.groupby(row, key=lambda cell: (cell.look, cell.text in BLOCKS)):
        cells = [cell.text for cell in run]
        # A wide character has a cell more, which is empty.
        text, length = "".join(cells), len(cells)
        if look.ground:
            yield _rect(place, top, length, look.ground)
        if kind:
            yield from _blocks(text, place, top, look.ink)
        elif text.strip():
            yield _text(text, place, top, look, wider=length - len(text))
        place += length


def _blocks(text: str, place: int, top: float, ink: str) -> Iterator[str]:
    for char, run in itertools.groupby(text):
        length = len(list(run))
        yield _rect(place, top, length, ink, BLOCKS[char])
        place += length


def _rect(place: int, top: float, length: int, ink: str, density: float = 0) -> str:
    """So many cells; without a density the ground of a text."""
    opacity = f' opacity="{density:g}"' if 0 < density < 1 else ""
    height = LINE - (GAP if density else 0)
    return (
        f'<rect x="{MARGIN + place * CELL:.1f}" y="{top:g}" width="{length * CELL:.1f}" height="{height:g}"'
        f' fill="{ink}"{opacity}/>'
    )


def _text(text: str, place: int, top: float, look: Look, *, wider: int) -> str:
    """Blanks at the ends are left out: viewers do not agree on what they are worth.

    `wider`: how many cells it takes beyond one for each letter.
    """
    left = len(text) - len(text.lstrip())
    shown = text.strip()
    marks = ' font-weight="bold"' if look.bold else ""
    marks += ' font-style="italic"' if look.italic else ""
    marks += ' text-decoration="underline"' if look.underline else ""
    across = (len(shown) + wider) * CELL
    return (
        f'<text x="{MARGIN + (place + left) * CELL:.1f}" y="{top + 14:g}" textLength="{across:.1f}"'
        f' fill="{look.ink}"{marks}>{escape(shown).replace(" ", "&#160;")}</text>'
    )


def _parts(shade: str) -> Iterator[int]:
    return (int(shade[place : place + 2], 16) for place in (1, 3, 5))
