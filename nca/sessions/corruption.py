"""Find out whether a database is whole, and recover the readable part of a corrupt one into a new one.

SQLite never opens the corrupt file, because it would replay its log into it. The rows are read page by page, each known
by the types of its values. A session with all its messages keeps its views. A session with a gap keeps the remaining
messages in order and shows all of them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from nca.errors import StoreDamaged, StoreError
from nca.humanize import counted
from nca.messages import Message
from nca.sessions import store_errors as faults
from nca.sessions.database import Database, connect_for_reading
from nca.sessions.encoding import encode, upgraded
from nca.sessions.mended import ROLES, is_sound, mended, unreadable
from nca.sessions.pages import Pages, Record
from nca.sessions.paths import HEADER_BYTES, log_of, page_bytes, size_of
from nca.sessions.places import Found, Log, Logs
from nca.sessions.rows import read_frames, text_runs
from nca.sessions.sql import Row
from nca.sessions.view_rows import FIRST

_LASTING = {"messages": 1, "views": 0, "summaries": 1, "compactions": 0, "usage": 1}
"""Tables whose rows never change, and their session's column. The last column, or a body, tells no two rows apart."""
_BODY = 5
"""The column of a message's body."""
_SESSIONS, _PROGRAM_VIEWS, _WITHOUT_ROWID = "sessions", "program_views", ("pins", "learned")
_NUMBERS = "sqlite_autoindex_messages_1"
"""The index of messages by session and number: it names messages that are lost."""
_MESSAGE = '"role":"'
"""In the text of every message."""
_NO_SESSION = 0
_ENDS_CHARS = 16
_INDEX_COLUMNS = 2
"""A BLOB where a text should be is a damaged text, but the full-text index has rows of a key and a BLOB."""
_TYPES: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "REAL": (float, int), "TEXT": (str,)}


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


class Recovered(NamedTuple):
    """The readable part of a damaged database. `mended`: messages that lost a part."""

    sessions: int
    messages: int
    lost: int = 0
    mended: int = 0

    def __str__(self) -> str:
        if not self.sessions:
            return "no sessions could be read"
        read = f"{counted(self.sessions, 'session')} with {counted(self.messages, 'message')} could be read"
        hurt = [f"{counted(self.mended, 'message')} only in part"] if self.mended else []
        hurt += [f"{counted(self.lost, 'message')} {'is' if self.lost == 1 else 'are'} lost"] if self.lost else []
        return ", ".join([read, *hurt])


def recover_readable(damaged: Path, target: Database) -> Recovered:
    """Copy the readable part into `target`. Raises StoreError if `target` cannot be written."""
    if size_of(damaged) == 0 and size_of(log_of(damaged)) == 0:
        return Recovered(0, 0)
    tables = [_Table.of(name, target) for name in (_SESSIONS, *_LASTING, "partials", _PROGRAM_VIEWS, *_WITHOUT_ROWID)]
    roots: dict[str, int] = dict(target.rows("SELECT name, rootpage FROM sqlite_schema"))
    usual = target.connection.pragma("page_size")
    with faults.explained(target.path):
        with damaged.open("rb") as file:
            own = page_bytes(file.read(HEADER_BYTES))
        readings = [_Reading(damaged, size, tables, roots) for size in {own or usual, usual}]
    return _Rebuild(max(readings, key=lambda reading: len(reading.live["messages"])), tables, target).run()


