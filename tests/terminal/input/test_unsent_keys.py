"""What was typed and not sent, and the file that keeps it through a kill."""

from __future__ import annotations

import asyncio
import io
import os
import select
import sys
import tty
from pathlib import Path

import pytest

from nca.config.loaded import defaults
from nca.terminal.input.first_prompt import FirstPrompt
from nca.terminal.input.history import DraftFile
from nca.terminal.interrupts import Interrupts
from nca.terminal.render.screen import Screen
from nca.words import text_of
from tests.terminal.input.test_key_questions import Clock


def test_what_is_typed_while_nca_works_is_on_the_disk_until_it_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    master, slave = os.openpty()
    tty.setraw(slave)

    def drafts() -> list[str]:
        """The lines of the draft, if there is one."""
        return [line for one in tmp_path.glob("history.draft-*") for line in one.read_text().splitlines()]

    async def press(keys: str) -> None:
        os.write(master, keys.encode())
        select.select([slave], [], [])
        while select.select([slave], [], [], 0)[0]:
            await asyncio.sleep(0)
        await due()

    async def due() -> None:
        """What the loop has to do now is done."""
        for _ in range(3):
            await asyncio.sleep(0)

    async def run() -> None:
        first = FirstPrompt(defaults().settings.terminal, tmp_path, tmp_path / "history", Interrupts())
        prompt = first.prompt
        with prompt.typing_ahead(Screen(io.StringIO())):
            await press("queued")
            assert drafts() == []
            clock.now += DraftFile.EACH_SECONDS
            await due()
            assert "+queued" in drafts()
            # What the screen confirms is written at once.
            await press(" line\rand\r")
            assert [line for line in drafts() if line.startswith("+")] == ["+queued line", "+and"]
            await press("half")
            assert [text_of(one) for one in first.take_messages()] == ["queued line", "and"]
            assert drafts()[-1] == "+half"
            assert "+and" not in drafts()
        assert prompt.keep_unsent() == (["half"], True)
        assert drafts() == []

    with os.fdopen(slave) as terminal, asyncio.Runner(loop_factory=lambda: clock) as runner:
        monkeypatch.setattr(sys, "stdin", terminal)
        runner.run(run())
    os.close(master)
