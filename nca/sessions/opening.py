"""Open the database file, whatever is there.

| found                                         | for writing                            | for reading    |
| --------------------------------------------- | -------------------------------------- | -------------- |
| nothing, or an empty file that was never used | a new database                         | an empty store |
| ours, of an older schema                      | backed up and migrated                 | migrated copy in memory |
| ours, of a newer schema                       | StoreTooNew                            | StoreTooNew    |
| a directory; a file that was never nca's      | NotAStore                              | NotAStore      |
| garbage, cut short, emptied, damaged pages    | set aside; the readable part is kept   | StoreDamaged   |
| a log with commits behind damage              | set aside; these are kept too          | StoreDamaged   |
| unreadable, unwritable, a full disk           | StoreError "cannot write …"            | StoreError     |

Only nca's own file is ever set aside, replaced or changed. It is nca's if its header says so, if nca left a lock file
for it, or if it is at nca's own place; see `_refuse_others`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import apsw

from nca.config.paths import data_dir
from nca.errors import ConfigError, NotAStore, StoreDamaged, StoreError, StoreTooNew
from nca.safe_files import sync_folder
from nca.sessions import paths, sql
from nca.sessions import store_errors as faults
from nca.sessions.corruption import recover_readable
from nca.sessions.database import IN_MEMORY, Database, connect, connect_for_reading, migrate, prepare
from nca.sessions.lock import FileLock
from nca.sessions.rows import read_frames
from nca.sessions.sql import Row

_OPENING_SECONDS = 30.0
_NEWER_VERSIONS = 16
"""A version further ahead than this, in front of the very schema that we know, is a damaged number."""
_ENDINGS = ("", "-wal", "-shm")
"""A database is up to three files."""
_COPIES = 2
"""A rebuilt database is written to the log, and then to the file."""
_ANOTHERS = "another program's database"
_STEPS = 100_000
"""Instructions of SQLite between two looks at whether the person has interrupted: some milliseconds."""


class Kind(NamedTuple):
    """The expected kind of a file: the store of sessions, or the record of file changes.

    recover  saves what can be read of a damaged file in a new one, and says what that is
    name     what the file is called in nca's data folder, where no other program writes
    """

    application_id: int
    migrations: tuple[str, ...]
    recover: Callable[[Path, Database], str]
    name: str = ""


SESSIONS = Kind(
    sql.APPLICATION_ID,
    sql.MIGRATIONS,
    lambda damaged, fresh: f"{recover_readable(damaged, fresh)}; this is kept in a new store",
    paths.SESSIONS,
)


class Opened(NamedTuple):
    """An open database. `lock` tells other processes that it is in use; `notes` are for the person."""

    database: Database
    lock: FileLock | None
    notes: tuple[str, ...]

    def close(self) -> None:
        try:
            self.database.close()
        finally:
            if self.lock is not None:
                self.lock.release()


def open_in_memory(kind: Kind = SESSIONS, place: str = IN_MEMORY) -> Opened:
    database = Database(connect(None, place), None)
    prepare(database.connection)
    migrate(database, kind.migrations, kind.application_id)
    return Opened(database, None, ())


def open_for_reading(path: Path, kind: Kind = SESSIONS) -> Opened:
    """Open without writing. Raises StoreDamaged, StoreTooNew, StoreError."""
    _refuse_others(path, kind)
    if _is_blank(path):
        return open_in_memory(kind)
    _check_header(path, kind)
    with faults.explained(path):
        connection, is_immutable = connect_for_reading(path)
    database = Database(connection, path, is_read_only=True, is_immutable=is_immutable)
    with faults.on_failure(connection.close):
        version = _check(database, kind)
        if paths.size_of(paths.log_of(path)) > 0 and not _is_in_use(path):
            _check_log(database, path)
        if version == len(kind.migrations):
            return Opened(database, None, ())
        with faults.explained(path):
            copy = Database(connect(None), None)
            with copy.connection.backup("main", connection, "main") as backup:
                backup.step()
        prepare(copy.connection)
        migrate(copy, kind.migrations, kind.application_id)
    connection.close()
    return Opened(copy, None, ())


def open_for_writing(path: Path, kind: Kind = SESSIONS) -> Opened:
    """Create missing files and set aside damaged ones. Raises NotAStore, StoreTooNew, StoreError."""
    with faults.explained(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_others(path, kind)
    with opening_lock(path):
        use = _use_of(path)
        alone = FileLock.acquire(use)
        lock = alone or FileLock.acquire(use, is_shared=True)
        with faults.on_failure(lock.release if lock is not None else lambda: None):
            database, notes = _open_or_set_aside(path, kind, is_alone=alone is not None)
            if alone is not None:
                alone.share()
        return Opened(database, lock, notes)


def opening_lock(path: Path) -> FileLock:
    """The lock that each process holds while it opens the database. Raises StoreError after some time."""
    return FileLock.wait(path.parent / "locks" / f"{path.name}.opening", _OPENING_SECONDS)


def _use_of(path: Path) -> Path:
    """The lock of all processes that may write."""
    return path.parent / "locks" / f"{path.name}.use"


def _is_in_use(path: Path) -> bool:
    """Whether a process may write now; True if nobody can tell."""
    with suppress(StoreError):
        if lock := FileLock.acquire(_use_of(path)):
            lock.release()
            return False
    return True


def _open_or_set_aside(path: Path, kind: Kind, *, is_alone: bool) -> tuple[Database, tuple[str, ...]]:
    # The new store is complete before the damaged one moves: until then, a kill or a full disk changes nothing.
    fresh = path.with_name(path.name + ".new")
    is_whole = paths.is_of(_header(fresh), kind.application_id) and paths.size_of(paths.log_of(fresh)) == 0
    if is_alone and is_whole and not os.path.exists(path):
        # Killed between the two moves.
        _set_aside(path)
        note = f"{path} was damaged and has been set aside; the readable part is kept in a new store."
        return _put_in_place(fresh, path, kind), (note,)
    try:
        return _open_existing(path, kind, is_alone=is_alone), ()
    except StoreDamaged as error:
        if not is_alone:
            # Another process still writes to this path.
            raise
        how = error.message
    remove(fresh)
    with closing(_open_existing(fresh, kind, is_alone=True)) as database:
        kept = kind.recover(path, database)
    aside = _set_aside(path)
    database = _put_in_place(fresh, path, kind)
    return database, (f"{how}. It was set aside as {aside.name}; {kept}.",)


def _put_in_place(fresh: Path, path: Path, kind: Kind) -> Database:
    with faults.explained(path):
        fresh.rename(path)
    return _open_existing(path, kind, is_alone=True)


def _open_existing(path: Path, kind: Kind, *, is_alone: bool) -> Database:
    if _is_blank(path):
        _make_private_file(path)
    else:
        _check_header(path, kind)
    if is_alone and os.path.exists(paths.suspicion_of(path)):
        # No check finds all that SQLite stumbles over: none looks into the words of a full-text index.
        raise faults.damaged(path, "a process that read it met damage")
    has_log = paths.size_of(paths.log_of(path)) > 0
    needs_check = is_alone and paths.size_of(path) > 0 and (has_log or not paths.is_as_left(path))
    with faults.explained(path):
        path.chmod(0o600)
        connection = connect(path)
    database = Database(connection, path)
    try:
        _check(database, kind)
        if needs_check and has_log:
            _check_log(database, path)
        with faults.explained(path):
            prepare(connection)
        if needs_check:
            _check_pages(database)
        migrate(database, kind.migrations, kind.application_id)
        missing = _newest_schema(kind) - _schema_of(database)
        if missing:
            raise faults.damaged(path, f"without its {min(kind + ' ' + name for kind, name, _ in missing)}")
    except BaseException:
        # Otherwise SQLite would write the readable part of the log into the file, and delete the log.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(is_alone and has_log))
        connection.close()
        raise
    return database


def _refuse_others(path: Path, kind: Kind) -> None:
    """Refuse whatever is at `path` and was never nca's, before anything is written. Raises NotAStore, StoreError."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise _not_a_store(path, kind, "a directory, not a session database" if os.path.isdir(path) else "not a file")
    with faults.explained(path, "read"):
        if paths.size_of(path) == 0 and paths.size_of(paths.log_of(path)) == 0:
            return
    header = _header(path)
    if not (paths.is_of(header, kind.application_id) or os.path.exists(_use_of(path)) or _is_at_home(path, kind)):
        raise _not_a_store(path, kind, _ANOTHERS if header.startswith(paths.MAGIC) else "not a session database")


