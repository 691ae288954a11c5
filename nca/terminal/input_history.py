"""What was typed before, kept in a file that only its owner can read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory

from nca.messages import clean_text


class PrivateHistory(FileHistory):
    """prompt_toolkit's file of history with mode 0600. Where it cannot be written, the history ends with the program.

    `expand` turns the text of the prompt into the text that was sent (folded pastes).
    """

    MAX_KEPT_CHARS = 20_000
    """A longer entry (a pasted log) is remembered while the program runs, not on disk."""

    def __init__(self, path: Path, expand: Callable[[str], str] = str) -> None:
        super().__init__(os.fspath(path))
        self._expand = expand
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
            path.chmod(0o600)

    def append_string(self, string: str) -> None:
        if string.strip():
            super().append_string(clean_text(self._expand(string)))

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        if len(string) <= self.MAX_KEPT_CHARS:
            with contextlib.suppress(OSError):
                super().store_string(string)
