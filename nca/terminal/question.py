"""A question in the chat that one key answers, while a command runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from rich.text import Text

from nca.terminal.held import Key

if TYPE_CHECKING:
    from nca.terminal.draw import Draw
    from nca.terminal.prompt import Prompt


class KeyQuestion:
    """Asks below what is on the screen. Escape, Ctrl-C and the end of the input leave it."""

    def __init__(self, draw: Draw, prompt: Prompt) -> None:
        self._draw = draw
        self._prompt = prompt

    async def ask(self, question: str, keys: Sequence[Key]) -> str:
        """The key; any other one means nothing. "" where the person leaves it."""
        await self._prompt.pause()
        given: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def take(key: KeyPress | None) -> None:
            word = "" if key is None or key.key == Keys.Escape else str(key.key).lower()
            if not given.done() and (not word or word in [one for one, _ in keys]):
                given.set_result(word)

        self._draw.warn(question)
        line = Text()
        for key, about in (*keys, ("Esc", "leave it")):
            line.append("  " if line else "").append(key, style="bold").append(f" {about}")
        self._draw.question = line
        try:
            with self._prompt.asking(take):
                return await given
        finally:
            self._draw.question = None
