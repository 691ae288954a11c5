"""The screen while nca works: printed lines stay in the scrollback, and a tail below them is redrawn.

The tail is drawn with relative moves only (no alternate screen, no absolute positions), with one write per frame, and
never higher than the window. So text can be selected and scrolled as in any other program.

What the person typed is drawn here too: the lines typed while nca works, and messages that were taken.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TextIO

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from nca.terminal.render.layout import hung
from nca.terminal.render.sanitize import one_line, to_terminal
from nca.terminal.render.stream_writer import ERASE_DOWN, StreamWriter, rewrapped, rewraps_lines
from nca.terminal.render.theme import screen_console

_STYLE_CODE = re.compile(r"\x1b\[[0-9;]*m")

# The tail must not wrap, even if the terminal and Rich disagree about a character's width (emoji, ligatures).
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"


class Cursor(NamedTuple):
    """The place of the terminal's cursor in the tail, which a screen reader follows; without one it is at the end.

    below   how many of the tail's lines are below it
    column  in its line
    """

    below: int
    column: int


class Screen:
    """Printed lines, and the tail below them. After a failed write (a closed terminal) nothing more is written."""

    def __init__(self, file: TextIO) -> None:
        self.console: Console = screen_console()
        self._writer = StreamWriter(file)
        self._tail: list[str] = []
        self._cursor: Cursor | None = None
        self._rewraps = rewraps_lines()
        self._above_prompt: Callable[[Callable[[], None]], None] | None = None
        self.is_line_open = False
        """Another writer has begun a line here, so no tail can be drawn below it."""

    @property
    def failure(self) -> Exception | None:
        return self._writer.failure

    def print(self, *renderables: RenderableType) -> None:
        """Print above the tail. Strings are treated as untrusted text."""
        printed = "".join(self._render(renderable) for renderable in renderables)
        if self._above_prompt is not None:

            def write() -> None:
                self._writer.write(printed)

            self._above_prompt(write)
            return
        self._writer.write(self._to_tail_start() + ERASE_DOWN + printed if self._tail else printed)
        tail, self._tail = self._tail, []
        if tail:
            self._paint(tail)

    def draw(
        self, printed: Iterable[RenderableType], tail: RenderableType | None, cursor: Cursor | None = None
    ) -> None:
        """Draw one frame with one write: print finished parts, and replace the tail. `cursor` is where it then is."""
        finished = "".join(self._render(renderable) for renderable in printed)
        lines = self._fit(self._render(tail).split("\n")[:-1]) if tail is not None else []
        start = self._to_tail_start()
        if not finished and (lines, cursor) == (self._tail, self._cursor):
            return
        if finished:
            start += ERASE_DOWN
        self._tail, self._cursor = [], cursor
        self._paint(lines, before=start + finished)

    def send_codes(self, codes: str) -> None:
        """Send escape codes that draw nothing, such as a bell or the clipboard. They must hold no untrusted text."""
        self._writer.write(codes)

    def begin_prompt(self, above: Callable[[Callable[[], None]], None]) -> None:
        """A prompt is about to be shown. `above` runs a write so that it appears above the prompt."""
        self.clear_tail()
        self._above_prompt = above

    @property
    def has_prompt(self) -> bool:
        return self._above_prompt is not None

    def end_prompt(self) -> None:
        self._above_prompt = None

    def clear_tail(self) -> None:
        if self._tail:
            self._writer.write(self._to_tail_start() + ERASE_DOWN)
            self._tail = []

    def clear(self) -> None:
        """Clear the screen. The scrollback stays."""
        self.clear_tail()
        self._writer.write("\x1b[H\x1b[2J")

    def _paint(self, lines: list[str], *, before: str = "") -> None:
        # Each line is erased before it is written, the last one with all below it. Erasing afterwards would remove the
        # last character of a full line.
        *above, last = lines or [""]
        body = "".join(f"\x1b[K{line}\r\n" for line in above) + ERASE_DOWN + last
        moved = ""
        if self._cursor is not None:
            below, column = min(self._cursor.below, max(len(lines) - 1, 0)), self._cursor.column
            moved = "\r" + (f"\x1b[{below}A" if below else "") + (f"\x1b[{column}C" if column else "")
        drawn = f"{before}{_NO_WRAP}{body}{_WRAP}{moved}"
        self._writer.write(drawn if lines else before + ERASE_DOWN if before else "")
        self._tail = lines

    def _to_tail_start(self) -> str:
        """The codes that move to the start of the tail, even if the window got narrower and the tail was rewrapped."""
        if not self._tail:
            return ""
        width = max(self.console.width, 1)
        below = self._cursor.below if self._cursor is not None else 0
        above = self._tail[: max(len(self._tail) - below, 1)]
        if self._rewraps:
            cells = [cell_len(_STYLE_CODE.sub("", line)) for line in above]
            if self._cursor is not None:
                cells[-1] = self._cursor.column + 1
            rows = rewrapped(cells, width)
        else:
            rows = len(above)
        up = min(rows, max(self.console.height, 1)) - 1
        return f"\r\x1b[{up}A" if up else "\r"

    def _fit(self, lines: list[str]) -> list[str]:
        """The last lines that fit. Two rows stay free, and a window of fewer than four rows has no tail."""
        room = self.console.height - 2
        return lines[-room:] if room >= 2 else []

    def _render(self, renderable: RenderableType) -> str:
        if isinstance(renderable, str):
            renderable = Text(to_terminal(renderable))
        with self.console.capture() as captured:
            self.console.print(renderable)
        return captured.get()


class TailScreen(Screen):
    """Draws the tail alone: what is printed is written elsewhere."""

    def print(self, *renderables: RenderableType) -> None:
        pass

    def draw(
        self, printed: Iterable[RenderableType], tail: RenderableType | None, cursor: Cursor | None = None
    ) -> None:
        super().draw((), None if self.is_line_open else tail, cursor)

    def send_codes(self, codes: str) -> None:
        pass


class KeptScreen(Screen):
    """Keeps what is printed, for another screen."""

    def __init__(self) -> None:
        super().__init__(io.StringIO())
        self.kept: list[RenderableType] = []

    def print(self, *renderables: RenderableType) -> None:
        self.kept += [Text(to_terminal(one)) if isinstance(one, str) else one for one in renderables]


TYPED = "› "
"""Before what the person typed."""
_MOST_CHARS = 2_000
"""Shown of a message that no prompt has shown."""


class TypedAhead(Protocol):
    """The text that the person types while nca works."""

    def typed_ahead_lines(self, *, is_turn: bool) -> tuple[Sequence[str], Sequence[str], int, int]:
        """The lines below everything else: notes, then the rows of the typed line; the cursor's row of them, and cell.

        is_turn  the model works
        """

    def labelled(self, text: str) -> str:
        """A text that was sent, with labels in place of long pastes, as it stood in the prompt."""


def typed_tail(typed: TypedAhead, *, is_turn: bool) -> tuple[list[Text], Cursor | None]:
    """The lines below everything else, and the cursor in them."""
    notes, rows, row, cell = typed.typed_ahead_lines(is_turn=is_turn)
    lines = [*(f"  {one_line(note)}" for note in notes), *_behind_sign(map(to_terminal, rows))]
    cursor = Cursor(len(rows) - 1 - row, cell_len(TYPED) + cell) if rows else None
    return [Text(line, style="quiet", no_wrap=True, overflow="ellipsis") for line in lines], cursor


def taken_message(text: str, typed: TypedAhead | None, console: Console) -> list[Text]:
    """A message as it stood in the prompt."""
    shown = typed.labelled(text).rstrip() if typed is not None else text.rstrip()
    rows = _behind_sign(to_terminal(shown if len(shown) <= _MOST_CHARS else f"{shown[:_MOST_CHARS]}…").split("\n"))
    return [part for row in rows for part in hung(Text(row), console, console.width, before=cell_len(TYPED))]


def _behind_sign(rows: Iterable[str]) -> list[str]:
    return [f"{TYPED if not number else ' ' * cell_len(TYPED)}{row}" for number, row in enumerate(rows)]
