"""Other questions in line mode: only a word that is offered answers."""

from __future__ import annotations

import io

import pytest

from nca.terminal.interrupts import Interrupts
from nca.terminal.reader import LineReader
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
    assert await LineReader(io.StringIO(typed), draw, Interrupts()).choose("It is held.", KEYS) == chosen
    said = " ".join(asides.getvalue().split())
    assert said.count("r to read it here, f to fork it, q to cancel:") == times


@pytest.mark.parametrize(("typed", "answer"), [("Valletta \n", "Valletta "), ("\n", ""), ("", None)])
async def test_a_line_of_text(typed: str, answer: str | None) -> None:
    asides = io.StringIO()
    draw = PlainDraw(io.StringIO(), asides, {})
    reader = LineReader(io.StringIO(typed), draw, Interrupts())
    assert await reader.type_answer("Room (Enter: single)\n1 single\n2 double") == answer
    assert [line.strip() for line in asides.getvalue().splitlines()] == ["Room (Enter: single)", "1 single", "2 double"]
