"""One connection to the database: its pragmas, reads, write transactions and migrations.

apsw brings its own SQLite, newer than the versions with the WAL-reset bug (3.7.0 to 3.51.2), so write-ahead logging is
safe with several processes.
"""

from __future__ import annotations

import errno
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar
from urllib.parse import quote

import apsw

from nca.errors import StoreDamaged, StoreError
from nca.messages import Entry
from nca.sessions import sql
from nca.sessions import store_errors as faults
from nca.sessions.full_text import FTS5Index, insert_passages, register_functions
from nca.sessions.lock import FileLock, lock_session
from nca.sessions.paths import log_of, mark_closed, outputs_of, size_of, suspicion_of, unused
from nca.sessions.sql import Binding, Lease, Row, SessionDatabase, Transaction

T = TypeVar("T")

BUSY_SECONDS = 10.0
"""How long a statement waits for other writers before it fails."""
_BUSY_SLEEP_SECONDS = 0.001
_JOURNAL_LIMIT_BYTES = 16 * 1024 * 1024
_FRESH_TRIES = 20


class _Stamp(NamedTuple):
    """Properties of the file that change when another process writes the database."""

    size: int
    modified_ns: int
    has_log: bool


class Database(SessionDatabase):
    """One SQLite file; see `nca.sessions.sql.SessionDatabase`. File records and other agents' sessions use it too."""

    said, todo_result = sql.SAID, sql.TODO_RESULT

    def __init__(
        self, connection: apsw.Connection, path: Path | None, *, is_read_only: bool = False, is_immutable: bool = False
    ) -> None:
        self.connection = connection
        self.path = path
        self._is_read_only = is_read_only
        self._lock = threading.RLock()
        self._file = _file_id(path)
        self._immutable = _stamp(path) if is_immutable and path else None
        self._steps: list[Callable[[apsw.Connection], None]] = []
        self.index = FTS5Index(self)

    def rows(self, sql: str, bindings: Sequence[Binding] = ()) -> list[Row]:
        """All rows of a query, as one consistent read. Damaged text has U+FFFD for each bad byte. Raises StoreError."""
        with self._guarded():
            return self._steadily(lambda: fetch(self.connection, sql, bindings), "read")

    @contextmanager
    def transaction(self, lease: Lease | None = None) -> Iterator[apsw.Connection]:
        """BEGIN IMMEDIATE … COMMIT, durable on return. An exception inside rolls everything back.

        The kernel takes no lease from a process that lives, so it needs no check here.
        apsw's own `with connection` would hold the interpreter's lock while it waits for another writer, and so block
        the very thread that it waits for.
        """
        with self._guarded():
            self._refuse_if_gone()
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # a full disk has rolled back already
                    self.connection.execute("ROLLBACK")
                raise

    def hold(self, session_id: str, *, takes_over: bool = False) -> FileLock | None:
        if self.path is None:
            return None
        return lock_session(self.path.parent / "locks" / f"{session_id}.lock", session_id)

    def deliver(self) -> None:
        """A file can always be reached: nothing is kept elsewhere."""

    def insert_messages(
        self, transaction: Transaction, session: int, entries: Sequence[Entry], bodies: Sequence[str], *, is_copy: bool
    ) -> None:
        """The triggers index each message. If there are many, they rest, and all are indexed at once: faster."""
        rows = [
            (session, one.seq, one.at, one.message.role, body, one.tokens)
            for one, body in zip(entries, bodies, strict=True)
        ]
        sql = "INSERT INTO messages (session, seq, at, role, body, tokens) VALUES (?, ?, ?, ?, ?, ?)"
        if not is_copy:
            transaction.executemany(sql, rows)
            return
        connection = self.connection
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        try:
            connection.executemany(sql, rows)
        finally:
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
        outputs = outputs_of(self.path) if self.path else None
        sql = "SELECT id FROM messages WHERE session = ? AND seq >= ? ORDER BY seq"
        ids = [id for (id,) in fetch(connection, sql, (session, entries[0].seq))]
        messages = zip(ids, (one.message for one in entries), strict=True)
        insert_passages(connection, session, messages, outputs)

    @staticmethod
    def number_in(field: str) -> str:
        return f"iif(json_valid(body), body ->> '{field}', NULL)"

    def part_bytes(self) -> tuple[list[tuple[str, int]], int]:
        tables = self.rows(
            "SELECT coalesce(s.tbl_name, d.name), sum(d.pgsize) FROM dbstat d"
            " LEFT JOIN sqlite_schema s ON s.name = d.name GROUP BY 1"
        )
        [(free,)] = self.rows("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size")
        return [(str(table), int(size)) for table, size in tables], int(free)

    def report(self, how: str) -> NoReturn:
        """Raise StoreDamaged for damage that SQLite does not see; the next opening looks into it."""
        with self._guarded():
            raise faults.damaged(self.path, how)

    def also(self, step: Callable[[apsw.Connection], None]) -> None:
        """Run a step once on this connection, and again on each connection that replaces it."""
        with self._guarded():
            if step not in self._steps:
                self._reconnect_if_changed()
                step(self.connection)
                self._steps.append(step)

    def tokenizer(self, name: str, arguments: list[str]) -> apsw.FTS5Tokenizer:
        """One of FTS5's own tokenizers."""
        with self._guarded():
            self._reconnect_if_changed()
            return self.connection.fts5_tokenizer(name, arguments)

    def back_up(self, target: Path) -> None:
        """Copy the database, in use or not, into a new private file, completely or not at all.

        Raises StoreError, also if the file exists.
        """
        with self._lock, faults.explained(target, advice=""):
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
            try:
                self._steadily(lambda: self._copy_to(part), "copied")
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)

    def _copy_to(self, target: Path) -> None:
        target.unlink(missing_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(apsw.Connection(str(target))) as copy, copy.backup("main", self.connection, "main") as backup:
            backup.step()

    def close(self) -> None:
        """Raises StoreError if the file is no longer the one that was opened: nobody would find the new messages."""
        with self._lock, faults.explained(self.path):
            try:
                self._refuse_if_gone()
            except StoreError:
                # Or SQLite would delete the log of the file that may be there now.
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                raise
            finally:
                self.connection.close()
            if self.path and not self._is_read_only and size_of(log_of(self.path)) == 0:
                mark_closed(self.path)

    def _refuse_if_gone(self) -> None:
        if not self._is_read_only and _file_id(self.path) != self._file:
            raise faults.gone(self.path)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Serialize access and explain errors. Damage is recorded, so that the next opening sets the file aside."""
        with self._lock:
            try:
                with faults.explained(self.path):
                    yield
            except StoreDamaged:
                if self.path and not self._is_read_only:
                    with suppress(OSError):
                        suspicion_of(self.path).touch(0o600)
                raise

    def _steadily(self, action: Callable[[], T], what: str) -> T:
        """Carry an action out, again if a file that was opened as immutable has changed meanwhile."""
        for _ in range(_FRESH_TRIES):
            stamp = self._reconnect_if_changed()
            try:
                found = action()
            except apsw.Error:
                if stamp is None or self.path is None or _stamp(self.path) == stamp:
                    raise
            else:
                if stamp is None or self.path is None or _stamp(self.path) == stamp:
                    return found
        raise StoreError(f"{self.path} changes faster than it can be {what}", advice="Try again in a moment.")

    def _reconnect_if_changed(self) -> _Stamp | None:
        """Reconnect if a file that was opened as immutable has changed after all."""
        if self._immutable is None or self.path is None:
            return None
        stamp = _stamp(self.path)
        if stamp != self._immutable:
            self.connection.close()
            self.connection, is_immutable = connect_for_reading(self.path)
            self._immutable = stamp if is_immutable else None
            for step in self._steps:
                step(self.connection)
        return self._immutable


IN_MEMORY, TEMPORARY = ":memory:", ""
"""What SQLite calls places without a file that anybody could find: memory, and memory that overflows into a file for
temporary files, which ends with the connection or the process."""


def connect(path: Path | None, place: str = IN_MEMORY) -> apsw.Connection:
    """A connection that may write. The file must exist, because the caller creates it with private permissions.

    place  without a path: where the database is
    """
    if path is None:
        connection = apsw.Connection(place)
    else:
        connection = apsw.Connection(_uri(path, "rw"), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    connection.set_busy_handler(_busy_handler())
    register_functions(connection, outputs_of(path) if path else None)
    return connection


def fetch(connection: apsw.Connection, sql: str, bindings: Sequence[Binding] = ()) -> list[Row]:
    """All rows of a query. A byte that is not UTF-8 becomes U+FFFD: it must not cost the whole session."""
    try:
        return connection.execute(sql, bindings).fetchall()
    except UnicodeDecodeError:
        return list(mended_rows(connection, sql, bindings))


def mended_rows(connection: apsw.Connection, sql: str, bindings: Sequence[Binding] = ()) -> Iterator[Row]:
    """The rows of a query with possibly damaged text: each byte that is not UTF-8 becomes U+FFFD."""
    try:
        names = [f"c{place}" for place, _ in enumerate(connection.execute(sql, bindings).description)]
    except apsw.ExecutionCompleteError:  # there are no rows
        return
    kinds = [f"typeof({name}) = 'text'" for name in names]
    as_bytes = [f"iif({kind}, CAST({name} AS BLOB), {name})" for kind, name in zip(kinds, names, strict=True)]
    damaged = f"WITH damaged ({', '.join(names)}) AS ({sql}) SELECT {', '.join((*kinds, *as_bytes))} FROM damaged"  # noqa: S608
    for row in connection.execute(damaged, bindings):
        values = zip(row[: len(names)], row[len(names) :], strict=True)
        yield tuple(
            value.decode("utf-8", "replace") if is_text and isinstance(value, bytes) else value
            for is_text, value in values
        )


def _busy_handler() -> Callable[[int], bool]:
    """A busy handler that waits for another writer in short steps.

    SQLite's own timeout sleeps longer and longer, which starves a writer among many: one of eight waited up to 7 of its
    10 seconds. With short steps the longest wait was below one second.
    """
    since = 0.0

    def wait(tries: int) -> bool:
        nonlocal since
        now = time.monotonic()
        since = now if tries == 0 else since
        if now - since >= BUSY_SECONDS:
            return False
        time.sleep(_BUSY_SLEEP_SECONDS)
        return True

    return wait


def connect_for_reading(path: Path) -> tuple[apsw.Connection, bool]:
    """A read-only connection, and whether it treats the file as immutable.

    Without a write-ahead log, nobody has the database open for writing. SQLite would still create the log's files,
    which fails in a directory that cannot be written. It is therefore told that the file is immutable, and
    `Database.rows` checks that this was true.
    """
    is_immutable = not _stamp(path).has_log
    return connect_read_only(path, is_immutable=is_immutable), is_immutable


def connect_read_only(path: Path, *, is_immutable: bool) -> apsw.Connection:
    """is_immutable: read the file alone, whatever its write-ahead log holds."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(_uri(path, "ro", immutable=is_immutable), flags=flags)
    connection.set_busy_handler(_busy_handler())
    _set(connection, trusted_schema=False, cell_size_check=True, mmap_size=0)
    return connection


def prepare(connection: apsw.Connection) -> None:
    """Make writes durable and constraints binding. All pragmas but the journal mode are per connection."""
    _set(
        connection,
        journal_mode="WAL",
        synchronous="FULL",
        fullfsync=True,
        checkpoint_fullfsync=True,
        foreign_keys=True,
        recursive_triggers=True,  # else INSERT OR REPLACE would delete past the triggers
        trusted_schema=False,
        cell_size_check=True,
        mmap_size=0,
        journal_size_limit=_JOURNAL_LIMIT_BYTES,
    )


def migrate(
    database: Database, migrations: Sequence[str] = sql.MIGRATIONS, application_id: int = sql.APPLICATION_ID
) -> Path | None:
    """Migrate the schema to `len(migrations)` in one transaction. Returns the backup made before; None for a new file.

    Raises StoreError and leaves the file unchanged.
    """
    with faults.explained(database.path):
        # The first read of a new file makes its log's index: a full disk may show here.
        version = database.connection.pragma("user_version")
    if version >= len(migrations):
        return None
    backup = None
    if version and database.path:
        backup = unused(database.path.with_name(f"{database.path.name}.before-schema-{len(migrations)}"))
        database.back_up(backup)
    if not version and not database.rows("SELECT 1 FROM sqlite_schema LIMIT 1"):
        with faults.explained(database.path), closing(connect(None)) as blank:
            blank.deserialize("main", _blank(tuple(migrations), application_id))
            with database.connection.backup("main", blank, "main") as copying:
                copying.step()
        return None
    with database.transaction() as connection:
        _advance(connection, migrations[version:], len(migrations), application_id)
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        if broken:
            raise faults.damaged(database.path, f"{len(broken)} rows refer to nothing")
    return backup


@cache
def _blank(migrations: tuple[str, ...], application_id: int) -> bytes:
    """A new database of this schema. To copy it takes a tenth of the time of all migrations."""
    with closing(connect(None)) as connection:
        _advance(connection, migrations, len(migrations), application_id)
        return connection.serialize("main")


def _advance(connection: apsw.Connection, scripts: Sequence[str], version: int, application_id: int) -> None:
    for script in scripts:
        connection.execute(script).fetchall()  # apsw stops at each row that a statement gives
    connection.pragma("application_id", application_id)
    connection.pragma("user_version", version)


def _file_id(path: Path | None) -> tuple[int, int] | None:
    """The identity of the file, which differs for another one in its place; None if there is none."""
    with suppress(FileNotFoundError):
        if path is not None:
            status = path.stat()
            return status.st_dev, status.st_ino
    return None


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return _Stamp(status.st_size, status.st_mtime_ns, size_of(log_of(path)) > 0)


def _set(connection: apsw.Connection, **pragmas: str | int | bool) -> None:
    for name, value in pragmas.items():
        connection.pragma(name, value)


def _uri(path: Path, mode: str, *, immutable: bool = False) -> str:
    return f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}{'&immutable=1' if immutable else ''}"
