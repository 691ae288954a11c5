"""Show a model download's progress: a bar on a terminal, a few lines without one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nca.models.embedded.download import Progress

_BAR_CELLS = 30
_MEGABYTE = 1_000_000
_STAGES = {"waiting": "waiting for another nca to download it", "checking": "verifying"}


class DownloadProgress:
    """Writes to standard error. Call it with each Progress, and `finish` at the end."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._is_terminal = sys.stderr.isatty()
        self._last = ""
        self._has_bar = False

    def __call__(self, progress: Progress) -> None:
        share = progress.done_bytes / progress.total_bytes if progress.total_bytes else 0.0
        line = f"{self._title}: {_STAGES.get(progress.stage, 'downloading')}"
        if self._is_terminal:
            filled = round(share * _BAR_CELLS)
            size = f"{progress.done_bytes / _MEGABYTE:,.0f} / {progress.total_bytes / _MEGABYTE:,.0f} MB"
            line += f" {'█' * filled}{'░' * (_BAR_CELLS - filled)} {size}"
        else:
            line += f" {int(share * 10) * 10}%"
        if line == self._last:
            return
        self._last = line
        self._has_bar = self._is_terminal
        # On a terminal the line overwrites the previous one. The padding covers a longer one.
        text = f"\r{line:<78}" if self._is_terminal else f"{line}\n"
        print(text, end="", file=sys.stderr, flush=True)

    def finish(self) -> None:
        """End the bar's line."""
        if self._has_bar:
            self._has_bar = False
            print(file=sys.stderr, flush=True)


def download_weights(name: str) -> None:
    """Download and verify an embedded model's weights. Raises UsageError, ModelUnavailable, NcaError."""
    from nca.models.embedded import weights

    progress = DownloadProgress(weights.known(name).name)
    try:
        weights.get(name, progress=progress)
    finally:
        progress.finish()
