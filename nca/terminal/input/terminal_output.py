"""Where prompt_toolkit draws, and how to write above what it has drawn."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output

from nca.terminal.render.ascii_fallback import encodable, is_utf8
from nca.terminal.render.theme import has_colour


class _NoQuestions(Vt100_Output):
    """Sends the terminal no queries: an answer that comes late (over ssh, say) would be typed into the prompt."""

    @property
    def responds_to_cpr(self) -> bool:
        return False

    def get_rows_below_cursor_position(self) -> int:
        return 1

    def write(self, data: str) -> None:
        super().write(data if is_utf8(self.encoding()) else encodable(data, self.encoding()))


def write_above(app: Application[Any], write: Callable[[], None]) -> None:
    """Write above what an application draws, or at once if it is not on the screen.

    An application that ends cancels its tasks, also before they begin; then the text is written below it.
    """
    is_written = False

    def write_once() -> None:
        nonlocal is_written
        if not is_written:
            is_written = True
            write()

    async def in_turn() -> None:
        await run_in_terminal(write_once)

    if app.is_running:
        app.create_background_task(in_turn()).add_done_callback(lambda _: write_once())
    else:
        write_once()


def terminal_output() -> Output:
    """Where prompt_toolkit draws: a terminal that is sent no queries, without colour if none is wanted."""
    depth = None if has_colour(os.environ) else ColorDepth.DEPTH_1_BIT
    return _NoQuestions.from_pty(sys.stdout, term=os.environ.get("TERM"), default_color_depth=depth)
