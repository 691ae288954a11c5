"""Sessions in PostgreSQL. Nothing here is imported unless `session.store` names such a database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nca.errors import StoreError
from nca.sessions.sql import SessionDatabase


def connect(url: str, path: Path | None, tell: Callable[[str], None]) -> SessionDatabase:
    """See `nca.sessions.store.Store.open`. Raises ConfigError, StoreTooNew, StoreError."""
    try:
        from nca.sessions.postgres.database import PostgresDatabase
    except ImportError as error:
        raise StoreError(
            f"Sessions in PostgreSQL need psycopg ({error})", advice="To install it: pip install 'nca[postgres]'"
        ) from error
    return PostgresDatabase(url, path, tell)
