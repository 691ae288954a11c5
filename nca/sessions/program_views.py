"""The states of views of conversations that programs keep themselves (`nca.ContextView` with a key)."""

from __future__ import annotations

import secrets
import time
from typing import NamedTuple

from nca.errors import StoreError, ViewInUse
from nca.messages import clean_text
from nca.sessions.sql import SessionDatabase

_VERSION_BITS = 62


class StoredState(NamedTuple):
    """The state of a view as JSON. `version`: no other save has it."""

    body: str
    version: int


class ProgramViews:
    """One row for each key; each save replaces it. Any number of threads and processes may use one store."""

    def __init__(self, database: SessionDatabase, *, is_read_only: bool) -> None:
        self._database = database
        self._is_read_only = is_read_only

    def read(self, key: str) -> StoredState | None:
        """What was saved last, if anything was. Raises StoreError."""
        row = self._database.row("SELECT body, version FROM program_views WHERE key = ?", (clean_text(key),))
        return StoredState(*row) if row else None

    def save(self, key: str, body: str, replaces: StoredState | None) -> None:
        """Save a state in place of `replaces`, which was read before; None: in place of nothing. Durable on return.

        Raises ViewInUse and changes nothing if somebody has saved or deleted it since; StoreError.
        """
        self._refuse_reader()
        name = clean_text(key)
        with self._database.transaction() as connection:
            # Where several may write at once, the second waits for the first, and then finds no such row.
            deletes = "DELETE FROM program_views WHERE key = ? AND version = ? RETURNING key"
            is_first = replaces is None or connection.execute(deletes, (name, replaces.version)).get is not None
            row = (secrets.randbits(_VERSION_BITS), name, clean_text(body), time.time())
            inserts = "INSERT INTO program_views VALUES (?, ?, ?, ?) ON CONFLICT (key) DO NOTHING RETURNING key"
            if not is_first or connection.execute(inserts, row).get is None:
                raise ViewInUse(
                    f"Another request has fitted the conversation {key!r} meanwhile.",
                    advice="Nothing was changed; fit it again.",
                )

    def delete(self, key: str) -> None:
        """Delete what was saved, if anything was: the view begins anew. Raises StoreError."""
        self._refuse_reader()
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM program_views WHERE key = ?", (clean_text(key),))

    def _refuse_reader(self) -> None:
        if self._is_read_only:
            raise StoreError("The store is open for reading only")
