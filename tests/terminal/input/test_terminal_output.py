"""What is written above a prompt is never lost."""

from __future__ import annotations

import asyncio

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.output import DummyOutput

from nca.terminal.input.display import write_above


@pytest.mark.parametrize("is_ending_first", [False, True])
async def test_what_is_written_while_the_prompt_ends_stands_below_it(is_ending_first: bool) -> None:
    written: list[str] = []
    with create_pipe_input() as keys:
        app: Application[None] = Application(Layout(Window()), input=keys, output=DummyOutput())

        async def end() -> None:
            while not app.is_running:
                await asyncio.sleep(0)
            if is_ending_first:
                app.exit()
            write_above(app, lambda: written.append("banner"))
            if not is_ending_first:
                app.exit()

        ending = asyncio.create_task(end())
        await app.run_async()
        await ending
    await asyncio.sleep(0)
    assert written == ["banner"]


async def test_it_is_written_once_while_the_prompt_stands_and_at_once_without_one() -> None:
    written: list[str] = []
    with create_pipe_input() as keys:
        app: Application[None] = Application(Layout(Window()), input=keys, output=DummyOutput())
        write_above(app, lambda: written.append("before"))
        assert written == ["before"]

        async def say() -> None:
            while not app.is_running:
                await asyncio.sleep(0)
            write_above(app, lambda: written.append("above"))
            while "above" not in written:
                await asyncio.sleep(0)
            app.exit()

        saying = asyncio.create_task(say())
        await app.run_async()
        await saying
    await asyncio.sleep(0)
    assert written == ["before", "above"]
