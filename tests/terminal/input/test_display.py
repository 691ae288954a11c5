"""The prompt's rows break between words."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.application import Application
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from nca.terminal.input.display import RewrappedRows, drawn, in_rows
from nca.terminal.render.stream_writer import ERASE_DOWN, RESIZE_SECONDS
from tests.terminal.tty import chat


def rows(text: str, cells: int) -> list[str]:
    shown = "".join(piece for _, piece in in_rows([("", character) for character in text], cells))
    return [shown[start : start + cells] for start in range(0, len(shown), cells)]


def test_a_word_that_does_not_fit_begins_the_next_row() -> None:
    assert rows("a person types words", 10) == ["a person  ", "types     ", "words"]
    assert rows("exactly10! then", 10) == ["exactly10!", "then"]
    assert rows("a wordthatislongerthanarow b", 10) == ["a wordthat", "islongerth", "anarow b"]


@given(st.lists(st.text("abc", min_size=1, max_size=6)), st.sampled_from([" ", "  "]), st.integers(6, 12))
def test_every_word_that_fits_a_row_is_whole(words: list[str], between: str, cells: int) -> None:
    assert [word for row in rows(between.join(words), cells) for word in row.split()] == words


@pytest.mark.parametrize(
    ("term", "key", "is_erased"), [("xterm-256color", "", True), ("xterm-256color", "!", True), ("linux", "", False)]
)
def test_a_narrower_window_has_no_rest_of_the_prompt(term: str, key: str, is_erased: bool) -> None:
    """A terminal that rewraps its lines has made two rows of the draft, and prompt_toolkit went up by none."""
    with chat(env={"TERM": term}) as tty:
        tty.sees("›")
        tty.send("a draft of some words, longer than the window will be, but in one row of it now")
        tty.sees("row of it now")
        tty.settle()
        before = len(tty.raw)
        tty.resize(60, 30)
        tty.send(key)
        tty.until(lambda: b"in one row" in tty.raw[before:])
        assert (b"\x1b[A" + ERASE_DOWN.encode() in tty.raw[before:]) == is_erased


def test_a_prompt_in_the_first_row_leaves_nothing_in_the_scrollback_of_tmux() -> None:
    with chat() as tty:
        tty.sees("›")
        tty.settle()
        tty.send("\x0c")  # Ctrl-L
        tty.until(lambda: tty.shown()[0] == "›")
        for columns in (101, 102, 103):
            tty.resize(columns, 30)
            tty.settle()
        assert tty.text().splitlines().count("›") == 1


class Sized(Application[None]):
    """Counts how often it draws for a new size."""

    times = 0

    def _on_resize(self) -> None:
        self.times += 1


async def test_while_the_window_is_dragged_nothing_is_drawn() -> None:
    """Each step was drawn, and rewrapped by the next one: tmux kept the torn rows in the scrollback."""
    with create_pipe_input() as keys:
        app = Sized(input=keys, output=DummyOutput())
        RewrappedRows(app)
        running = asyncio.create_task(app.run_async())
        await drawn(app)
        for _ in range(20):
            app._on_resize()
        assert app.times == 0
        await asyncio.sleep(2 * RESIZE_SECONDS)
        assert app.times == 1
        app._on_resize()
        app.exit()
        await running
        await asyncio.sleep(2 * RESIZE_SECONDS)
        assert app.times == 1, "nothing is drawn when it has gone"
