"""A conversation as a file for hooks: one JSON object a line, as Claude Code keeps its transcripts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from nca.atomic_write import PRIVATE
from nca.context.history import History
from nca.messages import Entry
from nca.shapes.anthropic_blocks import new_blocks


class Transcript:
    """What the model saw when the first hook ran, and every message since. The file lasts as long as the chat."""

    def __init__(self, session_id: str, folder: Path | None) -> None:
        """folder: the session's; None: there is no file."""
        self._session_id = session_id
        self._path = folder / "transcript.jsonl" if folder is not None else None
        self._head = -1

    def brought_up(self, history: History) -> str:
        """The path of the file with all messages so far; of an empty one where it cannot be written."""
        if self._path is None:
            return os.devnull
        is_first = self._head < 0
        entries: Iterable[Entry] = history.visible() if is_first else history.entries[self._head :]
        text = "".join(self._line(entry) for entry in entries if entry.message.role != "system")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if is_first else os.O_APPEND)
            with os.fdopen(os.open(self._path, flags, PRIVATE), "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except OSError:
            self._path = None
            return os.devnull
        self._head = history.head
        return str(self._path)

    def close(self) -> None:
        """Delete the file."""
        if self._path is not None and self._head >= 0:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
                self._path.parent.rmdir()

    def _line(self, entry: Entry) -> str:
        role = "assistant" if entry.message.role == "assistant" else "user"
        message = {"role": role, "content": new_blocks(entry.message)}
        said = {"type": role, "sessionId": self._session_id, "message": message}
        return json.dumps(said, ensure_ascii=False, separators=(",", ":")) + "\n"