def _header(path: Path) -> bytes:
    """The first bytes of the file; none if there is no file."""
    with faults.explained(path, "read"), suppress(FileNotFoundError), path.open("rb") as file:
        return file.read(paths.HEADER_BYTES)
    return b""


def _is_at_home(path: Path, kind: Kind) -> bool:
    with suppress(ConfigError):
        return path.name == kind.name and path.is_relative_to(data_dir(os.environ))
    return False


def _not_a_store(path: Path, kind: Kind, what: str) -> NotAStore:
    return NotAStore(
        f"{path} is {what}; it was left alone",
        advice="Move it away, or set NCA_HOME." if _is_at_home(path, kind) else "Name another file.",
    )


def _is_blank(path: Path) -> bool:
    """Whether the file is missing, or empty as a new one. Another empty one is damaged, by a power failure say.

    SQLite would discard a write-ahead log beside it.
    """
    with faults.explained(path, "read"):
        if paths.size_of(path) > 0:
            return False
        if paths.size_of(paths.log_of(path)) > 0:
            raise faults.damaged(path, "empty, with a write-ahead log beside it")
        if os.path.exists(path) and paths.was_used(path):
            raise faults.damaged(path, "something emptied it")
        return True


def _make_private_file(path: Path) -> None:
    """Create the file before SQLite opens it, which gives its other files the same permissions."""
    with faults.explained(path):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    sync_folder(path.parent)


