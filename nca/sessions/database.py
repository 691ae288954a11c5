"""One connection to the database: its pragmas, reads, write transactions and migrations.

apsw brings its own SQLite, past the WAL-reset fault (3.7.0 to 3.51.2), so write-ahead logging is safe with several
processes. Pragmas are those of reliability 1.1.
"""

from __future__ import annotations

import errno
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import apsw

from nca.errors import StoreDamaged, StoreError
from nca.sessions import functions, schema
from nca.sessions import store_errors as faults

BUSY_SECONDS = 10.0
"""How long a statement waits for other writers before it gives up (reliability F8)."""
_BUSY_SLEEP_SECONDS = 0.001
_JOURNAL_LIMIT_BYTES = 16 * 1024 * 1024
_FRESH_TRIES = 20

Binding = None | int | float | str | bytes
Row = tuple[Any, ...]


class _Stamp(NamedTuple):
    """What changes when another process writes the database."""

    size: int
    modified_ns: int
    has_log: bool


class Database:
    """All SQL of the store goes through `rows` and `transaction`; both may be called from any thread."""

    def __init__(
        self, connection: apsw.Connection, path: Path | None, *, is_read_only: bool = False, is_frozen: bool = False
    ) -> None:
        self.connection = connection
        self.path = path
        self._is_read_only = is_read_only
        self._lock = threading.RLock()
        self._frozen = _stamp(path) if is_frozen and path else None
        self._steps: list[Callable[[apsw.Connection], None]] = []

    def rows(self, sql: str, bindings: Sequence[Binding] = ()) -> list[Row]:
        """All rows of a query, by a read of their own. Raises StoreError."""
        with self._guarded():
            for _ in range(_FRESH_TRIES):
                stamp = self._thaw()
                try:
                    rows = self.connection.execute(sql, bindings).fetchall()
                except apsw.Error:
                    if stamp is None or self.path is None or _stamp(self.path) == stamp:
                        raise
                else:
                    if stamp is None or self.path is None or _stamp(self.path) == stamp:
                        return rows
        raise StoreError(f"{self.path} changes faster than it can be read", advice="Try again in a moment.")

    def row(self, sql: str, bindings: Sequence[Binding] = ()) -> Row | None:
        rows = self.rows(sql, bindings)
        return rows[0] if rows else None

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """BEGIN IMMEDIATE … COMMIT, durable on return; any exception inside rolls all of it back.

        Not apsw's own `with connection`: that keeps the interpreter's lock while it waits for another writer, so a
        thread that waits stops the one that it waits for.
        """
        with self._guarded():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # a full disk has rolled back already
                    self.connection.execute("ROLLBACK")
                raise

    def also(self, step: Callable[[apsw.Connection], None]) -> None:
        """Do this once with the connection, and again with each that takes its place."""
        with self._guarded():
            if step not in self._steps:
                self._thaw()
                step(self.connection)
                self._steps.append(step)

    def tokenizer(self, name: str, arguments: list[str]) -> apsw.FTS5Tokenizer:
        """One of FTS5's own tokenizers."""
        with self._guarded():
            self._thaw()
            return self.connection.fts5_tokenizer(name, arguments)

    def back_up(self, target: Path) -> None:
        """Copy the database as it is now, in use or not, into a new private file; whole or not there at all.

        Raises StoreError, also where there is such a file.
        """
        with self._lock, faults.explained(target):
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
            try:
                for _ in range(_FRESH_TRIES):
                    stamp = self._thaw()
                    self._copy_to(part)
                    if stamp is None or self.path is None or _stamp(self.path) == stamp:
                        part.replace(target)
                        return
            finally:
                part.unlink(missing_ok=True)
        raise StoreError(f"{self.path} changes faster than it can be copied", advice="Try again in a moment.")

    def _copy_to(self, target: Path) -> None:
        target.unlink(missing_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        copy = apsw.Connection(str(target))
        try:
            with copy.backup("main", self.connection, "main") as backup:
                backup.step()
        finally:
            copy.close()

    def close(self) -> None:
        with self._lock, faults.explained(self.path):
            self.connection.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """One at a time, with errors explained. Damage is remembered, so that the next opening looks at every page."""
        with self._lock:
            try:
                with faults.explained(self.path):
                    yield
            except StoreDamaged:
                if self.path and not self._is_read_only:
                    with suppress(OSError):
                        suspicion_of(self.path).touch(0o600)
                raise

    def _thaw(self) -> _Stamp | None:
        """Connect again where the file that was opened as unchanging has changed after all."""
        if self._frozen is None or self.path is None:
            return None
        stamp = _stamp(self.path)
        if stamp != self._frozen:
            self.connection.close()
            self.connection, is_frozen = connect_for_reading(self.path)
            self._frozen = stamp if is_frozen else None
            for step in self._steps:
                step(self.connection)
        return self._frozen


def connect(path: Path | None) -> apsw.Connection:
    """A connection that may write. The file exists already (so that it was made private)."""
    if path is None:
        connection = apsw.Connection(":memory:")
    else:
        connection = apsw.Connection(_uri(path, "rw"), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    connection.set_busy_handler(_patience())
    functions.register(connection, path)
    return connection


def _patience() -> Callable[[int], bool]:
    """Waits for another writer in short steps.

    SQLite's own timeout sleeps longer and longer, so that of eight busy writers one came last again and again: it
    waited up to 7 of its 10 seconds. With short steps the longest wait stayed below one.
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
    """A connection that writes nothing, and whether it takes the file for unchanging.

    Without a write-ahead log nobody has the database open for writing; SQLite would make the log's files just to
    read, and could not in a directory that cannot be written. So then it is told that the file does not change, and
    `Database.rows` looks whether that was true.
    """
    is_frozen = not _stamp(path).has_log
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(_uri(path, "ro", immutable=is_frozen), flags=flags)
    connection.set_busy_handler(_patience())
    _set(connection, trusted_schema=False, cell_size_check=True, mmap_size=0)
    return connection, is_frozen


def prepare(connection: apsw.Connection) -> None:
    """Make writes durable, and the schema's promises binding. All but the journal mode is per connection."""
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


def migrate(database: Database, migrations: Sequence[str] = schema.MIGRATIONS) -> Path | None:
    """Bring the schema to `len(migrations)` in one transaction; gives the backup made before, None for a new file.

    Raises StoreError, and then the file is as it was.
    """
    version = database.connection.pragma("user_version")
    if version >= len(migrations):
        return None
    backup = None
    if version and database.path:
        backup = unused(database.path.with_name(f"{database.path.name}.before-schema-{len(migrations)}"))
        database.back_up(backup)
    with database.transaction() as connection:
        for script in migrations[version:]:
            for _ in connection.execute(script):  # apsw stops at each row that a statement gives
                pass
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        if broken:
            raise faults.damaged(database.path, f"{len(broken)} rows refer to nothing")
        connection.pragma("application_id", schema.APPLICATION_ID)
        connection.pragma("user_version", len(migrations))
    return backup


def unused(path: Path) -> Path:
    """`path`, or the first of path-2, path-3 … that no file has."""
    candidate, number = path, 1
    while os.path.lexists(candidate):
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def log_of(path: Path) -> Path:
    """The write-ahead log that belongs to a database file."""
    return path.with_name(path.name + "-wal")


def suspicion_of(path: Path) -> Path:
    """There while a process has met damage in the database and no opening has looked at it since."""
    return path.parent / "locks" / f"{path.name}.suspect"


def size_of(path: Path) -> int:
    """In bytes; 0 where there is no file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return _Stamp(status.st_size, status.st_mtime_ns, size_of(log_of(path)) > 0)


def _set(connection: apsw.Connection, **pragmas: str | int | bool) -> None:
    for name, value in pragmas.items():
        connection.pragma(name, value)


def _uri(path: Path, mode: str, *, immutable: bool = False) -> str:
    return f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}{'&immutable=1' if immutable else ''}"
