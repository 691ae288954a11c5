"""Lay text out: tables without borders, and lines broken between words."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.containers import Lines
from rich.measure import Measurement
from rich.padding import Padding
from rich.text import Text

from nca.terminal.render.theme import PLAIN_WIDTH

if TYPE_CHECKING:
    from rich.table import Column, Table


_GAP = "  "
_DOT = " ·"
_PIECES = re.compile(r"\n|[^\S\n]+|\S+")
_CODE_INDENT = 4
_UNIT = re.compile(r"(?<![^\s(])(\d[\d.,/]*) (?=[A-Za-z])")
_LAST_NUMBER = re.compile(r" · \d[\d.,]* [a-z]+(?: \d+ s)?$")
"""A number that is the last part of a line, such as how long something took: it is no row of its own."""
_JOINT = "\ue000"
"""Stands between a number and its unit while a line is broken: Rich breaks at a no-break space too."""


class Parted:
    """A line of parts with ` · ` between them. If it wraps, no such dot is left at either end of a row."""

    def __init__(self, line: Text | str, style: str = "") -> None:
        self._line = Text(line, style) if isinstance(line, str) else line

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = _rows(self._line, console, options.max_width)
        for row in rows[:-1]:
            row.rstrip()
            if row.plain.endswith(_DOT):
                row.right_crop(len(_DOT))
        starts = f"{_DOT.strip()} "
        yield from (row[len(starts) :] if row.plain.startswith(starts) else row for row in rows)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._line)


def _rows(line: Text, console: Console, columns: int) -> Lines:
    """The rows of a line that is broken between words, but not between a number and its unit."""
    joined = line.copy()
    ended = _LAST_NUMBER.sub(lambda last: last[0].replace(" ", _JOINT), line.plain)
    joined.plain = _UNIT.sub(rf"\1{_JOINT}", ended)
    rows = joined.wrap(console, columns, overflow="fold")
    for row in rows:
        row.plain = row.plain.replace(_JOINT, " ")
    return rows


def without_dots(text: str) -> str:
    """A text of several rows without such dots at the ends of rows."""
    return text.replace(f"{_DOT}\n", "\n")


def broken_at_gaps(line: Text, columns: int) -> Text:
    """The line as rows that break at two blanks, so that a key stays with its meaning."""
    rows: list[Text] = []
    for piece in line.split(_GAP):
        if rows and rows[-1].cell_len + len(_GAP) + piece.cell_len <= columns:
            rows[-1].append(_GAP).append_text(piece)
        else:
            rows.append(piece)
    joined = Text("\n").join(rows)
    joined.style = line.style
    return joined


def hung(line: Text, console: Console, columns: int, *, before: int = 0, further: int = 0) -> Iterator[Text]:
    """The rows of a line that wraps below its own beginning if it is wider than the window.

    before   cells in front of the line's own text, such as the mark of a diff
    further  cells by which its further rows begin more to the right
    """
    own = line.plain[before:]
    indent = before + len(own) - len(own.lstrip(" "))
    if indent > columns // 2:
        indent = before
    first, rest = line.divide([indent])
    room = max(1, columns - indent - further)
    for number, row in enumerate(_rows(rest, console, room)):
        # Rich cuts a long word with the blank after it, which may then come before the next word.
        blanks = len(row) - len(row.plain.lstrip(" ")) if number else 0
        if blanks < len(row) or not number:
            yield Text(" " * (indent + further)).append_text(row[blanks:]) if number else first.append_text(row)


def behind_mark(line: Text, console: Console) -> Iterator[Text]:
    """The rows of a line that begins with a mark: further ones begin below its text."""
    return hung(line, console, console.width, before=2)


class BehindMark:
    """Such a line, in whatever window it is shown; its mark takes `before` cells."""

    def __init__(self, line: Text, before: int) -> None:
        self._line, self._before = line, before

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from hung(self._line, console, options.max_width, before=self._before)


class WordWrap:
    """Breaks a text that comes in pieces. Code and tables stay as they are.

    columns  of the terminal; may change at any time
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._column = 0
        self._blank = self._word = ""
        self._is_code = self._stays = False

    def feed(self, text: str) -> str:
        """The part that can be written by now; the last word waits for its end."""
        written = ""
        for piece in _PIECES.findall(text):
            if not piece.isspace():
                self._word += piece
                continue
            written += self._place()
            if piece == "\n":
                written += piece
                self._column, self._blank, self._stays = 0, "", False
            else:
                self._blank += piece
        return written

    def finish(self) -> str:
        """The rest. The next text begins a line."""
        rest = self._place()
        self._column, self._blank, self._is_code, self._stays = 0, "", False, False
        return rest

    def _place(self) -> str:
        """The word that is complete, in this line or the next."""
        if not self._word:
            return ""
        if not self._column:
            is_fence = self._word.startswith(("```", "~~~"))
            is_table = self._word.startswith("|") or len(self._blank.expandtabs(_CODE_INDENT)) >= _CODE_INDENT
            self._stays = self._is_code or is_fence or is_table
            self._is_code ^= is_fence
        placed = self._blank + self._word
        if self._column + cell_len(placed) > self.columns and self._column and not self._stays:
            placed, self._column = f"\n{self._word}", 0
        self._column += cell_len(placed.removeprefix("\n"))
        self._blank = self._word = ""
        return placed


