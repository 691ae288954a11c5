"""Other questions in line mode: only a word that is offered answers."""

from __future__ import annotations

import asyncio
import io
import os
from contextlib import suppress

import pytest

from nca.terminal.input.line_kind import InputLines
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


async def test_what_was_typed_before_a_question_is_there_where_nobody_answers_it() -> None:
    """As where Ctrl-C stops the turn that asks."""

    async def stopped(reading: asyncio.Task[str]) -> None:
        await asyncio.sleep(0)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading

    reader, writer = os.pipe()
    with os.fdopen(reader) as typed, os.fdopen(writer, "w") as person:
        lines = InputLines(typed)
        await stopped(asyncio.create_task(lines.next()))
        print("the next message", file=person, flush=True)
        while not await lines.keep_typed():
            await asyncio.sleep(0.01)
        await stopped(asyncio.create_task(lines.answer()))
        person.close()
        assert await lines.next() == "the next message"
        with pytest.raises(EOFError):
            await lines.next()
