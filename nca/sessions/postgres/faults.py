"""Translate errors of PostgreSQL into one line and advice. No message shows a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from nca.errors import StoreError, StoreUnreachable

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
    """What the server or the connection says, on one line that is not too long."""
    said = error.diag.message_primary or str(error).partition("\n")[0]
    return " ".join(said.split())[:_MOST_CHARS]
