"""Sessions in PostgreSQL. Nothing here is imported unless `session.store` names such a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nca.errors import StoreError, install_command
from nca.sessions.sql import SessionDatabase

if TYPE_CHECKING:
    from nca.sessions.postgres.schema import Facts

PACKAGE = "psycopg[binary]"


def connect(
    url: str, path: Path | None, tell: Callable[[str], None] = lambda text: None, *, of_team: bool = False
) -> SessionDatabase:
    """See `nca.sessions.store.Store.open`. Raises ConfigError, StoreTooNew, StoreError."""
    with _installed():
        from nca.sessions.postgres.database import PostgresDatabase
    return PostgresDatabase(url, path, tell, of_team=of_team)


def facts(url: str) -> Facts:
    """The state of the database; nothing is changed. Raises ConfigError, StoreTooNew, StoreError."""
    with _installed():
        from nca.sessions.postgres import schema
    return schema.facts(url)


def prepare(url: str, *, for_team: bool) -> Facts:
    """Create or migrate the schema, with rules for a team. Raises ConfigError, StoreTooNew, StoreError."""
    with _installed():
        from nca.sessions.postgres import schema
    return schema.prepare(url, for_team=for_team)


@contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise StoreError(
            f"Sessions in PostgreSQL need psycopg ({error})",
            advice=f"To install it: {install_command(PACKAGE)}",
        ) from error
