"""Sessions in a PostgreSQL database.

A connection that is lost is made again, for a bounded time. A transaction that it cuts off is carried out again if the
server did not commit it; the server is asked by the transaction's number, so nothing is stored twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import psycopg

from nca.errors import SessionLocked, StoreDamaged, StoreError, StoreUnreachable
from nca.messages import Entry
from nca.sessions import sql
from nca.sessions.passages import MAX_PASSAGES
from nca.sessions.paths import outputs_of
from nca.sessions.postgres import lease, schema
from nca.sessions.postgres.connection import Backend, Connection, NoAnswer, Rows, Statement, where
from nca.sessions.postgres.full_text import TsvectorIndex
from nca.sessions.postgres.lease import PostgresLease
from nca.sessions.postgres.schema import migrate
from nca.sessions.postgres.spool import Spool, deliver, spool_of
from nca.sessions.sql import Lease, Row, SessionDatabase, Transaction, Whose
from nca.sessions.store_errors import on_failure

T = TypeVar("T")

RETRY_SECONDS = 5.0
"""How long a lost connection is tried again, and the chat waits. Then messages are kept on this machine."""
_QUIET_TIMES = 5
"""A try is not made again for so many times as long as it took, and for RETRY_SECONDS at most: a chat must not wait for
each."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 1.0
_AGAIN_SECONDS = 2
"""How long the server may take to answer the try of a lost connection; libpq knows no less."""
_ENDING_SECONDS = 5.0
"""How long the server may take to end the process of a lost connection."""


