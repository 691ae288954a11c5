"""Open what a chat draws on and reads from: a screen with a prompt, or plain lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nca.terminal.render.open_output import open_draw, open_plain

if TYPE_CHECKING:
    from nca.config.schema import TerminalSettings
    from nca.terminal.input.first_prompt import FirstPrompt
    from nca.terminal.interrupts import Interrupts
    from nca.terminal.reader import Reader
    from nca.terminal.render.output import Output


def open_terminal(
    settings: TerminalSettings, prompt: FirstPrompt | None, interrupts: Interrupts
) -> tuple[Output, Reader]:
    """`prompt`: None for line mode, which does without prompt_toolkit."""
    if prompt is None:
        from nca.terminal.line_reader import LineReader

        output = open_plain(settings)
        return output, LineReader(sys.stdin, output, interrupts)
    from nca.terminal.prompt_reader import PromptReader

    draw = open_draw(settings, prompt.prompt)
    return draw, PromptReader(prompt, draw, interrupts)
