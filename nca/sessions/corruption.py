"""Recover what is readable from a corrupt database into a new one.

SQLite never opens the corrupt file, because it would replay its log into it. The rows are read page by page, each known
by the types of its values. A session with all its messages keeps its views. A session with a gap keeps the remaining
messages in order and shows all of them.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from nca.errors import StoreDamaged, StoreError
from nca.sessions import store_errors as faults
from nca.sessions import view_rows
from nca.sessions.database import Database, Row, log_of, size_of
from nca.sessions.encoding import decode_message, upgraded
from nca.sessions.file_header import HEADER_BYTES, page_bytes
from nca.sessions.frames import read_frames
from nca.sessions.pages import Pages, Record

Rows = dict[str, list[Row]]
"""By table."""

_LASTING = {"messages": 1, "views": 0, "summaries": 1, "compactions": 0, "usage": 1}
"""Tables whose rows never change, and their session's column. The last column, or a body, tells no two rows apart."""
_BODY = 5
"""The column of a message's body."""
_SESSIONS, _WITHOUT_ROWID = "sessions", ("pins", "learned")
_STRAYS = "strays"
_NO_SESSION = 0
_INDEX_COLUMNS = 2
"""A BLOB where a text should be is a damaged text, but the full-text index has rows of a key and a BLOB."""
_TYPES: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "REAL": (float, int), "TEXT": (str,)}


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
    tables = [_Table.of(name, target) for name in (_SESSIONS, *_LASTING, "partials", *_WITHOUT_ROWID)]
    usual = target.connection.pragma("page_size")
    with faults.explained(target.path):
        with damaged.open("rb") as file:
            own = page_bytes(file.read(HEADER_BYTES))
        readings = [_read(damaged, size, tables) for size in {own or usual, usual}]
    return _Rebuild(max(readings, key=lambda rows: len(rows["messages"])), tables, target).run()


