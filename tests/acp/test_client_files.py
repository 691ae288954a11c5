"""The editor as a place of files, where it goes while it is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nca.acp.editor import ClientFiles
from nca.tools.tool import ToolError


async def test_a_write_after_the_editor_has_gone_is_no_success() -> None:
    asked = asyncio.Event()

    async def write(path: str, text: str) -> None:
        asked.set()
        await asyncio.Event().wait()

    files = ClientFiles(None, write)
    writing = asyncio.ensure_future(asyncio.to_thread(files.write, Path("a.py"), "text"))
    await asked.wait()
    for task in asyncio.all_tasks():
        if "<locals>.write " in repr(task.get_coro()):
            task.cancel()
    with pytest.raises(ToolError, match=r"the editor has gone; a\.py was not written"):
        await writing


async def test_an_editor_that_offers_no_files_writes_none() -> None:
    assert not await asyncio.to_thread(ClientFiles(None, None).write, Path("a.py"), "text")


async def test_nobody_is_asked_for_a_file_on_the_thread_that_would_have_to_hear_the_answer() -> None:
    asked: list[str] = []

    async def read(path: str) -> str:
        asked.append(path)
        return "text"

    files = ClientFiles(read, None)
    assert await asyncio.to_thread(files.read, Path("a.py")) == "text"
    assert files.read(Path("b.py")) is None
    assert asked == ["a.py"]
    assert await asyncio.to_thread(ClientFiles(None, None).read, Path("a.py")) is None
