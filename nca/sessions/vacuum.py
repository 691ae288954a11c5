"""Give the room back that the databases no longer need. All that is kept stays, byte for byte.

Tool outputs that were too large for the context are in `outputs/ID/` beside the database. A folder goes with its
session unless another session, such as a fork, still refers to a file in it.

SQLite rebuilds a file in one transaction: whatever ends the process, the file is as before or as after.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from nca.errors import StoreError
from nca.sessions import store_errors as faults
from nca.sessions.database import Database
from nca.sessions.lock import FileLock
from nca.sessions.opening import opening_lock
from nca.sessions.paths import log_of, outputs_of, size_of
from nca.sessions.sql import SessionDatabase


def sweep_outputs(database: SessionDatabase, store: Path | None) -> None:
    """Delete the folders that belong to no session and that no message refers to."""
    if store is None:
        return
    try:
        folders = [entry for entry in outputs_of(store).iterdir() if entry.is_dir() and not entry.is_symlink()]
    except OSError:  # no session has saved an output yet
        return
    for path in folders:
        if not database.row(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ?1)"
            " OR EXISTS (SELECT 1 FROM messages WHERE instr(body, ?2) > 0)",
            (path.name, f"{path.parent.name}/{path.name}/"),
        ):
            with suppress(OSError):  # what cannot be deleted now is tried again later
                shutil.rmtree(path)


_COPIES = 2
"""A rebuilt database is written to the log, and then to the file."""
_STEPS = 100_000
"""Instructions of SQLite between two looks at whether the person has interrupted: some milliseconds."""


def vacuum(database: SessionDatabase, path: Path | None, lock: FileLock | None) -> None:
    """Rebuild the sessions' database, and delete the outputs that no session refers to. Raises StoreError."""
    if not isinstance(database, Database):
        raise StoreError("PostgreSQL gives back room by itself", advice="There is nothing to do.")
    if path is None:
        return

    def tidy() -> None:
        sweep_outputs(database, path)
        with database.transaction() as connection:
            connection.execute("INSERT INTO passages (passages) VALUES ('optimize')")

    rebuild(database, path, lock, tidy)


def rebuild(database: Database, path: Path, lock: FileLock | None, tidy: Callable[[], None]) -> None:
    """Remove what nothing refers to (`tidy`), and rebuild the file without the room that is free.

    lock: the shared lock of this process. Raises StoreError, and has changed nothing, if another process has the
    database open, or the disk has no room for the copies that this takes. A process that starts meanwhile waits.
    """
    with opening_lock(path):
        if lock is None or not lock.take_alone():
            raise StoreError(f"Another nca has {path} open", advice="Close it, then run this again.")
        _refuse_full_disk(path)
        tidy()
        _vacuum(database, path)
        lock.share()


def _refuse_full_disk(path: Path) -> None:
    needed = _COPIES * (size_of(path) + size_of(log_of(path)))
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise StoreError(
            f"Rebuilding {path} takes {needed:,} bytes for a moment, and {free:,} are free",
            advice="Free some space. Nothing was changed.",
        )


def _vacuum(database: Database, path: Path) -> None:
    connection = database.connection
    # SQLite runs for seconds; the handler lets Python see Ctrl-C, which takes the transaction back.
    connection.set_progress_handler(lambda: False, _STEPS)
    try:
        with faults.explained(path):
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.set_progress_handler(None)
