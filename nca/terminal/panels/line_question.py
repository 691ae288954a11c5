"""A question in the chat that a typed line answers, for where there is no screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nca.terminal.panels.locked_session import KeyChoice, choices_line

if TYPE_CHECKING:
    from nca.terminal.input.lines import InputLines
    from nca.terminal.render.output import Output


class LineQuestion:
    """A letter and Enter; Enter alone and the end of the input leave it."""

    def __init__(self, output: Output, lines: InputLines) -> None:
        self._output = output
        self._lines = lines

    async def ask(self, question: str, keys: Sequence[KeyChoice]) -> str:
        """The key, "" where the person leaves it."""
        self._output.warn(question)
        while True:
            self._output.notice(f"{choices_line(keys)}, Enter to leave it:")
            try:
                word = (await self._lines.next()).strip().lower()
            except EOFError:
                return ""
            if not word or word[0] in [key for key, _ in keys]:
                return word[:1]
