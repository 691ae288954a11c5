"""Access to the rows of one session: its number in the database, and whether it may be written."""

from __future__ import annotations

from contextlib import AbstractContextManager

from nca.errors import StoreError, StoreUnreachable
from nca.sessions.sql import Binding, Lease, Row, SessionDatabase, Spool, Transaction


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
        self._lasting: dict[str, Row] = {}

    def rows(self, sql: str, *bindings: Binding) -> list[Row]:
        """All rows of a query whose first parameter is the session's number."""
        return self.database.rows(sql, (self.number, *bindings))

    def row(self, sql: str, *bindings: Binding) -> Row | None:
        """The first row of such a query."""
        return self.database.row(sql, (self.number, *bindings))

    def lasting_row(self, sql: str) -> Row | None:
        """The same, of what only the session's writer changes: it has the last one while there is no database."""
        try:
            row = self.row(sql)
        except StoreUnreachable:
            if self.is_read_only or sql not in self._lasting:
                raise
            return self._lasting[sql]
        if row is not None:
            self._lasting[sql] = row
        return row

    @property
    def spool(self) -> Spool | None:
        """Where to keep what cannot be stored because the database cannot be reached; None: nowhere."""
        return self._lease.spool if self._lease is not None else None

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
