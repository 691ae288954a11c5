"""Getting the embedded model's weights while a person watches: a bar on a terminal, a few lines without one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nca.models.embedded.download import Progress

_BAR_CELLS = 30
_LINES = 10
"""Without a terminal, a line is printed each time another tenth has come."""
_MEGABYTE = 1_000_000


class FetchProgress:
    """Draws on standard error; call it with each Progress, and `finish` at the end."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._is_terminal = sys.stderr.isatty()
        self._last = ""
        self._has_bar = False

    def __call__(self, progress: Progress) -> None:
        share = progress.done_bytes / progress.total_bytes if progress.total_bytes else 0.0
        if self._is_terminal:
            self._draw(progress, share)
            return
        line = f"{self._words(progress)} {int(share * _LINES) * 100 // _LINES} %"
        if line != self._last:
            self._last = line
            print(line, file=sys.stderr, flush=True)

    def finish(self) -> None:
        """End the bar's line."""
        if self._has_bar:
            self._has_bar = False
            print(file=sys.stderr, flush=True)

    def _draw(self, progress: Progress, share: float) -> None:
        filled = round(share * _BAR_CELLS)
        size = f"{progress.done_bytes / _MEGABYTE:,.0f} / {progress.total_bytes / _MEGABYTE:,.0f} MB"
        line = f"{self._words(progress)} {'█' * filled}{'░' * (_BAR_CELLS - filled)} {size}"
        if line != self._last:
            self._last = line
            self._has_bar = True
            # Longer lines before it are overwritten by the blanks.
            print(f"\r{line:<78}", end="", file=sys.stderr, flush=True)

    def _words(self, progress: Progress) -> str:
        match progress.stage:
            case "waiting":
                return f"{self._title}: another nca is fetching it"
            case "checking":
                return f"{self._title}: checking"
            case _:
                return f"{self._title}: fetching"


def size(count: int) -> str:
    """Bytes of weights, as their publishers write them."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def fetch_weights(name: str) -> None:
    """Fetch and check the weights of an embedded model. Raises UsageError, ModelUnavailable, NcaError."""
    from nca.models.embedded import weights

    progress = FetchProgress(weights.known(name).name)
    try:
        weights.get(name, progress=progress)
    finally:
        progress.finish()
