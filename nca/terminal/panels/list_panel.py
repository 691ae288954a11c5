"""A list that the person walks with the keys, drawn below the text on the screen and erased at the end.

A subclass defines the list's content and its keys: sessions, the context, settings.
"""

from __future__ import annotations

import asyncio
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, Dimension, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.styles import Style
from rich.cells import cell_len, set_cell_size

from nca.terminal.input.display import RewrappedRows, terminal_output, write_above
from nca.terminal.input.keyboard import ESCAPE_SECONDS, Keyboard
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.theme import prompt_styles

R = TypeVar("R")
T = TypeVar("T")

Line = Sequence[tuple[str, str]]
"""Pieces of text, each with its style. The text must be safe already."""

BAR = "class:part."
"""How the styles of bars begin."""
MOST_LINES = 18
"""Most lines of a list, if its subclass does not say otherwise. It scrolls, so it need not fill a large screen."""
_LEAST_WITH_KEYS = 4
_LEAST_ROWS = 4
"""With fewer rows of the list left, nothing is said about the chosen one."""
_PAGE, _ALL = 10, 1_000_000_000
_BETWEEN, _NO_BREAK = " · ", "\u00a0"


class Listing(NamedTuple):
    """The current content of a list.

    total   how many rows there are
    row     draws the row of a number from 0 on; called for those on the screen
    chosen  the number of the row that is chosen; -1 if none can be
    about   lines about the chosen one: always as many, so that the list does not move
    keys    what the keys do: the first of these texts that fits is shown
    head    a line above the rows
    """

    total: int
    row: Callable[[int], Line]
    chosen: int
    about: Sequence[Line] = ()
    keys: Sequence[str] = ()
    head: Line = ()


