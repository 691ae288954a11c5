"""The screen while nca writes on it: what is printed stays in the scrollback, a tail below it is drawn again and again.

The tail is drawn with relative moves only (no alternate screen, no absolute positions), one write a frame, and never
higher than the window, so text can be selected and scrolled as in any other program.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import IO, TextIO

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from nca.terminal.render.ascii_fallback import encodable
from nca.terminal.render.sanitize import to_terminal
from nca.terminal.render.theme import screen_console

_STYLE_CODE = re.compile(r"\x1b\[[0-9;]*m")

# A line of the tail never wraps, even where terminal and Rich differ about a character's width (emoji, ligatures).
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"


def rewraps_lines(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal wraps lines again when it becomes narrower: all but xterm, GNU screen and the console."""
    return not ("XTERM_VERSION" in environment or "STY" in environment or environment.get("TERM") == "linux")


def mute(file: IO[str]) -> None:
    """Send what is still buffered nowhere, or the interpreter would complain about it at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, file.fileno())
        os.close(nowhere)


class Screen:
    """Printed lines and the tail below them. After a failed write (a closed terminal) it is silent for good."""

    def __init__(self, file: TextIO) -> None:
        self.console: Console = screen_console()
        self._file = file
        self._tail: list[str] = []
        self._rewraps = rewraps_lines()
        self.is_gone = False
        self.failure: OSError | None = None
        self._above_prompt: Callable[[Callable[[], None]], None] | None = None

    def print(self, *renderables: RenderableType) -> None:
        """Print for good, above the tail. Strings are taken as foreign text."""
        printed = "".join(self._render(renderable) for renderable in renderables)
        if self._above_prompt is not None:
            self._above_prompt(lambda: self._write(printed))
            return
        self._write(self._to_tail_start() + "\x1b[J" + printed if self._tail else printed)
        tail, self._tail = self._tail, []
        if tail:
            self._paint(tail)

    def draw(self, printed: Iterable[RenderableType], tail: RenderableType | None) -> None:
        """One frame: what is finished goes above, the tail is replaced, both in one write."""
        finished = "".join(self._render(renderable) for renderable in printed)
        lines = self._fit(self._render(tail).split("\n")[:-1]) if tail is not None else []
        start = self._to_tail_start()
        if not finished and lines == self._tail:
            return
        if finished:
            start += "\x1b[J"
        self._tail = []
        self._paint(lines, before=start + finished)

    def send_codes(self, codes: str) -> None:
        """Escape codes that move nothing on the screen: a bell, the clipboard. Never with foreign text in them."""
        self._write(codes)

    def begin_prompt(self, above: Callable[[Callable[[], None]], None]) -> None:
        """A prompt is about to stand on the screen; `above` runs a write so that it lands above it."""
        self._above_prompt = above

    def end_prompt(self) -> None:
        self._above_prompt = None

    def clear_tail(self) -> None:
        if self._tail:
            self._write(self._to_tail_start() + "\x1b[J")
            self._tail = []

    def clear(self) -> None:
        """An empty screen; the scrollback of the terminal stays."""
        self.clear_tail()
        self._write("\x1b[H\x1b[2J")

    def _paint(self, lines: list[str], *, before: str = "") -> None:
        # Each line is emptied before it is written: erasing after it would eat a full line's last character.
        body = "\r\n".join(f"\x1b[K{line}" for line in lines)
        self._write(f"{before}{_NO_WRAP}{body}{_WRAP}\x1b[J" if lines else f"{before}\x1b[J" if before else "")
        self._tail = lines

    def _to_tail_start(self) -> str:
        """Moves to where the tail begins, also after the window became narrower and its lines were wrapped."""
        if not self._tail:
            return ""
        width = max(self.console.width, 1)
        if self._rewraps:
            rows = sum(max(1, -(-cell_len(_STYLE_CODE.sub("", line)) // width)) for line in self._tail)
        else:
            rows = len(self._tail)
        up = min(rows, max(self.console.height, 1)) - 1
        return f"\r\x1b[{up}A" if up else "\r"

    def _fit(self, lines: list[str]) -> list[str]:
        """The last lines that fit; two rows stay free, and a window of less than four has no tail."""
        room = self.console.height - 2
        return lines[-room:] if room >= 2 else []

    def _render(self, renderable: RenderableType) -> str:
        if isinstance(renderable, str):
            renderable = Text(to_terminal(renderable))
        with self.console.capture() as captured:
            self.console.print(renderable)
        return captured.get()

    def _write(self, text: str) -> None:
        if self.is_gone or not text:
            return
        try:
            self._file.write(text)
            self._file.flush()
        except UnicodeEncodeError:
            encoding = self._file.encoding or "ascii"
            self._write(encodable(text, encoding))
        except (OSError, ValueError) as error:
            # The terminal was closed: the turn goes on and is stored, there is only nobody to show it to.
            self.is_gone = True
            self.failure = error if isinstance(error, OSError) else None
            mute(self._file)
