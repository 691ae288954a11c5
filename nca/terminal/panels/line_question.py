"""Ask a question in line mode, answered with a letter and Enter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nca.terminal.panels.locked_session import KeyChoice, choices_line

if TYPE_CHECKING:
    from nca.terminal.input.lines import InputLines
    from nca.terminal.render.output import Output


async def choose_by_line(question: str, keys: Sequence[KeyChoice], output: Output, lines: InputLines) -> str:
    """The chosen key; "" for Enter alone and the end of the input."""
    output.warn(question)
    while True:
        output.notice(f"{choices_line(keys)}, Enter to cancel:")
        try:
            word = (await lines.next()).strip().lower()
        except EOFError:
            return ""
        if not word or word[0] in [key for key, _ in keys]:
            return word[:1]
