"""The editor as a place of files, where it goes while it is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nca.acp.files import ClientFiles
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