class _Table(NamedTuple):
    """The form of a table's rows. The types include None if it is allowed."""

    name: str
    columns: tuple[str, ...]
    types: tuple[tuple[type, ...], ...]
    defaults: Row
    is_keyed: bool
    """Whether the first column is the rowid, which is not stored as a value."""

    @classmethod
    def of(cls, name: str, sound: Database) -> _Table:
        columns = sound.rows('SELECT name, type, "notnull" OR pk, dflt_value, pk FROM pragma_table_info(?)', (name,))
        [defaults] = sound.rows(f"SELECT {', '.join(column[3] or 'NULL' for column in columns)}")
        return cls(
            name,
            tuple(column[0] for column in columns),
            tuple(_TYPES[column[1]] + (() if column[2] else (type(None),)) for column in columns),
            defaults,
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


class _Reading:
    """The rows of a damaged database by table: those in use, and copies that may have been deleted.

    roots    the first page of each table and index, as it is in a new database
    numbers  of the messages that each session had, as far as their index can be read
    """

    def __init__(self, damaged: Path, size: int, tables: list[_Table], roots: dict[str, int]) -> None:
        self.live = defaultdict[str, list[Row]](list)
        self.doubtful = defaultdict[str, list[Row]](list)
        self.fragments: list[tuple[int, str]] = []
        self._tables = tables
        roots = dict(roots)
        self.numbers = defaultdict[int, set[int]](set)
        frames = read_frames(log_of(damaged), size)
        with damaged.open("rb") as file:
            pages = Pages(file, size, frames.committed, frames.loose, self._is_known)
            for record, is_live in pages.records():
                match record.values:
                    case ("table" | "index", str(name), _, int(root), _) if is_live:
                        roots[name] = root
                    case _:
                        self._take(record, self.live if is_live else self.doubtful)
            for name in _WITHOUT_ROWID:
                table = next(table for table in tables if table.name == name)
                self.live[name] = [row for record in pages.index(roots[name]) if (row := table.row(record))]
            for record in pages.index(roots[_NUMBERS]):
                match record.values:
                    case (int(session), int(seq), int(id)) if 0 < seq <= id:
                        self.numbers[session].add(seq)
            self.fragments += pages.fragments()
        for rows in (*self.live.values(), *self.doubtful.values()):
            rows[:] = dict.fromkeys(rows)

    def _is_known(self, record: Record) -> bool:
        return any(table.row(record) for table in self._tables)

    def _take(self, record: Record, found: dict[str, list[Row]]) -> None:
        if len(record.values) <= _INDEX_COLUMNS and isinstance(record.values[-1], bytes):
            return  # a row of the full-text index; there are many
        for table in self._tables:
            row = table.row(record)
            if row and (table.name != "messages" or row[_BODY - 1] in ROLES):
                found[table.name].append(row)
                return
        if found is self.live and len(record.values) > _BODY:
            # It is readable although its neighbours are not. Its id may tell where it belongs.
            values = (value.encode() if isinstance(value, str) else value for value in record.values)
            content = b"".join(value for value in values if isinstance(value, bytes))
            self.fragments += [(record.rowid, text) for text in text_runs(content)]


class _Rebuild:
    """Writes the recovered rows into a new database, one session at a time."""

    def __init__(self, reading: _Reading, tables: list[_Table], target: Database) -> None:
        self._live, self._doubtful = reading.live, reading.doubtful
        self._tables = {table.name: table for table in tables}
        self._target = target
        # Of two versions of one session the later one counts.
        self._sessions = {row[0]: row for row in sorted(self._live[_SESSIONS], key=lambda row: row[9])}
        live = _versions(self._live["messages"], self._doubtful["messages"])
        schema = "".join(str(sql) for (sql,) in target.rows("SELECT sql FROM sqlite_schema"))
        live += _unknown(reading.fragments, live, schema)
        self._logs = Logs(self._sessions, live, map(Found._make, self._doubtful["messages"]))
        if texts := dict.fromkeys(stray.body for stray in self._logs.strays):
            strays = [Found(seq, _NO_SESSION, seq, 0.0, "", text, None) for seq, text in enumerate(texts, 1)]
            self._logs[_NO_SESSION] = Log(strays)
        self._lost = self._mended = 0
        for number, seqs in reading.numbers.items():
            if number in self._logs:
                self._logs[number].extend(seqs)
            else:
                self._lost += len(seqs)
        self._by_session = {name: self._grouped(name) for name in (*_LASTING, "partials", "pins")}

    def _grouped(self, table: str) -> dict[int, list[Row]]:
        place = _LASTING.get(table, 0)
        live, doubtful = defaultdict[int, list[Row]](list), defaultdict[int, list[Row]](list)
        for rows, found in ((self._live[table], live), (self._doubtful[table], doubtful)):
            for row in rows:
                found[row[place]].append(row)
        return doubtful | live

    def run(self) -> Recovered:
        for row in self._doubtful[_SESSIONS]:
            if row[0] in self._logs:
                self._sessions.setdefault(row[0], row)
        known = self._sessions | {
            number: self._unknown_session(number) for number in self._logs if number not in self._sessions
        }
        sessions = messages = 0
        lost = self._lost
        for row in sorted(known.values(), key=lambda row: row[9]):
            # Under a name of its own if its facts contradict another session.
            for described in (row, self._unknown_session(row[0])):
                with suppress(StoreError):
                    self._session(described)
                    sessions += 1
                    messages += len(self._logs[row[0]].by_seq)
                    lost += self._logs[row[0]].lost
                    break
            else:
                lost += self._logs[row[0]].head
        with suppress(StoreError), self._target.transaction() as connection:
            for name in ("learned", _PROGRAM_VIEWS):
                self._insert(connection, name, self._live[name])
        return Recovered(sessions, messages, lost, self._mended)

    def _of(self, table: str, session: int) -> list[Row]:
        """The rows of a session; those that may have been deleted only if there is none that is in use."""
        return self._by_session[table].get(session, [])

    def _session(self, row: Row) -> None:
        number, head_view = row[0], row[10]
        log = self._logs[number]
        with self._target.transaction() as connection:
            self._insert(connection, _SESSIONS, [(*row[:10], 0, *row[11:])])
            self._insert(connection, "messages", [self._message(number, seq, log) for seq in range(1, log.head + 1)])
            self._insert(connection, "views", [(number, 0, None, encode(FIRST))])
            self._views(connection, number, head_view, log.head)
            self._insert(connection, "partials", self._of("partials", number))

    def _message(self, session: int, seq: int, log: Log) -> Row:
        row = log.by_seq.get(seq)
        if row is None:
            near = min(log.by_seq, key=lambda found: (found < seq, abs(found - seq)), default=0)
            at = log.by_seq[near].at if near else 0.0
            return (None, session, seq, at, *_stored(unreadable("", f"[message {seq} is lost]")), None)
        body, role, tokens = upgraded(row.body), row.role, row.tokens
        if not is_sound(body):
            found = mended(body, role) or unreadable(role, f"[message {seq} is damaged; {len(body):,} bytes]")
            role, body = _stored(found)
            tokens = None
            self._mended += 1
        return (None, session, seq, row.at, role, body, tokens)

    def _views(self, connection: apsw.Connection, number: int, head_view: int, head: int) -> None:
        """Write the views, and the rows that refer to existing ones."""
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


def _versions(live: list[Row], doubtful: list[Row]) -> list[Found]:
    """The messages in use, each once. Of one that can be read only in part, a copy is taken if that can be read."""
    copies = {row[1:4]: row[_BODY] for row in doubtful if is_sound(upgraded(row[_BODY]))}
    found: dict[Row, Found] = {}
    anonymous: dict[Row, Found] = {}
    for one in map(Found._make, live):
        known, key = (found, one[:4]) if one.id else (anonymous, one[1:4])
        if key not in known or not is_sound(upgraded(known[key].body)):
            known[key] = one if key not in known or is_sound(upgraded(one.body)) else known[key]
    for key, one in found.items():
        other = anonymous.pop(key[1:], None)  # session, number and time are the same
        if not is_sound(upgraded(one.body)):
            better = other.body if other else copies.get(key[1:], one.body)
            found[key] = one._replace(body=better)
    return [*found.values(), *anonymous.values()]


def _unknown(fragments: list[tuple[int, str]], messages: list[Found], schema: str) -> Iterator[Found]:
    """The texts that are neither in the messages nor of the schema, each once; as messages where they hold one."""
    known = "\n".join([schema, *(row.body for row in messages)]) if fragments else ""
    taken = set[int]()
    for rowid, found in sorted(fragments, key=lambda fragment: (-fragment[0], -len(fragment[1]))):
        # A message begins with its body: the bytes before it are its row's other columns.
        begin = found.find(_MESSAGE)
        text = "{" + found[begin:] if begin >= 0 else found
        # At its ends, neighbouring bytes may look like text; a damaged row may leave out more.
        ends = len(text) // 4 if rowid in taken else min(_ENDS_CHARS, len(text) // 6)
        if text[ends : len(text) - ends] not in known:
            known += text
            taken |= {rowid} - {0}
            yield Found(rowid, _NO_SESSION, 0, 0.0, "", text, None)


def _stored(message: Message) -> tuple[str, str]:
    return message.role, encode(message)
