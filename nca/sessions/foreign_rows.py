"""Read tables of other programs' SQLite databases. Nothing is written to the file or beside it.

A database without a write-ahead log is opened as immutable. One with a log is in use, or was not closed: SQLite would
create or change the log's index beside it, so file and log are copied to a temporary folder, and the copy is read.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from nca.errors import InvalidMessages, system_reason
from nca.safe_files import open_ordinary
from nca.sessions.database import connect_for_reading, connect_read_only, mended_rows
from nca.sessions.paths import MAGIC as MAGIC
from nca.sessions.paths import log_of, size_of
from nca.sessions.sql import Binding, Row

_COPY_TRIES = 5


class ForeignDatabase:
    """The tables of an open database, with their columns. Methods raise InvalidMessages, which names the file."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        with _explained(path):
            self.tables = _tables(connection)

    def rows(
        self,
        table: str,
        where: Mapping[str, Binding] | None = None,
        *,
        columns: Sequence[str] = (),
        order: Sequence[str] = (),
    ) -> Iterator[dict[str, Any]]:
        """The rows of a table, one at a time; none if it does not exist or lacks a column of `where`.

        `columns` (all, if none is named) and those of `order` that the table lacks are left out. A byte of a text that
        is not UTF-8 becomes U+FFFD.
        """
        known, given = self.tables.get(table, ()), where or {}
        if not set(given) <= set(known):
            return
        shown = [column for column in columns or known if column in known]
        if not shown:
            return
        conditions = " AND ".join(f"{_quoted(column)} IS ?" for column in given)
        order_by = ", ".join(_quoted(column) for column in order if column in known)
        sql = (
            f"SELECT {', '.join(map(_quoted, shown))} FROM {_quoted(table)}"  # noqa: S608
            + (f" WHERE {conditions}" if conditions else "")
            + (f" ORDER BY {order_by}" if order_by else "")
        )
        for row in self._fetch(sql, tuple(given.values())):
            yield dict(zip(shown, row, strict=True))

    def _fetch(self, sql: str, bindings: Sequence[Binding]) -> Iterator[Row]:
        done = 0
        with _explained(self._path):
            try:
                for row in self._connection.execute(sql, bindings):
                    yield row
                    done += 1
            except UnicodeDecodeError:
                yield from islice(mended_rows(self._connection, sql, bindings), done, None)


@contextmanager
def foreign_database(path: Path, *, is_open: bool = False) -> Iterator[ForeignDatabase]:
    """Open a database of another program. Raises InvalidMessages, which names the file, if it cannot be read.

    is_open  the program has it open: the index of its log is there, and nothing has to be copied
    """
    with tempfile.TemporaryDirectory(prefix="nca-") as folder:
        with _explained(path):
            is_copied = size_of(log_of(path)) > 0 and not (
                is_open and os.path.exists(path.with_name(f"{path.name}-shm"))
            )
            connection = _connect_copy(path, Path(folder)) if is_copied else connect_for_reading(path)[0]
        with closing(connection):
            yield ForeignDatabase(connection, path)


def foreign_tables(path: Path) -> Mapping[str, tuple[str, ...]]:
    """The columns of each table. A file that did not change since is not opened again. Raises InvalidMessages."""
    with _explained(path):
        return _known_tables(path, tuple(_state(path)))


@lru_cache(maxsize=16)
def _known_tables(path: Path, _state: tuple[tuple[int, int], ...]) -> Mapping[str, tuple[str, ...]]:
    # Nearly always the tables are in the file, whatever its log holds: nothing has to be copied.
    with suppress(apsw.Error, UnicodeDecodeError), closing(connect_read_only(path, is_immutable=True)) as connection:
        if tables := _tables(connection):
            return tables
    with foreign_database(path) as database:
        return database.tables


def _tables(connection: apsw.Connection) -> dict[str, tuple[str, ...]]:
    tables = {}
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        columns = connection.execute("SELECT name FROM pragma_table_info(?)", (name,)).fetchall()
        tables[str(name)] = tuple(str(column[0]) for column in columns)
    return tables


def _connect_copy(path: Path, folder: Path) -> apsw.Connection:
    """A connection to a copy of file and log. They are copied again if they changed meanwhile."""
    copy = folder / "copy.db"
    for _ in range(_COPY_TRIES):
        before = _state(path)
        _copy(path, copy)
        with suppress(FileNotFoundError):
            _copy(log_of(path), log_of(copy))
        if _state(path) == before:
            break
    connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.pragma("trusted_schema", False)
    connection.pragma("query_only", True)
    return connection


def _copy(source: Path, target: Path) -> None:
    with open_ordinary(source) as read, target.open("wb") as write:
        shutil.copyfileobj(read, write, 1024 * 1024)


def _state(path: Path) -> list[tuple[int, int]]:
    found = []
    for one in (path, log_of(path)):
        with suppress(FileNotFoundError):
            status = one.stat()
            found.append((status.st_size, status.st_mtime_ns))
    return found


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise InvalidMessages(f"{path}: cannot be read as a database ({error}).") from error
    except OSError as error:
        raise InvalidMessages(f"{path}: cannot be read ({system_reason(error)}).") from error
    except UnicodeDecodeError as error:
        raise InvalidMessages(f"{path}: cannot be read as a database (a name in it is not UTF-8).") from error
