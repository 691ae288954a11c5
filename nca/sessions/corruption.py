"""Recover what is readable from a corrupt database into a new one.

The corrupt file itself is never opened, because SQLite would replay its log into it. A copy with a sound header is read
table by table, from both ends up to the damage, and between damaged pages. A session with all its messages keeps its
views. A session with a gap keeps the remaining messages in order and shows all of them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from nca.errors import StoreDamaged, StoreError
from nca.sessions import store_errors as faults
from nca.sessions import views
from nca.sessions.database import Database, Row, mended_rows, size_of
from nca.sessions.encoding import decode_message
from nca.sessions.file_header import HEADER_BYTES, PAGE_SIZE, for_reading

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

Tables = dict[str, list[Row]]

_LEAST_ROW_BYTES = 16
"""No row takes less of a file, so no rowid is larger than the file's size by this."""
_MOST_STRETCHES = 20_000
"""Reads that one table is worth: with its first page gone each of them fails, at some 50 microseconds."""
_FOLDER = ".recovery-"
_SESSION_PLACES = ", ".join("?" * 11)
_NO_SESSION = 0
_TYPES: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "REAL": (float, int), "TEXT": (str,)}
_KINDS, _KEPT = "kinds", "kept"
_ADDED = {_KINDS: ("sessions", "number, kind"), _KEPT: ("compactions", "session, view, kept")}
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
        tables = _read_mended(copy, target.connection.serialize("main"))
    return _Rebuild(tables, target).run()


def _read_mended(copy: Path, sound: bytes) -> Tables:
    """What can be read behind the header of a sound store; if that is nothing, behind its whole first page."""
    with copy.open("rb") as file:
        own_size = file.read(HEADER_BYTES)[PAGE_SIZE]
    usual_size = sound[PAGE_SIZE]
    first_page = sound[HEADER_BYTES : int.from_bytes(usual_size)]
    tables: Tables = {}
    for page_size, rest in ((own_size, b""), (usual_size, b""), (usual_size, first_page)):
        with copy.open("r+b") as file:
            file.write(for_reading(sound, page_size) + rest)
        tables = _read_tables(copy)
        if tables.get("messages"):
            break
    return tables


def _read_tables(path: Path) -> Tables:
    tables: Tables = {}
    most_rows = path.stat().st_size // _LEAST_ROW_BYTES
    try:
        connection = apsw.Connection(str(path))
        # What cannot be read of the schema must not hide the rest.
        connection.pragma("writable_schema", "ON")
    except apsw.Error:
        return tables
    try:
        for table, columns in _COLUMNS.items():
            tables[table] = _rows_around_damage(connection, f"SELECT rowid, {columns} FROM {table}", most_rows)  # noqa: S608
        for table, columns in _KEYED.items():
            key = columns.partition(",")[0]
            up, _ = _until_damage(connection, f"SELECT {columns} FROM {table} ORDER BY {key}")  # noqa: S608
            down, _ = _until_damage(connection, f"SELECT {columns} FROM {table} ORDER BY {key} DESC")  # noqa: S608
            tables[table] = list(dict.fromkeys(up + down))
        for name, (table, columns) in _ADDED.items():
            tables[name], _ = _until_damage(connection, f"SELECT {columns} FROM {table}")  # noqa: S608
    finally:
        with suppress(apsw.Error):
            connection.close()
    return tables


def _rows_around_damage(connection: apsw.Connection, select: str, most_rows: int) -> list[Row]:
    """The rows that can be read, by rowid, which is their first column and is left out.

    Both ends are read up to the damage. What lies between is halved until a half can be read.
    """
    up, is_whole = _until_damage(connection, f"{select} ORDER BY rowid")
    down, _ = ([], True) if is_whole else _until_damage(connection, f"{select} ORDER BY rowid DESC")
    found = dict.fromkeys(up + down)
    stretches = deque() if is_whole else deque([(_after(up, 0), down[-1][0] - 1 if down else most_rows)])
    for _ in range(_MOST_STRETCHES):
        if not stretches:
            break
        first, last = stretches.popleft()
        read, is_whole = _until_damage(connection, f"{select} WHERE rowid BETWEEN {first} AND {last} ORDER BY rowid")
        found |= dict.fromkeys(read)
        first = _after(read, first - 1)
        if first < last and not is_whole:
            middle = (first + last) // 2
            stretches += ((first, middle), (middle + 1, last))
    # Damage can give one rowid to two rows.
    return [row[1:] for row in sorted(found, key=lambda row: row[0])]


def _after(rows: list[Row], before: int) -> int:
    """The rowid behind these rows, or behind `before`."""
    return max((int(row[0]) for row in rows), default=before) + 1


