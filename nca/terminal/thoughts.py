"""What a model thinks, on its way to the screen: line by line where it is shown, else one line that says how much."""

from __future__ import annotations

import time

from rich.console import RenderableType
from rich.text import Text

from nca.terminal.sanitize import StreamSanitizer
from nca.terminal.wording import thought_line

MAX_LINE_CHARS = 8_000
"""A longer line leaves in pieces."""

TAIL_CHARS = 2_000


class Thoughts:
    """Whole lines leave, the last one is the tail."""

    def __init__(self) -> None:
        self._sanitizer = StreamSanitizer()
        self._partial = ""

    def feed(self, chunk: str) -> list[RenderableType]:
        *lines, self._partial = (self._partial + self._sanitizer.feed(chunk)).split("\n")
        if len(self._partial) > MAX_LINE_CHARS:
            lines, self._partial = [*lines, self._partial], ""
        return [Text(line, style="quiet") for line in lines]

    def finish(self) -> list[RenderableType]:
        rest = self._partial + self._sanitizer.finish()
        self._partial = ""
        return [Text(rest, style="quiet")] if rest.strip() else []

    @property
    def tail(self) -> RenderableType | None:
        return Text(self._partial[-TAIL_CHARS:], style="quiet") if self._partial.strip() else None


class FoldedThoughts:
    """Counts only; `finish` is the one line. /show thoughts has what was thought."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._chars = 0

    def feed(self, chunk: str) -> list[RenderableType]:
        self._chars += len(chunk)
        return []

    def finish(self) -> list[RenderableType]:
        line = thought_line(time.monotonic() - self._started, self._chars)
        return [Text(f"• {line} · /show thoughts", style="quiet")]
