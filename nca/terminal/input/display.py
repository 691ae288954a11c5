"""The prompt's text as it is drawn: pastes as labels, tabs as blanks, rows of whole words; style and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.data_structures import Size
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth
from rich.cells import cell_len, set_cell_size

from nca.terminal.input.line_editor import Typed
from nca.terminal.input.line_kind import in_a_row
from nca.terminal.input.pastes import FoldedPastes
from nca.terminal.render.sanitize import to_terminal
from nca.terminal.render.stream_writer import ERASE_DOWN, RESIZE_SECONDS, encodable, is_utf8, rewrapped, rewraps_lines
from nca.terminal.render.theme import has_colour, prompt_styles

TAB_CELLS = 4
_LABEL_STYLE = " class:pasted"
_UNSEEN = "\ufffd"


class Hint:
    """A line in place of the toolbar."""

    def __init__(self, draw: Callable[[], None]) -> None:
        """`draw` is called when the text has changed."""
        self.text = ""
        self._draw = draw

    def show(self, text: str, seconds: float = 0.0) -> None:
        """Show another text, for this many seconds; 0: until the next one. "" shows the toolbar again."""
        self.text = text
        self._draw()
        if seconds:
            asyncio.get_running_loop().call_later(seconds, self._forget, text)

    def _forget(self, text: str) -> None:
        if self.text == text:
            self.show("")


class ShownText(Processor):
    """Draws one line, each folded paste as its label.

    The text itself does not change: the typed or pasted text is sent. `indent` tells how many cells of each row
    are before the text.
    """

    def __init__(self, pastes: FoldedPastes, indent: Callable[[], int]) -> None:
        self._pastes = pastes
        self._indent = indent

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = explode_text_fragments(transformation_input.fragments)
        shown: list[tuple[str, str]] = []
        position = 0
        for style, character, *_ in fragments:
            text, extra_style = self._shown(character, position)
            shown.append((style + extra_style, text))
            position += len(text)
        shown = in_rows(shown, transformation_input.width - self._indent())
        widths = [len(text) for _, text in shown]
        if all(width == 1 for width in widths):
            return Transformation([*shown])
        # The cursor may be one cell after the end of the line.
        starts = list(accumulate([*widths, 1], initial=0))
        return Transformation(
            [*shown],
            source_to_display=lambda source: starts[min(source, len(starts) - 1)],
            display_to_source=lambda display: max(index for index, start in enumerate(starts) if start <= display),
        )

    def _shown(self, character: str, position: int) -> tuple[str, str]:
        """The text for a character, and what is added to its style."""
        if character == "\t":
            return " " * (TAB_CELLS - position % TAB_CELLS), ""
        if (label := self._pastes.label(character)) is not None:
            return label, _LABEL_STYLE
        if character.isprintable() or character < "\x20" or character == "\x7f":
            # prompt_toolkit draws control characters as ^C by itself.
            return character, ""
        return (character if to_terminal(character) == character else _UNSEEN), ""


def in_rows(pieces: list[tuple[str, str]], cells: int) -> list[tuple[str, str]]:
    """Pieces, of a style and a text each, with blanks that push a word into the next row where it does not fit.

    A row has this many cells. A blank that would begin a row is not drawn; a word longer than a row is cut.
    """
    rows = list(pieces)
    column = 0
    start = 0
    while start < len(rows):
        text = rows[start][1]
        end = start + 1
        if not text.isspace():
            while end < len(rows) and not rows[end][1].isspace():
                end += 1
        width = sum(get_cwidth(text) for _, text in rows[start:end])
        if text.isspace() and column >= cells:
            rows[start], width, column = (rows[start][0], ""), 0, 0
        elif column and width <= cells < column + width:
            style, blank = rows[start - 1]
            rows[start - 1] = (style, blank + " " * (cells - column))
            column = 0
        column += width
        if column > cells > 0:
            column = (column - 1) % cells + 1
        start = end
    return rows


_VI_MODES = {
    InputMode.NAVIGATION: "N",
    InputMode.INSERT: "I",
    InputMode.INSERT_MULTIPLE: "I",
    InputMode.REPLACE: "R",
    InputMode.REPLACE_SINGLE: "R",
}

_STYLES = {
    "continuation": "dim",
    "pasted": "underline",
    "auto-suggestion": "default dim",
    "bottom-toolbar": "noreverse bg:default default",
    "bottom-toolbar.text": "noreverse bg:default default dim",
    "activity": "dim",
    "completion-menu": "bg:default default",
    "completion-menu.completion": "bg:default default",
    "completion-menu.completion.current": "reverse",
    "completion-menu.meta.completion": "bg:default default dim",
    "completion-menu.meta.completion.current": "reverse",
    "scrollbar.background": "bg:default",
    "scrollbar.button": "bg:default reverse",
}
_MOST_ROWS = 5
"""Rows of a line that is typed ahead."""
_NOTE = " (Enter queues it)"
"""After what is typed ahead, where the row has room."""


@cache
def prompt_style(theme: str) -> Style:
    colours = prompt_styles(theme)
    accent, notice = colours["accent"], colours["notice"]
    coloured = {"prompt": f"{accent} bold", "gauge": f"nodim {accent}"}
    return Style.from_dict(_STYLES | coloured | {"gauge.high": f"nodim {notice}", "hint": f"nodim {notice}"})


def sign(app: Application[Any]) -> StyleAndTextTuples:
    """The part before the text, with the mode for vi keys."""
    if app.editing_mode != EditingMode.VI:
        return [("class:prompt", "› ")]
    letter = "V" if app.current_buffer.selection_state else _VI_MODES.get(app.vi_state.input_mode, "?")
    return [("class:continuation", f"[{letter}] "), ("class:prompt", "› ")]


def give_back_rows(app: Application[Any]) -> None:
    """From now on erase what prompt_toolkit leaves of a drawing with more rows than the next one."""
    app.before_render += _give_back
    RewrappedRows(app)


def _give_back(app: Application[Any]) -> None:
    """Erase the last drawing if it had more rows, such as those of a menu."""
    size, last = app.output.get_size(), app.renderer.last_rendered_screen
    if last and app.layout.container.preferred_height(size.columns, size.rows).preferred < last.height:
        app.renderer.erase(leave_alternate_screen=False)


class RewrappedRows:
    """Erases what a terminal that rewraps its lines has left of a drawing when the window got narrower.

    prompt_toolkit goes up by as many rows as it had drawn. They are more by then.
    """

    def __init__(self, app: Application[Any]) -> None:
        self._cells: list[int] = []
        """Of each drawn row down to the cursor."""
        self._columns = 0
        self._timer: asyncio.TimerHandle | None = None
        resized = app._on_resize

        def wait() -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(RESIZE_SECONDS, lambda: app.is_running and resized())

        app._on_resize = wait  # type: ignore[method-assign]  # prompt_toolkit draws at once, and has no setting
        app.on_reset += self._forget
        app.before_render += self._erase
        if rewraps_lines():
            app.after_render += self._note

    def _forget(self, _: object) -> None:
        self._cells = []

    def _note(self, app: Application[Any]) -> None:
        screen, self._columns = app.renderer.last_rendered_screen, app.output.get_size().columns
        if screen is not None:
            cursor = screen.get_cursor_position(app.layout.current_window)
            self._cells = [*(_drawn_cells(screen.data_buffer[row]) for row in range(cursor.y)), cursor.x + 1]

    def _erase(self, app: Application[Any]) -> None:
        columns = app.output.get_size().columns
        if columns < self._columns and (more := rewrapped(self._cells, columns) - len(self._cells)):
            if app.renderer.last_rendered_screen is not None:  # a key came first
                app.renderer.erase(leave_alternate_screen=False)
            app.output.cursor_up(more)
            app.output.erase_down()
        self._cells = []


def _drawn_cells(row: Mapping[int, Char]) -> int:
    """How many cells of a row of the screen are drawn."""
    return max((column + character.width for column, character in row.items() if character.char.strip()), default=0)


class TypedLines(NamedTuple):
    """The lines below everything else while nca works.

    notes  lines about typed text: queued lines, the effect of a key
    rows   the line that is being typed; nothing is shown for "" without notes
    row    of the cursor, and its `cell` in that row
    """

    notes: Sequence[str] = ()
    rows: Sequence[str] = ()
    row: int = 0
    cell: int = 0


def typed_ahead(typed: Typed, hint: str, window: Size, *, is_turn: bool) -> TypedLines:
    """The text typed while nca works, on lines that fit the window, below a hint.

    is_turn  the model works, and its next step gets the messages that no command holds up
    """
    columns, most_rows = window.columns, max(1, min(_MOST_ROWS, window.rows // 4))
    soon, later = (typed.soon, typed.later) if is_turn else ([], [*typed.soon, *typed.later])
    held, later = ([*typed.held, *later], []) if typed.held else ([], later)
    notes = [hint] if hint else []
    for label, lines in (
        ("waiting for your Enter", held),
        ("for the next step", soon),
        ("when this is done", later),
        ("behind the line below", typed.behind),
    ):
        if lines:
            start = _labelled(label, lines)
            notes.append(start + _end_of(in_a_row(lines), columns - 3 - len(start)))
    if typed.leaves:
        # With a queued line the prompt is not empty after Esc, and Ctrl-D does not leave it.
        then = "all is done; Esc stops and stays" if soon or later else "this is done, Esc now"
        notes.append(f"Ctrl-D leaves when {then}.")
    if not typed.open:
        return TypedLines(notes, ("",) if notes else ())
    rows, row, cell = _in_window(typed.open, typed.place, columns - 3)
    first = max(0, min(row, len(rows) - most_rows))
    shown = rows[first : first + most_rows]
    sides = ((first, "above"), (len(rows) - first - len(shown), "below"))
    if cut := ", ".join(f"{count} {side}" for count, side in sides if count):
        notes.append(f"rows not shown: {cut}")
    if first + most_rows >= len(rows) and cell_len(shown[-1]) + len(_NOTE) <= columns - 3:
        shown[-1] += _NOTE
    return TypedLines(notes, shown, row - first, cell)


def _in_window(text: str, place: int, cells: int) -> tuple[list[str], int, int]:
    """The rows of a text, each of so many cells, and the cursor's row and cell."""
    rows: list[str] = []
    here = (0, 0)
    start = 0
    for line in text.split("\n"):
        rows.append("")
        shown = [("", _safe(character)) for character in line]
        for number, (_, piece) in enumerate([*in_rows(shown, cells), ("", "")]):
            is_here = start + number == place
            if cell_len(rows[-1]) + max(get_cwidth(piece), is_here) > cells:
                rows.append("")
            if is_here:
                here = len(rows) - 1, cell_len(rows[-1])
            rows[-1] += piece
        start += len(line) + 1
    return rows, *here


