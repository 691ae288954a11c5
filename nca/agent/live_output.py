"""What a running call prints, told a few times a second: its last lines, however much comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nca.tools.shell.output_capture import Redact, as_on_terminal

MOST_LINES = 5
EVERY_SECONDS = 0.2
"""How often at most. A command that ends sooner is not told of: its result is there."""
_KEPT_CHARS = 16_384
"""Enough to know a private key by its first line, which comes long before its last."""
_MOST_CHARS = 4_000


class LiveOutput:
    """Call `feed` with each piece of output, and `end` when the call has ended."""

    def __init__(self, redact: Redact, tell: Callable[[str], None]) -> None:
        self._redact, self._tell = redact, tell
        self._kept = self._told = ""
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, text: str) -> None:
        self._kept = (self._kept + text[-_KEPT_CHARS:])[-_KEPT_CHARS:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(EVERY_SECONDS, self._look)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        kept = self._kept
        if len(kept) == _KEPT_CHARS and "\n" in kept:
            # The beginning of its first line is gone, so a key in there would not be known.
            kept = kept.partition("\n")[2]
        lines = self._redact(as_on_terminal(kept)).split("\n")
        text = "\n".join(lines[-MOST_LINES:])[-_MOST_CHARS:]
        if text != self._told:
            self._told = text
            self._tell(text)
