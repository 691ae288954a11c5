"""A status line of the person's own: the format `terminal.status`, and the line of `terminal.status_command`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from prompt_toolkit.formatted_text import ANSI, to_formatted_text
from rich.cells import cell_len, set_cell_size

from nca.config.tables import parts_of
from nca.terminal.render.sanitize import to_terminal

_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_SEPARATORS = " \t·•|│/,;:–—-"

Parts = Sequence[tuple[str, str]]
"""Styles and texts."""


def coloured(line: str, *, has_colour: bool) -> list[tuple[str, str]]:
    """A program's line with its colours, and no other escape sequence."""
    pieces = _COLOUR.split(line)
    # Every second piece is a colour.
    safe = [piece if index % 2 else _one_row(piece) for index, piece in enumerate(pieces)]
    if not has_colour:
        return [("nodim", "".join(safe[::2]))]
    return [(f"nodim {style}", text) for style, text, *_ in to_formatted_text(ANSI("".join(safe)))]


def filled(written: str, values: Mapping[str, Parts], cells: int) -> list[tuple[str, str]]:
    """The format with each name's value, in at most so many cells.

    A name without a value leaves with what stands before it. In a narrow window names leave from the end, and what is
    left is cut; no separator stays behind.
    """
    rows: list[list[tuple[str, str]]] = []
    for before, name in parts_of(written):
        value = [part for part in values.get(name, ()) if part[1]]
        if value or not name:
            rows.append([("", before if rows else before.lstrip(_SEPARATORS)), *value])
    if rows and width(flat(rows)) > cells and not parts_of(written)[-1][1]:
        rows.pop()
    while len(rows) > 1 and width(flat(rows)) > cells:
        rows.pop()
    return cut(flat(rows), cells)


def flat(rows: Sequence[Parts]) -> list[tuple[str, str]]:
    return [part for row in rows for part in row if part[1]]


def cut(parts: Parts, cells: int) -> list[tuple[str, str]]:
    """The beginning of a line that fits, with an ellipsis where something is left out."""
    if width(parts) <= cells:
        return list(parts)
    kept: list[tuple[str, str]] = []
    room = max(cells - 1, 0)
    for style, text in parts:
        kept.append((style, text if cell_len(text) <= room else set_cell_size(text, room)))
        room -= cell_len(kept[-1][1])
    while kept and not (last := kept[-1][1].rstrip(_SEPARATORS)):
        kept.pop()
    return [*kept[:-1], (kept[-1][0], f"{last}…")] if kept else [("", "…")][:cells]


def width(parts: Parts) -> int:
    return sum(cell_len(text) for _, text in parts)


def _one_row(text: str) -> str:
    return to_terminal(text).replace("\n", " ").replace("\t", " ")
