"""The schema in PostgreSQL, as migrations. Processes that start at once take turns."""

from __future__ import annotations

from pathlib import Path

from nca.errors import StoreTooNew
from nca.sessions.postgres.connection import Connection

_MIGRATIONS = tuple(
    Path(__file__).with_name("migrations").joinpath(name).read_text(encoding="utf-8") for name in ("1_sessions.sql",)
)
"""Script n leads from schema n to n + 1. Only ever add one."""
_LOCK = 0x6E63610A
"""The advisory lock of all who prepare the schema; `nca` and a newline."""


def migrate(connection: Connection, where: str) -> None:
    """Migrate the schema in one transaction, if it is not the newest. Raises StoreTooNew, psycopg.Error."""
    if _version(connection, where) == len(_MIGRATIONS):
        return
    connection.begin()
    try:
        connection.run("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
        version = _version(connection, where)
        connection.run("CREATE SCHEMA IF NOT EXISTS nca", ())
        connection.run("CREATE TABLE IF NOT EXISTS schema_version (number INTEGER NOT NULL)", ())
        for script in _MIGRATIONS[version:]:
            connection.run_script(script)
        connection.run("DELETE FROM schema_version", ())
        connection.run("INSERT INTO schema_version VALUES (?)", (len(_MIGRATIONS),))
        connection.run("COMMIT", ())
    except BaseException:
        if not connection.is_lost:
            connection.run("ROLLBACK", ())
        raise


def _version(connection: Connection, where: str) -> int:
    """0: there is no schema."""
    if connection.run("SELECT to_regclass('nca.schema_version')", ()) == [(None,)]:
        return 0
    version = int((connection.run("SELECT max(number) FROM schema_version", ())[0][0]) or 0)
    if version > len(_MIGRATIONS):
        raise StoreTooNew(
            f"{where} was written by a newer nca (schema {version}; this one knows {len(_MIGRATIONS)})",
            advice="Upgrade nca.",
        )
    return version