class PostgresDatabase(SessionDatabase):
    """See `nca.sessions.sql.SessionDatabase`."""

    said, todo_result, can_take_over = "is_said", sql.TODO_RESULT, True

    def __init__(
        self,
        url: str,
        path: Path | None,
        tell: Callable[[str], None] = lambda text: None,
        *,
        of_team: bool = False,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        """tell: says that a lost connection is tried again. Raises ConfigError, StoreTooNew, StoreError."""
        self.path = path
        self.where = where(url)
        self._connect = partial(Connection, url, of_team=of_team)
        self._tell = tell
        self._retry_seconds = retry_seconds
        self._lock = threading.RLock()
        self._leases: dict[str, PostgresLease] = {}
        self._transaction: _Transaction | None = None
        self._is_closed = self._has_given_up = False
        self._quiet_until = 0.0
        self.index = TsvectorIndex(self)
        with schema.explained(self.where):
            self.connection = self._connect()
            with on_failure(self.connection.close):
                migrate(self.connection, self.where)

    def rows(self, sql: str, bindings: Sequence[Any] = ()) -> list[Row]:
        with self._lock, schema.explained(self.where):
            if self._transaction is not None:
                return self._transaction.execute(sql, bindings).fetchall()
            return self.steadily(lambda: self.connection.run(sql, bindings))

    @contextmanager
    def transaction(self, lease: Lease | None = None) -> Iterator[Transaction]:
        assert lease is None or isinstance(lease, PostgresLease)
        with self._lock, schema.explained(self.where):
            transaction = _Transaction(self, lease)
            try:
                transaction.begin()
                self._transaction = transaction
                yield transaction
                self._transaction = None
                transaction.commit()
            except BaseException:
                self.connection.roll_back()
                raise
            finally:
                self._transaction = None

    def hold(self, session_id: str, *, takes_over: bool = False) -> PostgresLease:
        with self._lock, schema.explained(self.where):
            if session_id in self._leases:
                raise SessionLocked(f"Session {session_id} is already open")
            token = self.steadily(lambda: lease.take(self.connection, session_id, takes_over=takes_over))
            self._leases[session_id] = PostgresLease(self, session_id, token)
            return self._leases[session_id]

    def let_go(self, held: PostgresLease, *, remove: bool) -> None:
        with self._lock:
            if self._leases.pop(held.session_id, None) is not None and not self.connection.is_lost:
                held.unlock(self.connection, remove=remove)

    def spool(self, session_id: str, token: int) -> Spool | None:
        """The spool of a lease's holder; None if this machine has no place for it."""
        return Spool(self, spool_of(self.path, session_id, token), self._tell, self.where) if self.path else None

    def whose(self, ids: Sequence[str]) -> dict[str, Whose]:
        # An id with NUL is that of another agent's session, which was not imported.
        known = [one for one in ids if "\0" not in one]
        rows = self.rows("SELECT id, owner, machine FROM sessions WHERE id = ANY(?)", (known,))
        return {session_id: Whose(owner, machine) for session_id, owner, machine in rows}

    def deliver(self) -> None:
        if self.path is not None:
            deliver(self, self.path, self._tell)

    def insert_messages(
        self, transaction: Transaction, session: int, entries: Sequence[Entry], bodies: Sequence[str], *, is_copy: bool
    ) -> None:
        transaction.executemany(
            "INSERT INTO messages (session, seq, at, role, body, tokens, is_said) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (session, one.seq, one.at, one.message.role, body, one.tokens, _is_said(one))
                for one, body in zip(entries, bodies, strict=True)
            ],
        )
        outputs = outputs_of(self.path) if self.path else None
        # Without the ids, which would be others if a lost connection makes all this run again.
        transaction.executemany(
            f"INSERT INTO passages SELECT id * {MAX_PASSAGES} + CAST(?3 AS integer), session, ?4, CAST(?5 AS tsvector)"  # noqa: S608
            " FROM messages WHERE session = ?1 AND seq = ?2",
            [
                (session, one.seq, place, words, lexemes)
                for one in entries
                for place, words, lexemes in self.index.rows(one.message, session, outputs)
            ],
        )

    @staticmethod
    def number_in(field: str) -> str:
        # In a stored text each quote is escaped, so the name with both is found nowhere else.
        return f"""CAST(substring(body FROM '"{field}":(-{{0,1}}[0-9]+)') AS integer)"""

    def part_bytes(self) -> tuple[list[tuple[str, int]], int]:
        found = self.rows(
            "SELECT relname, pg_total_relation_size(oid) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = CAST('nca' AS regnamespace)"
        )
        return [(str(table), int(size)) for table, size in found], 0

    def report(self, how: str) -> NoReturn:
        raise StoreDamaged(f"{self.where} is damaged ({how})", advice="Restore it from a backup.")

    def back_up(self, target: Path) -> None:
        raise StoreError(
            f"The sessions are in {self.where}", advice=f"To back them up: pg_dump --schema=nca --file={target} URL"
        )

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            for held in tuple(self._leases.values()):
                held.release()
            self.connection.close()

    def steadily(self, action: Callable[[], T], first: Callable[[], None] = lambda: None) -> T:
        """Carry an action out, again with a new connection if the connection is lost; then `first` comes before it."""
        since = None
        while True:
            try:
                return action()
            except psycopg.OperationalError as error:
                if not self.connection.is_lost:
                    raise
                since = self.reconnect(error, since)
                first()

    def reconnect(self, lost: psycopg.Error, since: float | None = None) -> float:
        """Connect again, with the locks of all leases. Raises the error after RETRY_SECONDS; next time, at once.

        since: when the connection was first lost for the same action; returned. A connection may be there, and what is
        sent on it be lost each time.
        """
        if self._is_closed:
            raise StoreError("The store is closed")
        began = time.monotonic()
        since = began if since is None else since
        if began > since + self._retry_seconds:
            self._quiet_until = began + self._retry_seconds
            raise lost
        if began < self._quiet_until:
            raise lost
        deadline = began + (0 if self._has_given_up else self._retry_seconds)
        pause = _FIRST_PAUSE_SECONDS
        if is_told := isinstance(lost, NoAnswer):  # the wait was long enough
            self._tell_lost()
        while True:
            tried = time.monotonic()
            try:
                self.connection = self._connected_again()
            except psycopg.OperationalError:
                if (now := time.monotonic()) + pause > deadline:
                    self._has_given_up = True
                    self._quiet_until = now + min(_QUIET_TIMES * (now - tried), self._retry_seconds)
                    raise lost from None
                if not is_told:
                    self._tell_lost()
                    is_told = True
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            else:
                if is_told or self._has_given_up:
                    self._tell(f"Connected to {self.where} again.")
                self._has_given_up = False
                return since

    def _tell_lost(self) -> None:
        self._tell(f"The connection to {self.where} is lost. Trying again for {self._retry_seconds:.0f} seconds.")

    def _connected_again(self) -> Connection:
        connection = self._connect(seconds=_AGAIN_SECONDS)
        with on_failure(connection.close):
            self._end(self.connection.backend, connection)
            for held in self._leases.values():
                held.lock(connection)
        return connection

    @staticmethod
    def _end(old: Backend, connection: Connection) -> None:
        """End the server's process of a lost connection: it may still have locks, or be about to commit."""
        deadline = time.monotonic() + _ENDING_SECONDS
        while connection.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ? AND backend_start = ?",
            (old.pid, old.since),
        ):
            if time.monotonic() > deadline:
                raise psycopg.OperationalError("the server does not end the lost connection")
            time.sleep(_FIRST_PAUSE_SECONDS)


