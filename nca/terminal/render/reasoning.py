"""What a model thinks, on its way to the screen: line by line where it is shown, else one line that says how much."""

from __future__ import annotations

import time

from rich.console import RenderableType
from rich.text import Text

from nca.terminal.render.event_lines import reasoning_line
from nca.terminal.render.sanitize import LineSanitizer

TAIL_CHARS = 2_000


class ReasoningLines:
    """Whole lines leave, the last one is the tail."""

    def __init__(self) -> None:
        self._lines = LineSanitizer()

    def feed(self, chunk: str) -> list[RenderableType]:
        return [Text(line, style="quiet") for line in self._lines.feed(chunk)]

    def finish(self) -> list[RenderableType]:
        rest = self._lines.finish()
        return [Text(rest, style="quiet")] if rest.strip() else []

    @property
    def tail(self) -> RenderableType | None:
        partial = self._lines.partial
        return Text(partial[-TAIL_CHARS:], style="quiet") if partial.strip() else None


class ReasoningCounter:
    """Counts only; `finish` is the one line. /show thoughts has what was thought."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._chars = 0

    def feed(self, chunk: str) -> list[RenderableType]:
        self._chars += len(chunk)
        return []

    def finish(self) -> list[RenderableType]:
        line = reasoning_line(time.monotonic() - self._started, self._chars)
        return [Text(f"• {line} · /show thoughts", style="quiet")]
