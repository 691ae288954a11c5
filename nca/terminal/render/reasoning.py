"""A model's reasoning on the screen: line by line, or folded into one line that says how much there was."""

from __future__ import annotations

import time

from rich.console import RenderableType
from rich.text import Text

from nca.terminal.render.event_lines import reasoning_line
from nca.terminal.render.sanitize import LineSanitizer

TAIL_CHARS = 2_000


class ReasoningLines:
    """Shows the reasoning: complete lines are returned, the unfinished one is the tail."""

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
    """Only counts the reasoning, and says in one line how much there was. `/show thoughts` shows the text."""

    tail: RenderableType | None = None

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._chars = 0

    def feed(self, chunk: str) -> list[RenderableType]:
        self._chars += len(chunk)
        return []

    def line(self) -> Text:
        line = reasoning_line(time.monotonic() - self._started, self._chars)
        return Text(f"• {line} · /show thoughts", style="quiet")
