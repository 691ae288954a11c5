"""Break lines: between words where nca draws no screen, lines of keys between these, code and diffs with an indent."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

_GAP = "  "
_DOT = " ·"
_PIECES = re.compile(r"\n|[^\S\n]+|\S+")
_CODE_INDENT = 4


class Parted:
    """A line of parts with ` · ` between them. Where it is broken, no such dot is left at either end of a row."""

    def __init__(self, line: Text | str, style: str = "") -> None:
        self._line = Text(line, style) if isinstance(line, str) else line

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = self._line.wrap(console, options.max_width)
        for row in rows[:-1]:
            row.rstrip()
            if row.plain.endswith(_DOT):
                row.right_crop(len(_DOT))
        starts = f"{_DOT.strip()} "
        yield from (row[len(starts) :] if row.plain.startswith(starts) else row for row in rows)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._line)


def without_dots(text: str) -> str:
    """A text of several rows without such dots at the ends of rows."""
    return text.replace(f"{_DOT}\n", "\n")


def broken_at_gaps(line: Text, columns: int) -> Text:
    """The line as rows that end where two blanks stood: a key and what it does are not parted."""
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
    """The rows of a line that goes on below its own beginning where it is wider than the window.

    before   cells in front of the line's own text, such as the mark of a diff
    further  cells by which its further rows begin more to the right
    """
    own = line.plain[before:]
    indent = before + len(own) - len(own.lstrip(" "))
    if indent > columns // 2:
        indent = before
    first, rest = line.divide([indent])
    room = max(1, columns - indent - further)
    for number, row in enumerate(rest.wrap(console, room, overflow="fold")):
        # Rich cuts a long word with the blank behind it, which may so come to stand in front of the next word.
        blanks = len(row) - len(row.plain.lstrip(" ")) if number else 0
        if blanks < len(row) or not number:
            yield Text(" " * (indent + further)).append_text(row[blanks:]) if number else first.append_text(row)


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
        """What can be written by now; the last word waits for its end."""
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