def wrapped(text: str, columns: int) -> str:
    """A whole text, broken between words."""
    wrap = WordWrap(columns)
    return wrap.feed(text) + wrap.finish()


LEAST_CELLS = 12
"""A column that gives way to others keeps so many cells."""
WHOLE = sys.maxsize
"""`least` of a column that is not cut."""
_COLUMN_GAP = 2


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
    least: int = LEAST_CELLS,
    drops: Sequence[str] = (),
    wraps: bool = False,
    styles: Sequence[str] = (),
) -> RenderableType:
    """Cells by heading as a table if the window has room for its columns, or else as lines.

    numbers    right-aligned columns; in a line the heading comes after a number, not after a word
    gives_way  the column that gets the room that the others leave; its cells are cut, or fill more lines if it `wraps`.
               In lines it has one of its own, unless it is the first column
    least      cells that it needs in a table, if it is as wide
    drops      columns to do without in a narrow window, as in a list to choose from; no other cell is left out
    styles     of each row
    """
    spare = [*(head for head, column in columns.items() if not any(column)), *drops]
    while (room := _room(columns, gives_way)) < (needed := min(least, _cells(columns, gives_way))) and spare:
        gone = spare.pop(0)
        columns = {head: column for head, column in columns.items() if head != gone}
    gives_way = gives_way if gives_way in columns else ""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if room < needed:
        given = styles or [""] * len(rows)
        lines = (_lines_of(row, numbers, gives_way, wraps, style) for row, style in zip(rows, given, strict=True))
        return Group(*(line for of_row in lines for line in of_row))
    table = new_table(has_header=True, gap=_COLUMN_GAP)
    for head in columns:
        has_rest = head == gives_way
        table.add_column(
            head,
            justify="right" if head in numbers else "left",
            no_wrap=not (has_rest and wraps),
            overflow="ellipsis",
            max_width=max(room, 1) if has_rest else None,
        )
    for number, row in enumerate(rows):
        table.add_row(*row.values(), style=styles[number] if styles else None)
    return table


def _room(columns: Mapping[str, Sequence[Text]], gives_way: str) -> int:
    """The cells that the other columns leave to the one that gives way."""
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
    return width - sum(_cells(columns, head) + _COLUMN_GAP for head in columns if head != gives_way)


def _cells(columns: Mapping[str, Sequence[Text]], head: str) -> int:
    return max((len(head), *(cell.cell_len for cell in columns.get(head, ()))))


def _lines_of(
    row: Mapping[str, Text], numbers: Sequence[str], gives_way: str, wraps: bool, style: str
) -> Iterator[RenderableType]:
    """A row of a table as lines: all that is short after the first cell, and the column that gives way below it."""
    (first, begin), *others = row.items()
    line = begin.copy()
    short = [(head, cell) for head, cell in others if head != gives_way and cell.plain.strip()]
    for number, (head, cell) in enumerate(short):
        line.append(" · " if number else _GAP).append_text(cell)
        if head in numbers and not cell.plain[0].isalpha():
            line.append(f" {head.removesuffix('s') if cell.plain == '1' else head}")
    line.stylize_before(style)
    yield Parted(line)
    if gives_way in (first, ""):
        return
    below = Text(", ".join(row[gives_way].plain.split("\n")), row[gives_way].style, no_wrap=not wraps)
    below.overflow = "fold" if wraps else "ellipsis"
    below.stylize_before(style)
    if below.plain.strip():
        yield Padding(below, (0, 0, 0, _COLUMN_GAP))
