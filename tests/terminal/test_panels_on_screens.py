"""Toolbar and panels in a real terminal at all sizes: on one screen, and up to date at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.terminal.tty import Tty, chat

LONG = "The parser reads src/parse.py and fails at line 12 with ValueError: bad token. " * 30
SUMMARY = "## Goal and intent\n\nFix src/parse.py, which fails at line 12 with ValueError: bad token."
SIZES = [(80, 24), (40, 15), (200, 50)]


@pytest.fixture(params=SIZES, ids=[f"{columns}x{rows}" for columns, rows in SIZES])
def tty(request: pytest.FixtureRequest) -> Iterator[Tty]:
    columns, rows = request.param
    answers = [f"Answer {number}. {LONG}" for number in range(4)]
    with chat(*answers, SUMMARY, columns=columns, rows=rows, window_tokens=20_000, settings=SETTINGS) as terminal:
        yield terminal


SETTINGS = {"context.idle_threshold": 1.0, "agent.permission": "auto"}


def share(tty: Tty) -> str:
    """The toolbar's percentage."""
    shown = re.findall(r"[▓░]{6} (\S+)%", "\n".join(tty.shown()))
    return str(shown[-1]) if shown else ""


def test_the_gauge_is_the_panels_number_before_and_after_each_change(tty: Tty) -> None:
    tty.sees("›")
    for number in range(4):
        tty.line(f"Question {number}.")
        tty.sees(f"Answer {number}.")
    tty.settle()
    tty.command("/context")
    tty.sees("Esc")
    tty.settle()
    (headline, *_) = re.findall(r"Context: (\S+)% used", tty.text())
    on_screen = "\n".join(tty.shown())
    if tty.screen.lines > 15:
        # The whole panel stands on the screen, with the list below it.
        for words in ("Context: ", "conversation", "free", "Next: ", "of 8, largest first", "Esc leaves"):
            assert words in on_screen
    assert "free" in on_screen
    tty.send("\x1b")
    tty.settle()
    assert share(tty) == headline
    assert "auto" in [line for line in tty.shown() if line][-1] or tty.screen.columns < 50

    for line, said in (
        ("/context collapse 2", "Collapsed"),
        ("/context undo", "Undid the"),
        ("/compact", "Compacted"),
    ):
        tty.command(line)
        tty.sees(said)
        tty.settle()
        tty.command("/context")
        tty.sees("largest")
        tty.send("\x1b")
        tty.settle()
        last = re.findall(r"Context: (\S+)% used", tty.text())[-1]
        assert share(tty) == last, line
    assert int(share(tty)) < int(headline)


def test_help_config_and_tools_are_one_screen(tty: Tty) -> None:
    tty.sees("›")
    for line, first, last in (
        ("/help", "What fills the window", "ideas"),
        ("/config", "max_output_tokens", "Esc"),
        ("/tools", "read_file", "(/permissions)"),
    ):
        tty.command(line)
        tty.sees(last)
        tty.settle()
        on_screen = "\n".join(tty.shown())
        assert last in on_screen
        assert max(map(len, tty.shown())) <= tty.screen.columns
        if tty.screen.lines > 15:
            assert first in on_screen
        if line == "/config":
            tty.send("\x1b")
            tty.settle()


def test_another_mode_stands_in_the_toolbar_at_once() -> None:
    with chat("One.", columns=80, rows=24) as tty:
        tty.sees("›")
        tty.line("/permissions plan")
        tty.sees("only reads")
        tty.settle()
        assert re.search(r"[k…] +plan ", "\n".join(tty.shown()))
        tty.line("/config agent.permission accept-edits")
        tty.sees("for this chat")
        tty.settle()
        assert re.search(r"[k…] +accept-edits", "\n".join(tty.shown()))