def _check_header(path: Path, kind: Kind) -> None:
    """Refuse a file that is not a database or is truncated (SQLite 3.40 opened the latter without an error)."""
    header = _header(path)
    if len(header) < paths.HEADER_BYTES or not header.startswith(paths.MAGIC):
        raise faults.damaged(path, "not a database")
    if paths.is_of(header, kind.application_id) and not paths.is_sound(header):
        raise faults.damaged(path, "a wrong header")
    if paths.size_of(paths.log_of(path)) == 0 and paths.size_of(path) < paths.bytes_expected(header):
        raise faults.damaged(path, "cut short")


def _check(database: Database, kind: Kind) -> int:
    """The schema's version, 0 for a new file. Raises StoreTooNew; StoreError for another program's database."""
    with faults.explained(database.path):
        application_id = database.connection.pragma("application_id")
        version = int(database.connection.pragma("user_version"))
        tables = database.connection.execute("SELECT count(*) FROM sqlite_schema").get
    is_ours, newest = application_id == kind.application_id, len(kind.migrations)
    is_likely = is_ours and newest <= version <= newest + _NEWER_VERSIONS
    if not is_likely and tables and _newest_schema(kind) <= _schema_of(database):
        raise faults.damaged(database.path, "a wrong header")
    if not is_ours and (application_id or version or tables):
        assert database.path
        raise _not_a_store(database.path, kind, _ANOTHERS)
    if version > newest:
        raise StoreTooNew(
            f"{database.path} was written by a newer nca (schema {version}; this one knows {newest})",
            advice="Upgrade nca, or set NCA_HOME to keep a separate store.",
        )
    return version


def _schema_of(database: Database) -> set[Row]:
    """Type, name and text of everything in the schema; without the text where the full-text index writes it."""
    return set(database.rows("SELECT type, name, iif(name GLOB 'passages_*', NULL, sql) FROM sqlite_schema"))


@cache
def _newest_schema(kind: Kind) -> frozenset[Row]:
    with closing(open_in_memory(kind).database) as database:
        return frozenset(_schema_of(database))


def _check_log(database: Database, path: Path) -> None:
    """Refuse a log with commits behind damage: SQLite would drop them silently. No other process may write."""
    with faults.explained(path, "read"):
        frames = read_frames(paths.log_of(path), database.connection.pragma("page_size"))
    if frames.is_damaged:
        raise faults.damaged(path, "its write-ahead log has a wrong byte")


def _check_pages(database: Database) -> None:
    """Check every page and index, after a process did not close the database or something else wrote to it."""
    with faults.explained(database.path):
        verdict = database.connection.pragma("integrity_check", 1)
        strays = database.connection.execute("PRAGMA foreign_key_check").fetchall()
    if verdict != "ok":
        raise faults.damaged(database.path, str(verdict))
    if strays:
        raise faults.damaged(database.path, f"{len(strays)} rows refer to nothing")


def remove(path: Path) -> None:
    """Delete the database's files. Raises StoreError."""
    with faults.explained(path):
        for ending in _ENDINGS:
            path.with_name(path.name + ending).unlink(missing_ok=True)


def _set_aside(path: Path) -> Path:
    """Rename the database's files and return the new name; nothing is overwritten."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    aside = paths.unused(path.with_name(f"{path.name}.corrupt-{stamp}"))
    with faults.explained(path):
        for ending in _ENDINGS:
            with suppress(FileNotFoundError):
                path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
        paths.suspicion_of(path).unlink(missing_ok=True)
    return aside


def rebuild(database: Database, path: Path, lock: FileLock | None, tidy: Callable[[], None]) -> None:
    """Remove what nothing refers to (`tidy`), and rebuild the file without the room that is free, in one transaction:
    whatever ends the process, the file is as before or as after.

    lock: the shared lock of this process. Raises StoreError, and has changed nothing, if another process has the
    database open, or the disk has no room for the copies that this takes. A process that starts meanwhile waits.
    """
    with opening_lock(path), ExitStack() as held:
        if lock is None or not lock.take_alone():
            raise StoreError(f"Another nca has {path} open", advice="Close it, then run this again.")
        held.callback(lock.share)
        needed = _COPIES * (paths.size_of(path) + paths.size_of(paths.log_of(path)))
        free = shutil.disk_usage(path.parent).free
        if free < needed:
            raise StoreError(
                f"Rebuilding {path} takes {needed:,} bytes for a moment, and {free:,} are free",
                advice="Free some space. Nothing was changed.",
            )
        tidy()
        connection = database.connection
        # SQLite runs for seconds; the handler lets Python see Ctrl-C, which takes the transaction back.
        connection.set_progress_handler(lambda: False, _STEPS)
        try:
            with faults.explained(path):
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.set_progress_handler(None)