def _until_damage(connection: apsw.Connection, sql: str) -> tuple[list[Row], bool]:
    """The rows of a query as far as they can be read, and whether these are all."""
    rows: list[Row] = []
    try:
        for row in mended_rows(connection, sql):
            rows.append(row)  # what was read before an error counts
    except apsw.Error:
        return rows, False
    return rows, True


class _Rebuild:
    """Writes the recovered rows into a new database, one session at a time."""

    def __init__(self, tables: Tables, target: Database) -> None:
        self._tables = {table: _well_typed(table, rows, target) for table, rows in tables.items()}
        self._tables["messages"] = [*self._of("messages"), *_strays(tables.get("messages", []), self._of("messages"))]
        self._target = target

    def run(self) -> Recovered:
        known = {row[0]: row for row in self._of("sessions")}
        lost = {row[0] for row in self._of("messages")} - known.keys()
        known |= {number: _unknown_session(number) for number in lost}
        sessions = messages = 0
        for row in sorted(known.values(), key=lambda row: row[9]):
            # Under a name of its own if what is known of it contradicts another session.
            for described in (row, _unknown_session(row[0])):
                with suppress(StoreError):
                    messages += self._session(described)
                    sessions += 1
                    break
        with suppress(StoreError), self._target.transaction() as connection:
            connection.executemany("INSERT INTO learned VALUES (?, ?, ?, ?, ?)", self._of("learned"))
        return Recovered(sessions, messages)

    def _of(self, table: str, session: int | None = None, place: int = 0) -> list[Row]:
        rows = self._tables.get(table, [])
        return rows if session is None else [row for row in rows if row[place] == session]

    def _session(self, row: Row) -> int:
        number, head_view = row[0], row[10]
        log = sorted(self._of("messages", number), key=lambda message: message[1])
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
            views.create_first(connection, number)
            if is_gapless:
                self._views(connection, number, head_view, len(log))
            connection.executemany("INSERT INTO partials VALUES (?, ?)", self._of("partials", number))
        return len(log)

    def _views(self, connection: apsw.Connection, number: int, head_view: int, head: int) -> None:
        """Write the views, and what refers to them, as far as it refers to something that is there."""
        kept = {0}
        for view in sorted(self._of("views", number), key=lambda row: row[1]):
            if view[2] in kept and view[1] not in kept:
                kept.add(view[1])
                connection.execute("INSERT INTO views VALUES (?, ?, ?, ?)", view)
        records = {row[1]: row for row in self._of("compactions", number) if row[1] in kept - {0}}
        _insert(connection, "summaries", self._of("summaries", number, 1))
        _insert(connection, "compactions", list(records.values()))
        _insert(connection, "usage", [row for row in self._of("usage", number) if row[2] in kept])
        _insert(connection, "pins", [row for row in self._of("pins", number) if 1 <= row[1] <= head])
        for _, view, what in self._of(_KEPT, number):
            connection.execute("UPDATE compactions SET kept = ? WHERE session = ? AND view = ?", (what, number, view))
        head_view = max(view for view in kept if view <= max(0, head_view))
        connection.execute("UPDATE sessions SET head_view = ? WHERE number = ?", (head_view, number))


def _insert(connection: apsw.Connection, table: str, rows: list[Row]) -> None:
    columns = (_COLUMNS | _KEYED)[table]
    places = ", ".join("?" * len(columns.split(",")))
    connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", rows)  # noqa: S608


def _well_typed(table: str, rows: list[Row], target: Database) -> list[Row]:
    """The rows whose values are of their columns' types. Damage makes others, which cannot be written."""
    name, columns = _ADDED.get(table) or (table, (_COLUMNS | _KEYED)[table])
    declared = target.rows(f"PRAGMA table_info({name})")
    # The key of a row is never NULL, though only SQLite knows it.
    types = {
        name: _TYPES[kind] + (() if is_filled or key else (type(None),))
        for _, name, kind, is_filled, _, key in declared
    }
    wanted = [types[column] for column in columns.split(", ")]
    return [row for row in rows if all(isinstance(value, kind) for value, kind in zip(row, wanted, strict=True))]


def _strays(rows: list[Row], known: list[Row]) -> list[Row]:
    """Messages that can be read although what stands beside them cannot. Nobody knows of which session they are."""
    strays = []
    unknown = dict.fromkeys(rows).keys() - set(known)
    for place, (*_, body) in enumerate(row for row in rows if row in unknown):
        with suppress(StoreDamaged):
            strays.append((_NO_SESSION, place, 0.0, decode_message(body, "a message").role, body))
    return strays


def _unknown_session(number: int) -> Row:
    return (number, f"saved{number:03}", "recovered", "", "", "", 0, 0.0, 0.0, number, 0)
