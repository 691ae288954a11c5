"""What Ctrl-C stops, by the moment at which it comes."""

from __future__ import annotations

import asyncio

import pytest

from nca.terminal.interrupts import Interrupts, Stopped
from tests.terminal.stage import ScriptedReader


async def _line() -> str:
    return "a line"


async def test_between_a_line_and_its_turn_it_stops_the_turn() -> None:
    interrupts, reader = Interrupts(), ScriptedReader()
    assert await interrupts.run(_line(), reader=reader) == "a line"
    interrupts.interrupt()
    with pytest.raises(Stopped):
        await interrupts.run(asyncio.sleep(3_600))


async def test_the_next_prompt_forgets_it() -> None:
    interrupts, reader = Interrupts(), ScriptedReader()
    interrupts.interrupt()
    assert await interrupts.run(_line(), reader=reader) == "a line"
    assert await interrupts.run(_line()) == "a line"