_BEGIN = (Statement("BEGIN"), Statement("SELECT CAST(pg_current_xact_id() AS text)"))
_COMMIT = Statement("COMMIT")


class _Transaction:
    """A write transaction that can be carried out again. Raises psycopg.Error, SessionLocked, StoreError.

    A statement that gives no rows is sent with the next one that does, or with the commit, so an error in it is raised
    there.
    """

    def __init__(self, database: PostgresDatabase, held: PostgresLease | None) -> None:
        self._database = database
        self._held = held
        self._number = ""
        """The transaction's number, by which `pg_xact_status` knows it."""
        self._done: list[tuple[Statement, list[Row]]] = []
        self._waiting: list[Statement] = []

    def begin(self) -> None:
        self._database.steadily(self._begin)

    def execute(self, sql: str, bindings: Sequence[Any] = (), /) -> Rows:
        self._waiting.append(statement := Statement(sql, tuple(bindings)))
        return Rows(self._database.steadily(self._send, self._resume)[-1] if statement.gives_rows else [])

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        if bindings := list(rows):
            self._waiting.append(Statement(sql, bindings, is_many=True))

    def commit(self) -> None:
        since = None
        while True:
            number = self._number
            try:
                self._database.connection.run_all([*self._waiting, _COMMIT])
            except psycopg.OperationalError as error:
                if not self._database.connection.is_lost:
                    raise
                lost_at = time.monotonic()
                if self._is_committed(number, error, since):
                    return
                since = since or lost_at
                self._resume()
            else:
                return

    def _is_committed(self, number: str, lost: psycopg.Error, since: float | None) -> bool:
        """The server's state of a transaction with an unanswered COMMIT."""
        try:
            self._database.reconnect(lost, since)
            return self._database.rows("SELECT pg_xact_status(CAST(CAST(? AS text) AS xid8))", (number,)) == [
                ("committed",)
            ]
        except (psycopg.OperationalError, StoreError) as error:
            raise StoreUnreachable(
                f"The connection to {self._database.where} was lost at the end of a change: it may be stored or not",
                advice="Look at the session when the database is there again.",
            ) from error

    def _begin(self) -> None:
        query = () if self._held is None else (self._held.query,)
        _, [(self._number,)], *found = self._database.connection.run_all([*_BEGIN, *query])
        if self._held is not None:
            self._held.check(found[0])

    def _send(self) -> list[list[Row]]:
        """Carry out what waits."""
        found = self._database.connection.run_all(self._waiting)
        self._done += zip(self._waiting, found, strict=True)
        self._waiting = []
        return found

    def _resume(self) -> None:
        """Repeat the statements from before the connection was lost."""
        self._database.steadily(self._again)

    def _again(self) -> None:
        """Each statement must give the same as before."""
        self._begin()
        if self._database.connection.run_all([one for one, _ in self._done]) != [rows for _, rows in self._done]:
            raise StoreUnreachable(
                f"The connection to {self._database.where} was lost while something was stored",
                advice="Nothing of it was stored. Do it again.",
            )


def _is_said(entry: Entry) -> bool:
    """Whether a person wrote it: SAID of nca.sessions.sql."""
    return entry.message.role == "user" and entry.message.source != "nca"
