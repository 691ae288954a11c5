"""The editor as a place of files, where it goes while it is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from acp import Client
from acp.schema import FileSystemCapabilities, ReadTextFileResponse

from nca.acp.client import ClientFiles
from nca.acp.tool_calls import Outlet
from nca.tools.tool import ToolError


def files_of(client: object, *, reads: bool = False, writes: bool = False) -> ClientFiles:
    offers = FileSystemCapabilities(read_text_file=reads, write_text_file=writes)
    return ClientFiles(cast(Client, client), Outlet(lambda _: None), offers)


async def test_a_write_after_the_editor_has_gone_is_no_success() -> None:
    asked = asyncio.Event()

    class Gone:
        async def write_text_file(self, **_: Any) -> None:
            asked.set()
            await asyncio.Event().wait()

    writing = asyncio.ensure_future(asyncio.to_thread(files_of(Gone(), writes=True).write, Path("a.py"), "text"))
    await asked.wait()
    for task in asyncio.all_tasks():
        if "Gone.write_text_file " in repr(task.get_coro()):
            task.cancel()
    with pytest.raises(ToolError, match=r"the editor has gone; a\.py was not written"):
        await writing


async def test_an_editor_that_offers_no_files_writes_none() -> None:
    assert not await asyncio.to_thread(files_of(None).write, Path("a.py"), "text")


async def test_an_editor_that_does_not_answer_is_named_beside_the_file() -> None:
    class Silent:
        async def read_text_file(self, **_: Any) -> None:
            await asyncio.Event().wait()

    sent: list[dict[str, Any]] = []
    outlet = Outlet(sent.append)
    outlet.open()
    files = ClientFiles(cast(Client, Silent()), outlet, FileSystemCapabilities(read_text_file=True))
    files.read_seconds = 0.01
    assert await asyncio.to_thread(files.read, Path("a.py"), Path("b.py")) == {}
    assert "a.py, b.py: the editor did not give its text within 0.01 seconds" in str(sent)


async def test_nobody_is_asked_for_a_file_on_the_thread_that_would_have_to_hear_the_answer() -> None:
    asked: list[str] = []

    class Reads:
        async def read_text_file(self, session_id: str, path: str) -> ReadTextFileResponse:
            asked.append(path)
            return ReadTextFileResponse(content="text")

    files = files_of(Reads(), reads=True)
    assert await asyncio.to_thread(files.read, Path("a.py")) == {Path("a.py"): "text"}
    assert files.read(Path("b.py")) == {}
    assert asked == ["a.py"]
    assert await asyncio.to_thread(files_of(None).read, Path("a.py")) == {}