def _safe(character: str) -> str:
    return " " if character == "\t" else character if to_terminal(character) == character else _UNSEEN


def waiting(held: Sequence[str], cells: int, *, is_empty: bool) -> str:
    """The line below a prompt about the lines that are held, in at most `cells` cells; "" if there are none.

    is_empty  the prompt is, so that its key acts on them
    """
    if not held:
        return ""
    start, end = _labelled("waiting", held), " · Ctrl-C drops " + ("them" if len(held) > 1 else "it")
    return start + end_cut(in_a_row(held), cells - len(start) - len(end) * is_empty) + end * is_empty


def end_cut(text: str, cells: int) -> str:
    """The beginning of a text, in at most `cells` cells."""
    room = max(cells, 1)
    return text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + "…"


def _labelled(label: str, lines: Sequence[str]) -> str:
    return f"{label} ({len(lines)}): " if len(lines) > 1 else f"{label}: "


def _end_of(text: str, cells: int) -> str:
    """The end of a text, in at most `cells` cells."""
    room = max(cells, 1)
    return text if cell_len(text) <= room else "…" + set_cell_size(text[::-1], room - 1)[::-1].lstrip()


class _NoQuestions(Vt100_Output):
    """Sends the terminal no queries: an answer that comes late (over ssh, say) would be typed into the prompt.

    It leaves the marks of pastes on: `TypeAhead.quiet` turns them off, so that no paste comes unmarked between readers.
    """

    @property
    def responds_to_cpr(self) -> bool:
        return False

    def get_rows_below_cursor_position(self) -> int:
        return 1

    def erase_down(self) -> None:
        self.write_raw(ERASE_DOWN)  # prompt_toolkit erases from the first cell of a row only

    def disable_bracketed_paste(self) -> None:
        pass

    def write(self, data: str) -> None:
        # What prompt_toolkit draws is a grid of cells: three dots would move all that follows.
        is_whole = is_utf8(self.encoding())
        super().write(data if is_whole else encodable(data.replace("…", "~"), self.encoding()))


def write_above(app: Application[Any], write: Callable[[], None]) -> None:
    """Write above what an application draws, or at once if it is not on the screen.

    An application that ends cancels its tasks, also before they begin; then the text is written below it.
    """
    is_written = False

    def write_once() -> None:
        nonlocal is_written
        if not is_written:
            is_written = True
            write()

    async def in_turn() -> None:
        await run_in_terminal(write_once)

    if app.is_running:
        app.create_background_task(in_turn()).add_done_callback(lambda _: write_once())
    else:
        write_once()


async def drawn(app: Application[Any]) -> None:
    """Wait until an application is on the screen."""
    is_drawn = asyncio.Event()

    def note(_: object) -> None:
        is_drawn.set()

    app.after_render += note
    try:
        await is_drawn.wait()
    finally:
        app.after_render -= note


def terminal_output() -> Output:
    """The output of prompt_toolkit: a terminal that gets no queries, without colour if none is wanted."""
    depth = None if has_colour(os.environ) else ColorDepth.DEPTH_1_BIT
    return _NoQuestions.from_pty(sys.stdout, term=os.environ.get("TERM"), default_color_depth=depth)
