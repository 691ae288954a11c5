"""Whether a database is whole, found out without writing."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from nca.errors import StoreDamaged, StoreError
from nca.sessions import store_errors as faults
from nca.sessions.database import Database, connect_for_reading

_STEPS = 10_000
"""Instructions of SQLite between two looks at the clock."""


def is_checked(path: Path, seconds: float) -> bool:
    """Check every page and index as an opening does after a kill. False if that takes longer.

    Raises StoreDamaged, StoreError.
    """
    ends = time.monotonic() + seconds
    is_late = False

    def stops() -> bool:
        nonlocal is_late
        is_late = time.monotonic() > ends
        return is_late

    with faults.explained(path, "read"):
        connection, is_immutable = connect_for_reading(path)
    with closing(Database(connection, path, is_read_only=True, is_immutable=is_immutable)) as database:
        database.also(lambda connection: connection.set_progress_handler(stops, _STEPS))
        try:
            [(verdict,)] = database.rows("PRAGMA integrity_check(1)")
        except StoreDamaged:
            raise
        except StoreError:
            if is_late:
                return False
            raise
    if verdict != "ok":
        raise faults.damaged(path, str(verdict))
    return True
