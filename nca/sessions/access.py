"""Access to the rows of one session: its number in the database, and whether it may be written."""

from __future__ import annotations

from contextlib import AbstractContextManager

from nca.errors import StoreError
from nca.sessions.sql import Binding, Lease, Row, SessionDatabase, Transaction


class SessionAccess:
    """What a session's log, views and usage read and write through. `number` is the key of its rows."""

    def __init__(
        self, database: SessionDatabase, number: int, *, is_read_only: bool = True, lease: Lease | None = None
    ) -> None:
        """lease: the right to write it; None for a reader, and in memory."""
        self.database = database
        self._lease = lease
        self.number = number
        self.is_read_only = is_read_only
        self.is_closed = False

    def rows(self, sql: str, *bindings: Binding) -> list[Row]:
        """All rows of a query whose first parameter is the session's number."""
        return self.database.rows(sql, (self.number, *bindings))

    def row(self, sql: str, *bindings: Binding) -> Row | None:
        """The first row of such a query."""
        return self.database.row(sql, (self.number, *bindings))

    def transaction(self) -> AbstractContextManager[Transaction]:
        """A write transaction; durable when it ends.

        Raises StoreError if the session is closed or read-only, SessionLocked if another process has taken it over.
        """
        if self.is_closed:
            raise StoreError("This session is closed")
        self.refuse_reader()
        return self.database.transaction(self._lease)

    def refuse_reader(self) -> None:
        """Raise StoreError if the session was opened for reading."""
        if self.is_read_only:
            row = self.row("SELECT id FROM sessions WHERE number = ?")
            raise StoreError(
                "This session is open for reading only",
                advice=f"`nca sessions fork {row[0] if row else 'ID'}` makes a copy to go on in.",
            )
