"""The history of typed lines, in a private file, and suggestions from it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.auto_suggest import AutoSuggest, Suggestion
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory

from nca.surrogates import clean_text
from nca.terminal.input.pastes import FoldedPastes
from nca.terminal.render.sanitize import to_terminal

SUGGESTED_ENTRIES = 2_000
"""How many of the newest entries are searched for a suggestion, at every key."""


class PrivateHistory(FileHistory):
    """prompt_toolkit's history file with mode 0600. If it cannot be written, the history ends with the program.

    The file gets the text that was sent, with folded `pastes` unfolded. While the program runs, an entry comes back as
    it was in the prompt.
    """

    MAX_KEPT_CHARS = 20_000
    """A longer entry (a pasted log) is kept in memory only."""

    READ_BYTES = 4 << 20
    """How much of the end of the file is read at the start: some ten thousand entries."""

    def __init__(self, path: Path, pastes: FoldedPastes) -> None:
        super().__init__(os.fspath(path))
        self._path = path
        self._pastes = pastes
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
            path.chmod(0o600)

    def append_string(self, string: str) -> None:
        if string.strip():
            super().append_string(clean_text(string))

    def load_history_strings(self) -> Iterable[str]:
        """The newest first. In the file, lines of an entry begin with `+`; other lines separate entries."""
        try:
            with self._path.open("rb") as file:
                start = max(0, os.fstat(file.fileno()).st_size - self.READ_BYTES)
                file.seek(start)
                lines = file.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return []
        entries: list[list[str]] = [[]]
        for line in lines[1:] if start else lines:
            if line.startswith("+"):
                entries[-1].append(line[1:])
            elif entries[-1]:
                entries.append([])
        # The first entry may be cut off.
        return ["\n".join(entry) for entry in reversed(entries[1:] if start else entries) if entry]

    def keep(self, text: str) -> bool:
        """Write what was never sent to the file, however long it is; False where that is not possible."""
        try:
            super().store_string(clean_text(text))
        except OSError:
            return False
        return True

    def store_string(self, string: str) -> None:
        sent = self._pastes.unfold(string)
        if len(sent) <= self.MAX_KEPT_CHARS:
            with contextlib.suppress(OSError):
                super().store_string(sent)


class HistorySuggestion(AutoSuggest):
    """Suggests the rest of the newest entry that begins with the typed line, dimmed, after the cursor."""

    def __init__(self, pastes: FoldedPastes) -> None:
        self._pastes = pastes

    def get_suggestion(self, buffer: Buffer, document: Document) -> Suggestion | None:
        text = document.text
        if not text.strip() or "\n" in text:
            return None
        for entry in buffer.history.get_strings()[: -SUGGESTED_ENTRIES - 1 : -1]:
            if entry.startswith(text):
                rest = entry[len(text) :].partition("\n")[0]
                if rest and not self._pastes.has_folded(rest) and to_terminal(rest) == rest:
                    return Suggestion(rest)
        return None
