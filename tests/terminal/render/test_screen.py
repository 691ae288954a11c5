"""The screen as a terminal emulator shows it."""

from __future__ import annotations

import io

import pyte
from rich.text import Text

from nca.terminal.render.screen import Screen
from tests.terminal.tty import TmuxScreen


class Glass(io.StringIO):
    """A file that feeds a terminal emulator."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.raw = ""
        self.emulator = TmuxScreen(columns, rows, history=1_000)
        self.emulator.set_mode(pyte.modes.LNM)
        self._stream = pyte.Stream(self.emulator)

    def write(self, text: str) -> int:
        self.raw += text
        self._stream.feed(text)
        return len(text)

    def lines(self) -> list[str]:
        above = ["".join(line[x].data for x in sorted(line)).rstrip() for line in self.emulator.history.top]
        return [*above, *(line.rstrip() for line in self.emulator.display)]


def a_screen(columns: int = 20, rows: int = 6) -> tuple[Screen, Glass]:
    glass = Glass(columns, rows)
    screen = Screen(glass)
    screen.console.size = (columns, rows)
    return screen, glass


def filled(glass: Glass) -> list[str]:
    return [line for line in glass.lines() if line]


def test_the_tail_is_replaced_and_what_is_printed_stays_above_it() -> None:
    screen, glass = a_screen()
    screen.draw([], Text("tail one"))
    screen.draw([], Text("tail two\nand three"))
    screen.print(Text("printed"))
    assert filled(glass) == ["printed", "tail two", "and three"]
    screen.draw([Text("more")], Text("four"))
    assert filled(glass) == ["printed", "more", "four"]
    screen.clear_tail()
    assert filled(glass) == ["printed", "more"]


def test_a_tail_higher_than_the_window_shows_its_end_and_leaves_no_trace() -> None:
    screen, glass = a_screen(rows=6)
    for count in range(1, 30):
        screen.draw([], Text("\n".join(f"line {number}" for number in range(count))))
    assert filled(glass) == [f"line {number}" for number in range(25, 29)]
    screen.draw([Text("\n".join(f"line {number}" for number in range(29)))], None)
    assert filled(glass) == [f"line {number}" for number in range(29)]


def test_lines_as_wide_as_the_window() -> None:
    screen, glass = a_screen(columns=10)
    screen.draw([], Text("0123456789\nabcdefghij"))
    screen.draw([], Text("0123456789\nABCDEFGHIJ"))
    assert filled(glass) == ["0123456789", "ABCDEFGHIJ"]
    # A terminal whose cursor waits behind a full line would erase its last character.
    assert glass.raw.rindex("\x1b[J") < glass.raw.rindex("ABCDEFGHIJ")
    screen.print(Text("x" * 10))
    assert filled(glass) == ["x" * 10, "0123456789", "ABCDEFGHIJ"]


def test_wide_characters_count_twice() -> None:
    screen, glass = a_screen(columns=10)
    screen.draw([], Text("日本語日本"))
    screen.draw([], Text("日本語日本語"))
    screen.draw([Text("done")], None)
    assert filled(glass) == ["done"]


def test_strings_are_made_safe() -> None:
    screen, glass = a_screen()
    screen.print("a\x1b[2Jb\x07 [bold]")
    assert filled(glass) == ["ab [bold]"]


def test_windows_without_room_have_no_tail() -> None:
    screen, glass = a_screen(columns=3, rows=3)
    screen.draw([], Text("tail"))
    assert filled(glass) == []
    screen.print(Text("ok"))
    assert filled(glass) == ["ok"]


def test_a_closed_terminal_is_silent_for_good() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    screen = Screen(Closed())
    screen.print(Text("a"))
    screen.draw([Text("b")], Text("c"))
    assert screen.failure is not None
