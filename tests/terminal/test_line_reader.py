"""Other questions in line mode: only a word that is offered answers."""

from __future__ import annotations

import io

import pytest

from nca.terminal.input.lines import InputLines
from nca.terminal.line_reader import choose_by_line
from nca.terminal.render.plain import PlainDraw

KEYS = (("r", "read it here"), ("f", "fork it"))


@pytest.mark.parametrize(
    ("typed", "chosen", "times"),
    [
        ("r\n", "r", 1),
        ("F\n", "f", 1),
        ("q\n", "", 1),
        ("", "", 1),
        ("\n \nr\n", "r", 3),
        ("really?\nfine\nf\n", "f", 3),
        ("\n", "", 2),
    ],
)
async def test_a_line(typed: str, chosen: str, times: int) -> None:
    asides = io.StringIO()
    draw = PlainDraw(io.StringIO(), asides, {})
    assert await choose_by_line("It is held.", KEYS, draw, InputLines(io.StringIO(typed))) == chosen
    said = " ".join(asides.getvalue().split())
    assert said.count("r to read it here, f to fork it, q to cancel:") == times
