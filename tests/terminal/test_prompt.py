"""The keys of the prompt, in a real pseudo-terminal."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.tty import Tty, chat

CTRL_C, CTRL_D, CTRL_J, CTRL_R, ALT_ENTER, TAB, UP = "\x03", "\x04", "\n", "\x12", "\x1b\r", "\t", "\x1b[A"


@pytest.fixture
def start() -> Iterator[Callable[..., Tty]]:
    """Starts the chat and waits for its prompt; ended with the test."""
    started: list[Tty] = []

    def begin(*replies: Any, **options: Any) -> Tty:
        tty = chat(*replies, **options)
        started.append(tty)
        tty.sees("›")
        tty.settle()
        return tty

    yield begin
    for tty in started:
        tty.close()


def test_enter_sends_and_three_ways_make_a_new_line(start: Callable[..., Tty]) -> None:
    tty = start("Got it.")
    tty.send("one" + ALT_ENTER + "two" + CTRL_J + "three\\\rfour")
    tty.sees("› one\n  two\n  three\n  four")
    tty.send("\r")
    tty.sees("Got it.")
    tty.line("/context")
    tty.sees("you: one two three four")


def test_history_is_private_survives_and_is_searched(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start("First.", home=str(tmp_path))
    tty.line("the first question")
    tty.sees("First.")
    tty.settle()
    tty.send(CTRL_D)
    assert tty.ends() == 0
    assert stat.S_IMODE((tmp_path / "history").stat().st_mode) == 0o600
    again = start("Second.", "Third.", home=str(tmp_path))
    again.send(UP)
    again.sees("› the first question")
    again.send("\r")
    again.sees("Second.")
    again.settle()
    again.send(CTRL_R + "first")
    again.sees("the first question", times=2)
    again.send("\r\r")
    again.sees("Third.")


def test_commands_settings_and_files_are_completed(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start("Read.", settings={"context.info_threshold": 0.5})
    tty.send("/")
    tty.sees("What fills the window; clear, compact")
    tty.send("conf" + TAB)
    tty.sees("› /config")
    tty.send(" compact_thr")
    tty.sees("context.compact_threshold")
    tty.send(TAB + " ")
    tty.sees("› /config context.compact_threshold")
    tty.send(CTRL_C + "/config context.auto ")
    tty.sees("preview")
    tty.send("pre" + TAB + "\r")
    tty.sees("context.auto = preview, for this chat")
    tty.settle()
    tty.send("@pyproj")
    tty.sees("pyproject.toml")
    tty.send(TAB)
    tty.sees("› @pyproject.toml")


def test_ctrl_c_empties_the_line_then_says_what_a_second_does(start: Callable[..., Tty]) -> None:
    tty = start()
    tty.send("something")
    tty.sees("› something")
    tty.send(CTRL_C)
    tty.settle()
    assert "something" not in tty.text()
    tty.send(UP)
    tty.sees("› something")
    tty.send(CTRL_C + CTRL_C)
    tty.sees("Ctrl-C again leaves")
    tty.send(CTRL_C)
    assert tty.ends() == 130


def test_ctrl_d_leaves(start: Callable[..., Tty]) -> None:
    tty = start()
    tty.send(CTRL_D)
    assert tty.ends() == 0


def test_long_pastes_are_folded_and_sent_whole(start: Callable[..., Tty]) -> None:
    tty = start("Got it.")
    lines = "\n".join(f"line {number}" for number in range(214))
    tty.send(f"\x1b[200~{lines}\x1b[201~")
    tty.sees("› [pasted 214 lines]")
    tty.send(" what is it?\r")
    tty.sees("Got it.")
    tty.line("/context")
    tty.sees("you: line 0 line 1")


def test_a_paste_that_never_ends_does_not_lock_the_keyboard(start: Callable[..., Tty]) -> None:
    tty = start("Got it.")
    tty.send("\x1b[200~half a paste")
    tty.sees("half a paste")
    tty.send(CTRL_C)
    tty.settle()
    tty.line("a question")
    tty.sees("Got it.")


def test_the_late_end_of_a_paste_is_no_typing(start: Callable[..., Tty]) -> None:
    tty = start("Got it.")
    tty.send("\x1b[200~first half, ")
    tty.sees("first half,")
    tty.send("second\nhalf\x1b[201~")
    tty.sees("first half, second\n  half")
    assert "Got it." not in tty.text()


def test_vi_keys(start: Callable[..., Tty]) -> None:
    tty = start("Got it.", settings={"terminal.keys": "vi"})
    tty.send("a word\x1b")
    tty.settle()
    tty.send("0cwthe ")
    tty.sees("› the word")


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (3, 24), (24, 3), (24, 80), (200, 500)])
def test_windows_of_every_size(size: tuple[int, int]) -> None:
    columns, rows = size
    tty = chat("Hello, **world**.\n\n```py\nx = 1\n```", columns=columns, rows=rows)
    try:
        tty.settle()
        tty.line("hi")
        tty.settle()
        tty.line("/context")
        tty.settle()
        tty.send(CTRL_D)
        assert tty.ends() == 0
        assert b"Traceback" not in tty.raw
    finally:
        tty.close()


@pytest.mark.parametrize("environment", [{"TERM": "screen"}, {"TERM": "bogus-term"}, {"NO_COLOR": "1"}, {"LANG": "C"}])
def test_terminals_and_locales(start: Callable[..., Tty], environment: dict[str, str]) -> None:
    tty = start("Hello, **world**. `code`", env=environment)
    tty.line("hi")
    tty.sees("Hello, world. code")
    tty.settle()
    if "NO_COLOR" in environment:
        assert b"\x1b[36m" not in tty.raw
        assert b";36m" not in tty.raw
    tty.send(CTRL_D)
    assert tty.ends() == 0
