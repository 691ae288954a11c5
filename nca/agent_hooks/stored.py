"""A session in the database of an agent that keeps no files of them, read while the agent works."""

from __future__ import annotations

import json
from errno import ENOENT
from pathlib import Path
from typing import Any

from nca.sessions.foreign_rows import ForeignDatabase, foreign_database
from nca.transcripts.formats.building import parsed
from nca.transcripts.formats.values import object_of

_SHOWN = ("id", "projectID", "title", "directory", "parent_id", "version", "revert")
"""What the reader looks for in a session; by the second it knows an export."""


class StoredTranscript:
    """A session of opencode. It is read as its own export writes it: one JSON value.

    names  the names of the agent's databases in its folder, as a pattern
    """

    def __init__(self, folder: Path, names: str, session: str) -> None:
        self._folder, self._names, self._session = folder, names, session
        self.place = f"{folder / names}, session {session}"

    def read(self, start: int = 0) -> tuple[bytes, int]:
        """The messages from the one with the number `start` on, and how many there are; without one that is not whole.

        start  below 0: so far from the end

        Raises OSError, InvalidMessages.
        """
        for path in sorted(self._folder.glob(self._names)):
            with foreign_database(path, is_open=True) as database:
                for session in database.rows("session", {"id": self._session}):
                    found = self._whole(database)
                    start = start if start >= 0 else max(0, len(found) + start)
                    messages = [{"info": one, "parts": _parts(database, one["id"])} for one in found[start:]]
                    info = {name: session.get(name) for name in _SHOWN}
                    return json.dumps({"info": info, "messages": messages}).encode(), len(found)
        raise FileNotFoundError(ENOENT, f"{self.place}: is not there")

    def _whole(self, database: ForeignDatabase) -> list[dict[str, Any]]:
        """The messages; the newest one counts once it is an answer that has ended: its parts are written after it."""
        rows = database.rows("message", {"session_id": self._session}, order=("time_created", "id"))
        found = [object_of(parsed(row.get("data"))) | {"id": row.get("id")} for row in rows]
        is_whole = bool(found) and bool(object_of(found[-1].get("time")).get("completed"))
        return found if is_whole else found[:-1]


def _parts(database: ForeignDatabase, message: Any) -> list[dict[str, Any]]:
    return [object_of(parsed(row.get("data"))) for row in database.rows("part", {"message_id": message}, order=("id",))]
