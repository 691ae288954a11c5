"""Messages and views for several tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from nca.context.view import Marker, Stub, Summary, Verbatim, View
from nca.messages import Message, ToolCall
from nca.sessions import CompactionRecord, Session, Store
from nca.sessions.database import Database
from nca.sessions.view_rows import PIN, set_pins

T = TypeVar("T")

MANUAL = CompactionRecord(
    trigger="manual", stages=("summarize",), tokens_before=900, tokens_after=300, kept={"rules": (1, 2)}
)

SUMMARY = Summary("s1", ((1, 2),), "what is sent \0", prose="prose", made_by="m")
RICH_VIEW = View(
    (SUMMARY, Verbatim(3, 3), Stub(4, "[Tool result cleared]", "prune"), Marker("t1", ((5, 5), (6, 6)), "[truncated]")),
    7,
)


def said(*texts: str) -> list[Message]:
    """Turns about of a person and a model."""
    return [Message("assistant" if place % 2 else "user", text) for place, text in enumerate(texts)]


def calling(*ids: str) -> Message:
    return Message("assistant", tool_calls=tuple(ToolCall(id, "read_file", '{"path": "a.py"}') for id in ids))


def result(id: str, text: str = "done") -> Message:
    return Message("tool", text, tool_call_id=id, name="read_file")


def hiding(last: int, name: str = "s") -> View:
    """The first `last` messages behind one summary."""
    return View((Summary(name, ((1, last),), f"summary {name}"),), last + 1)


def filled(path: Path, *, sessions: int = 2, messages: int = 40) -> list[str]:
    """Make a store with sessions, close it, and give their ids, oldest first."""
    ids = []
    with Store.open(path) as store:
        for number in range(sessions):
            with store.create(directory="/work", model="m", name=f"number {number}") as session:
                session.log.append(said(*(f"{number}/{place} " + "word " * 40 for place in range(messages))))
                session.views.commit(hiding(4), MANUAL)
                ids.append(session.info.id)
    return ids


def sqlite_of(store: Store) -> Database:
    """The database of a store in SQLite."""
    assert isinstance(store._database, Database)
    return store._database


def once_read(database: Database, sql: str, action: Callable[[], T]) -> list[T]:
    """Do something, as another process may, when this one has just read a row with a statement that begins so.

    Returns what it gave: nothing as long as no such row was read.
    """
    given: list[T] = []

    def trace(cursor: apsw.Cursor, row: apsw.SQLiteValues) -> apsw.SQLiteValues:
        if not given and cursor.sql.startswith(sql):
            given.append(action())
        return row

    database.connection.set_row_trace(trace)
    return given


def pin(session: Session, *seqs: int) -> None:
    """Pinned messages without the change that pinned them, as sessions of earlier versions have them."""
    with session.transaction() as connection:
        set_pins(connection, session.number, seqs, is_pinned=True)


def change_pins(session: Session, *seqs: int, stage: str = PIN) -> None:
    """Pin messages as a person does: it is a change that can be undone. `stage`: UNPIN unpins them."""
    record = CompactionRecord(trigger="manual", stages=(stage,))
    session.views.commit(session.views.current(), record, pins=seqs)