class ListPanel(ABC, Generic[R, T]):
    """One list, shown once.

    rows        what it lists now
    selected    the number of the chosen row
    most_lines  how many lines it takes at most, without the line that is typed into
    """

    rows: Sequence[R] = ()
    selected = 0
    _kept: R | None = None
    _looking: asyncio.Task[None] | None = None
    most_lines = MOST_LINES

    def __init__(self, theme: str = "auto", *, is_typed: bool = True) -> None:
        """`theme` is the setting terminal.theme. `is_typed`: above the list is a line to type into."""
        self.buffer = Buffer(multiline=False, on_text_changed=lambda _: self.typed(self.buffer.text))
        self._theme = theme
        self.is_typed = is_typed

    @abstractmethod
    def row(self, row: R, columns: int) -> Line:
        """A row in a window of so many columns."""

    @abstractmethod
    def about(self, columns: int) -> Sequence[Line]:
        """Lines about the chosen row."""

    @abstractmethod
    def key_texts(self) -> Sequence[str]:
        """What the keys do, from long to short."""

    def head(self, columns: int) -> Line:
        """The line above the rows."""
        return ()

    def nothing(self) -> str:
        """What stands in place of the rows, if there is none."""
        return "nothing found"

    def listing(self, columns: int) -> Listing:
        """The current content, in a window of so many columns."""
        rows, about, keys, head = self.rows, self.about(columns), self.key_texts(), self.head(columns)
        if not rows:
            return Listing(1, lambda _: [("class:quiet", self.nothing())], -1, about, keys, head)
        return Listing(len(rows), lambda number: self.row(rows[number], columns), self.selected, about, keys, head)

    @property
    def chosen(self) -> R | None:
        return self.rows[self.selected] if self.rows else None

    def fill(self, rows: Sequence[R]) -> None:
        """List other rows. The one that the person chose stays chosen, if it is among them; else the first one is."""
        self.rows = rows
        self.selected = rows.index(self._kept) if self._kept in rows else self.first

    @property
    def first(self) -> int:
        """The number of the row that is chosen until the person moves."""
        return 0

    def choose_first(self) -> None:
        """The rows are new to the person: what they chose before no longer counts."""
        self._kept, self.selected = None, self.first

    def keep(self) -> None:
        """The chosen row stays chosen, whatever is listed next."""
        self._kept = self.chosen or self._kept

    def move(self, by: int) -> None:
        """Choose the row so many below the chosen one, or the last one before the end of the list."""
        self.selected = max(0, min(len(self.rows) - 1, self.selected + by))
        self.keep()

    @abstractmethod
    def enter(self) -> None:
        """Enter was pressed."""

    @property
    def label(self) -> str:
        """The prompt before typed text."""
        return "Search: "

    def begin(self) -> None:
        """The list is about to be shown."""

    def typed(self, text: str) -> None:
        """The text in the line has changed."""

    def keys(self) -> Mapping[str, Callable[[], None]]:
        """Other keys by their names, and what each does."""
        return {}

    def press(self, key: str) -> None:
        """Any other key that is a character was pressed, in a list without a line to type into."""

    def leave(self) -> None:
        """Escape or Ctrl-C was pressed."""
        self.end(None)

    def end(self, result: T | None) -> None:
        """Erase the list; `run` returns the result."""
        self._app.exit(result=result)

    async def run(self) -> T | None:
        """Show the list until it ends. None if the person leaves."""
        self._app.ttimeoutlen = ESCAPE_SECONDS
        try:
            # The chat handles SIGINT itself.
            return await self._app.run_async(pre_run=self.begin, handle_sigint=False)
        finally:
            # Keys that came in one piece with the one that ended the list were typed for the prompt.
            store_typeahead(Keyboard(), get_typeahead(self._app.input))

    def above(self, write: Callable[[], None]) -> None:
        """Run a write so that it appears above the list."""
        write_above(self._app, write)

    def redraw(self) -> None:
        self._app.invalidate()

    def background(self, work: Coroutine[Any, Any, None]) -> Any:
        """Start a task that is cancelled when the list ends."""
        return self._app.create_background_task(work)

    def look(self, near: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Look something up about the rows near the chosen one, unless that is being done."""
        if self._looking is None or self._looking.done():
            self._looking = self.background(near())

    @cached_property
    def _app(self) -> Application[T | None]:
        windows = [Window(FormattedTextControl(self._lines), height=self._height, dont_extend_height=True)]
        if self.is_typed:
            before = BeforeInput(lambda: [("class:label", self.label)])
            windows.insert(0, Window(BufferControl(self.buffer, [before]), height=1, dont_extend_height=True))
        app: Application[T | None] = Application(
            layout=Layout(HSplit(windows)),
            key_bindings=self._bindings(),
            style=Style.from_dict(prompt_styles(self._theme) | {"chosen": "reverse"}),
            include_default_pygments_style=False,
            erase_when_done=True,
            input=_ListKeyboard(),
            output=terminal_output(),
        )
        RewrappedRows(app)
        return app

    def _lines(self) -> StyleAndTextTuples:
        size = self._app.output.get_size()
        # The last row of the screen stays free.
        room = max(0, min(self.most_lines, size.rows - 1 - self.is_typed))
        return fitted_listing(self.listing(size.columns), size.columns, room)

    def _height(self) -> Dimension:
        shown = self._lines()
        lines = sum(text.count("\n") for _, text, *_ in shown) + 1 if shown else 0
        return Dimension(min=0, max=lines, preferred=lines)

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        steps = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -_PAGE, "pagedown": _PAGE}
        if not self.is_typed:
            steps |= {"home": -_ALL, "end": _ALL}
        actions: dict[str, Callable[[], None]] = {
            key: lambda by=by: self.move(by)  # type: ignore[misc]
            for key, by in steps.items()
        }
        actions |= {"enter": self.enter, "c-d": self.leave, Keys.SIGINT: self.leave, **self.keys()}
        actions |= dict.fromkeys(("escape", "c-c", "c-g"), self.leave)
        for key, action in actions.items():

            @bindings.add(key, eager=key in ("enter", "escape", "c-c", "c-g", "c-s"))
            def act(event: KeyPressEvent, action: Callable[[], None] = action) -> None:
                action()

        if not self.is_typed:

            @bindings.add(Keys.Any)
            def press(event: KeyPressEvent) -> None:
                if event.data.isprintable():
                    self.press(event.data)

        @bindings.add(Keys.BracketedPaste)
        def paste(event: KeyPressEvent) -> None:
            self.buffer.insert_text(" ".join(event.data.split()))

        return bindings


class _ListKeyboard(Keyboard):
    """Keys typed ahead are meant for the prompt, or searched for; they must not choose anything."""

    def typeahead_hash(self) -> str:
        return f"{super().typeahead_hash()}-list"


def fitted_listing(listing: Listing, columns: int, height: int) -> StyleAndTextTuples:
    """At most `height` lines of at most `columns` cells: the rows around the chosen one, about it, the keys."""
    has_keys = height >= _LEAST_WITH_KEYS and bool(listing.keys)
    room = height - has_keys
    has_about = bool(listing.about) and room - len(listing.about) - 1 >= _LEAST_ROWS
    room -= (len(listing.about) + 1) * has_about
    has_head = bool(listing.head) and room > _LEAST_ROWS
    room -= has_head
    top = max(0, min(listing.chosen - room // 2, listing.total - room))
    lines = [listing.head] if has_head else []
    end = min(listing.total, top + room)
    lines += [_row(listing, number, _beyond(number, top, end, listing.total)) for number in range(top, end)]
    if has_about:
        lines += [[("class:quiet", "─" * columns)], *listing.about]
    if has_keys:
        lines.append([("class:quiet", next((k for k in listing.keys if cell_len(k) <= columns), listing.keys[-1]))])
    shown: StyleAndTextTuples = []
    for number, line in enumerate(lines):
        shown += [("", "\n")] * bool(number) + _fitted(line, columns)
    return shown


def wrapped(text: str, columns: int, lines: int) -> list[str]:
    """The text in exactly this many lines; the rest is cut. Parts with ` · ` between them stay whole."""
    parts = one_line(text).split(_BETWEEN)
    if len(parts) > 1:
        # textwrap breaks lines at blanks, but not at this one.
        parts = [part if len(part) > columns - 2 else part.replace(" ", _NO_BREAK) for part in parts]
    joined = f"{_NO_BREAK}· ".join(parts)
    found = textwrap.wrap(joined, max(8, columns), max_lines=lines, placeholder="…")
    return [line.replace(_NO_BREAK, " ").removesuffix(_BETWEEN.rstrip()) for line in found] + [""] * (
        lines - len(found)
    )


def cut(text: str, cells: int) -> str:
    """The text in exactly this many cells: filled with blanks, or cut with an ellipsis."""
    if cell_len(text) <= cells or cells < 2:
        return set_cell_size(text, cells)
    return f"{set_cell_size(text, cells - 1)}…"


def _beyond(number: int, top: int, end: int, total: int) -> str:
    """The mark of the first or last row on the screen, if the list goes on above or below it."""
    return "↑" if number == top > 0 else "↓" if number == end - 1 < total - 1 else " "


def _row(listing: Listing, number: int, beyond: str) -> Line:
    """The row after a mark; the chosen one is shown in reverse, with no colours except the bar's."""
    if number != listing.chosen:
        return [("class:quiet", f"{beyond} "), *listing.row(number)]
    row = [("", "› "), *listing.row(number)]
    return [(style if style.startswith(BAR) else "class:chosen", text) for style, text in row]


def _fitted(line: Line, columns: int) -> StyleAndTextTuples:
    """The line in exactly `columns` cells; the last piece that fits is cut or filled."""
    fitted: StyleAndTextTuples = []
    left = columns
    for place, (style, text) in enumerate(line, 1):
        has_more = any(after.strip() for _, after in line[place:])
        whole = cell_len(text)
        if place == len(line) or whole > left or (whole == left and has_more):
            # Following rows without room count as well.
            fitted.append((style, cut(f"{text} …" if has_more else text, left)))
            break
        fitted.append((style, text))
        left -= whole
    return fitted
