"""The schema in PostgreSQL, as migrations, and its errors as one line with advice. No message shows a password.

Processes that start at once take turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg import errors

from nca.errors import StoreError, StoreTooNew, StoreUnreachable
from nca.sessions.postgres.connection import Connection, where


def _script(name: str) -> str:
    return Path(__file__).with_name("migrations").joinpath(name).read_text(encoding="utf-8")


_MIGRATIONS = tuple(map(_script, ("1_sessions.sql",)))
"""Script n leads from schema n to n + 1. Only ever add one."""
_LOCK = 0x6E63610A
"""The advisory lock of all who prepare the schema; `nca` and a newline."""


class Facts(NamedTuple):
    """A database as `nca doctor` shows it. `seconds`: of one answer."""

    where: str
    version: str
    schema: int
    newest_schema: int
    sessions: int
    seconds: float


def facts(url: str) -> Facts:
    with _connected(url) as (connection, place):
        version = _version(connection, place)
        sessions = connection.run("SELECT count(*) FROM sessions", ())[0][0] if version else 0
        began = time.perf_counter()
        connection.run("SELECT 1", ())
        seconds = time.perf_counter() - began
        [(server,)] = connection.run("SHOW server_version", ())
        return Facts(place, str(server).split()[0], version, len(_MIGRATIONS), sessions, seconds)


def prepare(url: str, *, for_team: bool) -> Facts:
    with _connected(url) as (connection, place):
        migrate(connection, place)
        if for_team:
            with _alone(connection):
                connection.run_script(_script("team.sql"))
    return facts(url)


@contextmanager
def _connected(url: str) -> Iterator[tuple[Connection, str]]:
    place = where(url)
    with explained(place), closing(Connection(url)) as connection:
        yield connection, place


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """A transaction that waits for others who prepare the schema."""
    with connection.transaction():
        connection.run("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
        yield


def migrate(connection: Connection, where: str) -> None:
    """Migrate the schema in one transaction, if it is not the newest. Raises StoreTooNew, psycopg.Error."""
    if _version(connection, where) == len(_MIGRATIONS):
        return
    with _alone(connection):
        version = _version(connection, where)
        connection.run("CREATE SCHEMA IF NOT EXISTS nca", ())
        connection.run("CREATE TABLE IF NOT EXISTS schema_version (number INTEGER NOT NULL)", ())
        for script in _MIGRATIONS[version:]:
            connection.run_script(script)
        connection.run("DELETE FROM schema_version", ())
        connection.run("INSERT INTO schema_version VALUES (?)", (len(_MIGRATIONS),))


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


_MOST_CHARS = 160
_UNREACHABLE = frozenset({"08", "28", "3D", "53", "57"})
"""Classes of errors: connection, password, no such database, too many connections, shutting down."""
_NOTHING_LOST = "Nothing that was stored before is lost."


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Translate errors of psycopg into StoreError. `where`: the database, as a person names it."""
    try:
        yield
    except psycopg.Error as error:
        raise _translated(error, where) from error


def _translated(error: psycopg.Error, where: str) -> StoreError:
    match error:
        case errors.InsufficientPrivilege():
            return StoreError(
                f"{where} refuses it: {_line(error)}", advice="Whoever owns it can prepare it: `nca store init`."
            )
        case errors.DiskFull() | errors.OutOfMemory():
            return StoreError(f"{where} is full: {_line(error)}", advice=f"Free some space there. {_NOTHING_LOST}")
        case errors.LockNotAvailable() | errors.DeadlockDetected():
            return StoreError(f"{where} is busy: {_line(error)}", advice=f"Try again in a moment. {_NOTHING_LOST}")
        case psycopg.OperationalError() if (error.sqlstate or "08")[:2] in _UNREACHABLE:
            return StoreUnreachable(
                f"Cannot reach {where}: {_line(error)}", advice=f"Check session.store: `nca doctor`. {_NOTHING_LOST}"
            )
        case _:
            return StoreError(f"{where} refused the change: {_line(error)}", advice=_NOTHING_LOST)


def _line(error: psycopg.Error) -> str:
    """The error of the server or the connection, as one short line."""
    said = error.diag.message_primary or str(error).partition("\n")[0]
    return " ".join(said.split())[:_MOST_CHARS]
