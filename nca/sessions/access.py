"""The row of one session: its number in the database, whether it may be written, and the source of an imported one.

An imported session is imported again when its file has grown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from nca.errors import StoreDamaged, StoreError, StoreUnreachable
from nca.messages import AttachmentPart, Entry, Message, TextPart
from nca.sessions.encoding import decode
from nca.sessions.sql import Binding, Lease, Row, SessionDatabase, Spool, Transaction
from nca.wire import content_text


class SessionAccess:
    """Access for a session's log, views and usage. `number` is the key of its rows."""

    def __init__(
        self, database: SessionDatabase, number: int, *, is_read_only: bool = True, lease: Lease | None = None
    ) -> None:
        """lease: the right to write it; None for a reader, and in memory."""
        self.database = database
        self._lease = lease
        self.number = number
        self.is_read_only = is_read_only
        self.is_closed = False
        self._is_writing = False
        self._lasting: dict[str, Row] = {}

    def rows(self, sql: str, *bindings: Binding) -> list[Row]:
        """All rows of a query with the session's number as first parameter."""
        self._store_kept()
        return self.database.rows(sql, (self.number, *bindings))

    def row(self, sql: str, *bindings: Binding) -> Row | None:
        """The first row of such a query."""
        self._store_kept()
        return self.database.row(sql, (self.number, *bindings))

    def integer(self, sql: str, *bindings: Binding) -> int:
        """The number that such a query gives; 0 for none."""
        self._store_kept()
        return int(self.database.value(sql, (self.number, *bindings), 0))

    def lasting_row(self, sql: str) -> Row | None:
        """The same for what only the session's writer changes: without a database, the writer gets the last one."""
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
        """The spool for rows while the database cannot be reached; None: no spool."""
        return self._lease.spool if self._lease is not None else None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A write transaction; durable when it ends.

        It begins with the messages kept on this machine while the database was unreachable. Raises StoreError if the
        session is closed or read-only, SessionLocked if another process has taken it over.
        """
        if self.is_closed:
            raise StoreError("This session is closed")
        self.refuse_reader()
        is_committed, self._is_writing = False, True
        try:
            with self.database.transaction(self._lease) as transaction:
                kept = self.spool
                if kept is not None and not kept.is_empty:
                    kept.write(transaction, self.number)
                yield transaction
            is_committed = True
        finally:
            self._is_writing = False
            self.has_ended(is_committed=is_committed)
        if kept is not None and not kept.is_empty:
            kept.clear()

    def write(self, sql: str, *bindings: Binding) -> None:
        """One statement as such a transaction."""
        with self.transaction() as transaction:
            transaction.execute(sql, bindings)

    def has_ended(self, *, is_committed: bool) -> None:
        """What is to be done after each transaction."""

    def _store_kept(self) -> None:
        """A read sees the kept messages."""
        if not self._is_writing and self.spool is not None and not self.spool.is_empty:
            with self.transaction():
                pass

    def refuse_reader(self) -> None:
        """Raise StoreError if the session was opened for reading."""
        if self.is_read_only:
            name = self.database.value("SELECT id FROM sessions WHERE number = ?", (self.number,), "ID")
            raise StoreError(
                "This session is open for reading only",
                advice=f"Once nobody else has it open, /resume {name} opens it for writing; `nca sessions fork {name}`"
                " makes a copy to continue in.",
            )


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """A session of another agent: the part imported so far.

    agent       the agent's name
    session_id  the agent's own id of the session
    path, key   the file, and which of its sessions
    size_bytes  the size of the file when it was read; `at`: when it was last used then, seconds since the epoch
    messages    how many messages of the log come from it: the first ones; `views`: how many views
    name        the session's name there; a session that still has it follows the file's
    """

    agent: str
    path: str
    key: str = ""
    session_id: str = ""
    size_bytes: int = 0
    at: float = 0.0
    messages: int = 0
    views: int = 1
    name: str = ""


def goes_on(imported: Sequence[Entry], entries: Sequence[Entry]) -> bool:
    """Whether these messages begin with those that were imported.

    Their text counts, not this nca's reading of it: an older one knew less about who said a part.
    """
    pairs = zip(imported, entries, strict=False)
    return len(entries) >= len(imported) and all(_says_the_same(one.message, two.message) for one, two in pairs)


def _says_the_same(old: Message, new: Message) -> bool:
    if (old.role, old.tool_call_id, old.tool_calls) != (new.role, new.tool_call_id, new.tool_calls):
        return False
    text = _squeezed(content_text(old.content))
    if not new.attachments or old.attachments:
        return text == _squeezed(content_text(new.content))
    # Attached text was once in the message, in other tags.
    place = 0
    for part in new.content or ():
        if isinstance(part, TextPart | AttachmentPart):
            said = _squeezed(part.text)
            place = text.find(said, place) + len(said)
            if place < len(said):
                return False
    return True


def _squeezed(text: str) -> str:
    return "".join(text.split())


def as_origin(body: str) -> Origin | None:
    """None for a session of nca's own, and where the row is damaged."""
    try:
        return decode(body, Origin, "where a session comes from") if body else None
    except StoreDamaged:
        return None
