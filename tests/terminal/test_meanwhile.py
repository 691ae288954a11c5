"""Lines that are carried out while nca works."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nca.errors import ProviderError
from nca.terminal.meanwhile import Meanwhile
from nca.terminal.render.draw import Draw
from nca.terminal.render.screen import KeptScreen
from nca.words import words
from tests.terminal.stage import a_stage


@pytest.mark.parametrize("reply", ["It is blue.", ProviderError("down")])
async def test_that_an_answer_comes_is_said_until_it_came(tmp_path: Path, reply: object) -> None:
    with a_stage(tmp_path, ["One.", reply]) as stage:
        await stage.conversation.send("First")
        hints: list[str] = []
        meanwhile = Meanwhile(stage.app, Draw(KeptScreen()), lambda _: None, hints.append)
        assert meanwhile.take(words("/btw Which colour?"), lambda: None)
        assert hints == ["Asked. The answer comes between two parts of the turn."]
        async with asyncio.timeout(30):
            while len(hints) == 1:
                await asyncio.sleep(0.01)
        assert hints[1:] == [""]
        await stage.conversation.close()
