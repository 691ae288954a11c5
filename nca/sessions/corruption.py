"""Recover what is readable from a corrupt database into a new one.

The corrupt file itself is never opened, because SQLite would replay its log into it. A copy is read table by table,
from both ends up to the damage. A session with all its messages keeps its views. A session with a gap keeps the
remaining messages in order and shows all of them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from nca.errors import StoreError
from nca.messages import Message
from nca.sessions import store_errors as faults
from nca.sessions import views
from nca.sessions.access import SessionAccess
from nca.sessions.database import Database, Row, size_of
from nca.sessions.views import SessionViews

_COLUMNS = {
    "sessions": "number, id, name, directory, model, title, is_pinned, created_at, updated_at, touched, head_view",
    "messages": "session, seq, at, role, body",
    "views": "session, number, parent, body",
    "summaries": "number, session, body",
    "compactions": "session, view, trigger, stages, tokens_before, tokens_after, kept_facts, total_facts, seconds,"
    " cost, at",
    "usage": "session, seq, view, model, at, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,"
    " reasoning_tokens, cost",
    "partials": "session, body",
}
_KEYED = {"pins": "session, seq", "learned": "model, ratio, window_tokens, samples, at"}
"""Tables without a rowid, which are read from one end only."""

_FOLDER = ".recovery-"
_SESSION_PLACES = ", ".join("?" * 11)
_KINDS, _KEPT = "kinds", "kept"
"""Each session's kind; what each compaction kept. Read separately, because files of older schemas have no such columns.
"""


class Recovered(NamedTuple):
    sessions: int
    messages: int

    def __str__(self) -> str:
        if not self.sessions:
            return "no sessions"
        return f"{self.sessions} session{'s' * (self.sessions != 1)} with {self.messages} messages"


def recover_readable(damaged: Path, target: Database) -> Recovered:
    """Copy what is readable into `target`. Raises StoreError if `target` cannot be written."""
    if size_of(damaged) == 0:
        return Recovered(0, 0)
    for left in damaged.parent.glob(f"{_FOLDER}*"):  # left by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    with faults.explained(target.path), tempfile.TemporaryDirectory(dir=damaged.parent, prefix=_FOLDER) as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(damaged, copy)
        with suppress(FileNotFoundError):
            shutil.copyfile(damaged.with_name(damaged.name + "-wal"), copy.with_name("copy.db-wal"))
        tables = _read_tables(copy)
    return _Rebuild(tables, target).run()


def _read_tables(path: Path) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {}
    try:
        connection = apsw.Connection(str(path))
    except apsw.Error:
        return tables
    try:
        for table, columns in _COLUMNS.items():
            found = dict(_until_damage(connection, f"SELECT rowid, {columns} FROM {table} ORDER BY rowid"))  # noqa: S608
            found |= dict(_until_damage(connection, f"SELECT rowid, {columns} FROM {table} ORDER BY rowid DESC"))  # noqa: S608
            tables[table] = [found[rowid] for rowid in sorted(found)]
        for table, columns in _KEYED.items():
            tables[table] = [row for _, row in _until_damage(connection, f"SELECT 0, {columns} FROM {table}")]  # noqa: S608
        tables[_KINDS] = [row for _, row in _until_damage(connection, "SELECT 0, number, kind FROM sessions")]
        tables[_KEPT] = [row for _, row in _until_damage(connection, "SELECT 0, session, view, kept FROM compactions")]
    finally:
        with suppress(apsw.Error):
            connection.close()
    return tables


def _until_damage(connection: apsw.Connection, sql: str) -> Iterator[tuple[int, Row]]:
    try:
        for rowid, *row in connection.execute(sql):
            yield rowid, tuple(row)
    except (apsw.Error, UnicodeDecodeError):
        return


class _Rebuild:
    """Writes the recovered rows into a new database, one session at a time."""

    def __init__(self, tables: dict[str, list[Row]], target: Database) -> None:
        self._tables = tables
        self._target = target

    def run(self) -> Recovered:
        known = {row[0]: row for row in self._of("sessions")}
        lost = {row[0] for row in self._of("messages")} - known.keys()
        known |= {number: _unknown_session(number) for number in lost}
        sessions = messages = 0
        for row in sorted(known.values(), key=lambda row: row[9]):
            with suppress(StoreError):  # skip a session whose rows contradict each other
                messages += self._session(row)
                sessions += 1
        with suppress(StoreError), self._target.transaction() as connection:
            connection.executemany("INSERT INTO learned VALUES (?, ?, ?, ?, ?)", self._of("learned"))
        return Recovered(sessions, messages)

    def _of(self, table: str, session: int | None = None, place: int = 0) -> list[Row]:
        rows = self._tables.get(table, [])
        return rows if session is None else [row for row in rows if row[place] == session]

    def _session(self, row: Row) -> int:
        number, head_view = row[0], row[10]
        log = sorted((message for message in self._of("messages", number) if _is_whole(message)), key=lambda m: m[1])
        is_gapless = all(message[1] == place for place, message in enumerate(log, 1))
        with self._target.transaction() as connection:
            connection.execute(
                f"INSERT INTO sessions ({_COLUMNS['sessions']}) VALUES ({_SESSION_PLACES})",  # noqa: S608
                (*row[:10], 0),
            )
            for _, kind in self._of(_KINDS, number):
                connection.execute("UPDATE sessions SET kind = ? WHERE number = ?", (kind, number))
            connection.executemany(
                "INSERT INTO messages (session, seq, at, role, body) VALUES (?, ?, ?, ?, ?)",
                [(number, place, *message[2:]) for place, message in enumerate(log, 1)],
            )
            if not (is_gapless and self._views(connection, number, head_view, len(log))):
                views.create_first(connection, number)
            connection.executemany("INSERT INTO partials VALUES (?, ?)", self._of("partials", number))
        return len(log)

    def _views(self, connection: apsw.Connection, number: int, head_view: int, head: int) -> bool:
        """Write everything that refers to views, or nothing. Returns whether it was written."""
        try:
            with connection:
                connection.executemany("INSERT INTO views VALUES (?, ?, ?, ?)", self._of("views", number))
                connection.executemany(
                    "INSERT INTO summaries (number, session, body) VALUES (?, ?, ?)", self._of("summaries", number, 1)
                )
                for table in ("compactions", "usage", "pins"):
                    columns = (_COLUMNS | _KEYED)[table]
                    places = ", ".join("?" * len(columns.split(",")))
                    connection.executemany(
                        f"INSERT INTO {table} ({columns}) VALUES ({places})",  # noqa: S608
                        self._of(table, number),
                    )
                for _, view, kept in self._of(_KEPT, number):
                    update = "UPDATE compactions SET kept = ? WHERE session = ? AND view = ?"
                    connection.execute(update, (kept, number, view))
                connection.execute("UPDATE sessions SET head_view = ? WHERE number = ?", (head_view, number))
                SessionViews(SessionAccess(Database(connection, None), number)).check(head)
        except (apsw.Error, StoreError):
            return False
        return True


def _unknown_session(number: int) -> Row:
    return (number, f"saved{number:03}", "recovered", "", "", "", 0, 0.0, 0.0, number, 0)


def _is_whole(message: Row) -> bool:
    try:
        msgspec.json.decode(message[4], type=Message)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True
