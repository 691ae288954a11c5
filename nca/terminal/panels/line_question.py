"""Ask a question in line mode, answered with a letter and Enter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nca.terminal.input.terminal_modes import forget_typed
from nca.terminal.panels.locked_session import KeyChoice, choices_line

if TYPE_CHECKING:
    from nca.terminal.input.lines import InputLines
    from nca.terminal.render.output import Output


async def choose_by_line(question: str, keys: Sequence[KeyChoice], output: Output, lines: InputLines) -> str:
    """The chosen key; "" for q and the end of the input. Any other line, such as an empty one, is asked again."""
    output.warn(question)
    await asyncio.to_thread(forget_typed)
    while True:
        output.notice(f"{choices_line(keys)}, q to cancel:")
        try:
            word = (await lines.next()).strip().lower()
        except EOFError:
            return ""
        if word in ("q", *(key for key, _ in keys)):
            return "" if word == "q" else word