class _Table(NamedTuple):
    """What a row of a table looks like. The types include None where it may stand."""

    name: str
    columns: tuple[str, ...]
    types: tuple[tuple[type, ...], ...]
    defaults: Row
    root: int
    is_keyed: bool
    """Whether the first column is the rowid, which is not stored as a value."""

    @classmethod
    def of(cls, name: str, sound: Database) -> _Table:
        [(root,)] = sound.rows("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,))
        columns = sound.rows('SELECT name, type, "notnull" OR pk, dflt_value, pk FROM pragma_table_info(?)', (name,))
        [defaults] = sound.rows(f"SELECT {', '.join(column[3] or 'NULL' for column in columns)}")
        return cls(
            name,
            tuple(column[0] for column in columns),
            tuple(_TYPES[column[1]] + (() if column[2] else (type(None),)) for column in columns),
            defaults,
            root,
            columns[0][1] == "INTEGER" and [column[4] for column in columns if column[4]] == [1],
        )

    def row(self, record: Record) -> Row | None:
        """The row that a record is, if it is one of this table. An older schema had fewer columns at the end."""
        values = record.values
        if len(values) > len(self.columns) or (self.is_keyed and values[:1] != (None,)):
            return None
        if len(values) > _INDEX_COLUMNS:
            values = tuple(value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values)
        row = (*((record.rowid,) if self.is_keyed else ()), *values[self.is_keyed :], *self.defaults[len(values) :])
        return row if all(isinstance(value, kinds) for value, kinds in zip(row, self.types, strict=True)) else None


def _read(damaged: Path, size: int, tables: list[_Table]) -> Rows:
    frames = read_frames(log_of(damaged), size)
    with damaged.open("rb") as file:
        newest = _rows_of(Pages(file, size, frames.pages), tables)
        if not frames.is_damaged:
            return newest
        checked = _rows_of(Pages(file, size, frames.pages[: frames.checked]), tables)
    # What passed the log's checksums comes first; behind it, what was written later.
    for name in (_SESSIONS, *_LASTING):
        end = _BODY if name == "messages" else -1
        known = {row[:end] for row in checked[name]}
        newest[name] = checked[name] + [row for row in newest[name] if row[:end] not in known]
    return newest


def _rows_of(pages: Pages, tables: list[_Table]) -> Rows:
    live: defaultdict[str, list[Row]] = defaultdict(list)
    freed: defaultdict[str, list[Row]] = defaultdict(list)
    roots = {table.name: table.root for table in tables}
    free_pages = pages.freed()
    for number, records in pages.leaves():
        found = freed if number in free_pages else live
        for record in records:
            match record.values:
                case ("table", str(name), _, int(root), _):
                    roots[name] = root
            for table in tables:
                if row := table.row(record):
                    found[table.name].append(row)
                    break
            else:
                found[_STRAYS] += _stray(record)
    # A free page has rows of deleted sessions, or damage names a page that is in use.
    known = {row[0] for row in live[_SESSIONS]} | {row[1] for row in live["messages"]}
    for name, column in ((_SESSIONS, 0), *_LASTING.items()):
        live[name] += [row for row in freed[name] if row[column] in known]
    for table in tables:
        if table.name in _WITHOUT_ROWID:
            live[table.name] = [row for record in pages.index(roots[table.name]) if (row := table.row(record))]
    return {name: list(dict.fromkeys(rows)) for name, rows in live.items()}


def _stray(record: Record) -> list[Row]:
    """The message that can be read although what stands beside it cannot. Nobody knows of which session it is."""
    match record.values:
        case (_, _, _, _, _, str() | bytes() as body, *_):
            text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
            with suppress(StoreDamaged):
                return [(record.rowid, _NO_SESSION, 0, 0.0, decode_message(text, "a message").role, text, None)]
    return []


class _Rebuild:
    """Writes the recovered rows into a new database, one session at a time."""

    def __init__(self, rows: Rows, tables: list[_Table], target: Database) -> None:
        bodies = {row[_BODY] for row in rows["messages"]}
        strays = [row for row in rows.get(_STRAYS, []) if row[_BODY] not in bodies]
        self._rows = rows | {"messages": rows["messages"] + strays}
        self._tables = {table.name: table for table in tables}
        self._target = target

    def run(self) -> Recovered:
        # Of two versions of one session the later one counts.
        known = {row[0]: row for row in sorted(self._of(_SESSIONS), key=lambda row: row[9])}
        lost = {row[1] for row in self._of("messages")} - known.keys()
        known |= {number: self._unknown_session(number) for number in lost}
        sessions = messages = 0
        for row in sorted(known.values(), key=lambda row: row[9]):
            # Under a name of its own if what is known of it contradicts another session.
            for described in (row, self._unknown_session(row[0])):
                with suppress(StoreError):
                    messages += self._session(described)
                    sessions += 1
                    break
        with suppress(StoreError), self._target.transaction() as connection:
            self._insert(connection, "learned", self._of("learned"))
        return Recovered(sessions, messages)

    def _of(self, table: str, session: int | None = None) -> list[Row]:
        rows = self._rows.get(table, [])
        place = _LASTING.get(table, 0)
        return rows if session is None else [row for row in rows if row[place] == session]

    def _session(self, row: Row) -> int:
        number, head_view = row[0], row[10]
        log = sorted(self._of("messages", number), key=lambda message: message[2])
        is_gapless = all(message[2] == place for place, message in enumerate(log, 1))
        with self._target.transaction() as connection:
            self._insert(connection, _SESSIONS, [(*row[:10], 0, *row[11:])])
            messages = [
                (None, number, place, *message[3:_BODY], upgraded(message[_BODY]), *message[_BODY + 1 :])
                for place, message in enumerate(log, 1)
            ]
            self._insert(connection, "messages", messages)
            view_rows.create_first(connection, number)
            if is_gapless:
                self._views(connection, number, head_view, len(log))
            self._insert(connection, "partials", self._of("partials", number))
        return len(log)

    def _views(self, connection: apsw.Connection, number: int, head_view: int, head: int) -> None:
        """Write the views, and what refers to them, as far as it refers to something that is there."""
        kept = {0}
        for view in sorted(self._of("views", number), key=lambda row: row[1]):
            if view[2] in kept and view[1] not in kept:
                kept.add(view[1])
                self._insert(connection, "views", [view])
        records = {row[1]: row for row in self._of("compactions", number) if row[1] in kept - {0}}
        self._insert(connection, "summaries", self._of("summaries", number))
        self._insert(connection, "compactions", list(records.values()))
        usage = [(None, *row[1:]) for row in self._of("usage", number) if row[3] in kept]
        self._insert(connection, "usage", usage)
        self._insert(connection, "pins", [row for row in self._of("pins", number) if 1 <= row[1] <= head])
        head_view = max(view for view in kept if view <= max(0, head_view))
        connection.execute("UPDATE sessions SET head_view = ? WHERE number = ?", (head_view, number))

    def _insert(self, connection: apsw.Connection, table: str, rows: list[Row]) -> None:
        """Of two rows with one key, which damage can make, the first stays."""
        columns = self._tables[table].columns
        places = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)  # noqa: S608

    def _unknown_session(self, number: int) -> Row:
        known = (number, f"saved{number:03}", "recovered", "", "", "", 0, 0.0, 0.0, number)
        return (*known, *self._tables[_SESSIONS].defaults[len(known) :])
