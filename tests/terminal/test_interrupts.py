"""What Ctrl-C stops, by the moment at which it comes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from nca.terminal.interrupts import Interrupts, Stopped
from tests.terminal.stage import ScriptedReader


async def _line() -> str:
    return "a line"


async def test_between_a_line_and_its_turn_it_stops_the_turn() -> None:
    interrupts, reader = Interrupts(), ScriptedReader()
    assert await interrupts.run(_line(), interrupt_reader=reader.interrupt) == "a line"
    interrupts.interrupt()
    with pytest.raises(Stopped):
        await interrupts.run(asyncio.sleep(3_600))


async def test_escape_stops_work_once_and_never_the_program() -> None:
    interrupts = Interrupts()
    cleaned_up: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            await asyncio.sleep(0.01)
            cleaned_up.append("the answer so far")

    asyncio.get_running_loop().call_later(0, interrupts.stop_once)
    asyncio.get_running_loop().call_later(0.005, interrupts.stop_once)
    with pytest.raises(Stopped):
        await interrupts.run(work())
    assert cleaned_up
    assert interrupts.exit_code is None
    with interrupts.lent():
        interrupts.stop_once()
    assert await interrupts.run(_line()) == "a line", "another program has the terminal then"


async def test_the_next_prompt_forgets_it() -> None:
    interrupts, reader = Interrupts(), ScriptedReader()
    interrupts.interrupt()
    assert await interrupts.run(_line(), interrupt_reader=reader.interrupt) == "a line"
    assert await interrupts.run(_line()) == "a line"


async def test_one_that_stopped_something_is_no_first_of_two_that_leave() -> None:
    interrupts, reader = Interrupts(), ScriptedReader()
    for _ in range(3):
        asyncio.get_running_loop().call_later(0, interrupts.interrupt)
        with pytest.raises(Stopped):
            await interrupts.run(asyncio.sleep(3_600))
        interrupts.interrupt()  # before the prompt is there
        assert await interrupts.run(_line(), interrupt_reader=reader.interrupt) == "a line"
        assert not interrupts.is_second(), "the first at the prompt"
    assert interrupts.exit_code is None


async def test_a_second_one_ends_the_program_whose_work_does_not_stop() -> None:
    interrupts, is_over = Interrupts(), asyncio.Event()

    async def work() -> None:
        while not is_over.is_set():
            with suppress(asyncio.CancelledError):
                await is_over.wait()

    async def press() -> None:
        for _ in range(2):
            await asyncio.sleep(0)
            interrupts.interrupt()
        is_over.set()

    with interrupts.handled():
        await asyncio.gather(interrupts.run(work()), press())
    assert interrupts.exit_code == 130
