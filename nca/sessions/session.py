"""One open session: the log, the view in force, and what belongs to them. All of it durable when a call returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Literal

import msgspec

from nca.context.view import Summary, View
from nca.errors import StoreError
from nca.messages import Entry, Message, Usage, clean_text
from nca.sessions import log, usage, views
from nca.sessions import results as hits
from nca.sessions.database import Database, Row
from nca.sessions.log import Partial
from nca.sessions.ranking import Weights
from nca.sessions.results import Hit
from nca.sessions.usage import UsageRow
from nca.sessions.views import CompactionRecord

_NAME_CHARS = 200

Kind = Literal["chat", "run"]
"""What made a session: a chat, in which a person goes on, or `nca run`, which asks once."""


class SessionInfo(msgspec.Struct, frozen=True):
    """A session in a list. Times are seconds since the epoch; `title` is what the person said first, on one line."""

    id: str
    name: str
    directory: str
    model: str
    created_at: float
    updated_at: float
    messages: int
    is_pinned: bool
    title: str
    kind: Kind = "chat"


INFO = (
    "SELECT id, name, directory, model, created_at, updated_at,"
    " (SELECT coalesce(max(seq), 0) FROM messages WHERE session = number) AS messages, is_pinned, title, kind"
    " FROM sessions"
)


def as_info(row: Row) -> SessionInfo:
    values = dict(zip(SessionInfo.__struct_fields__, row, strict=True))
    return SessionInfo(**values | {"is_pinned": bool(values["is_pinned"])})


def as_name(text: str) -> str:
    """A session's name as it is stored: one line."""
    return " ".join(clean_text(text).split())[:_NAME_CHARS]


class Session:
    """Made by `Store.create` and `Store.open_session`. `recovered` is what opening it had to add to the log."""

    def __init__(self, database: Database, number: int, *, is_read_only: bool, on_close: Callable[[], None]) -> None:
        self._database = database
        self._number = number
        self._on_close: Callable[[], None] | None = on_close
        self.is_read_only = is_read_only
        self.recovered: tuple[Entry, ...] = ()
        self._totals: Usage | None = None

    @property
    def info(self) -> SessionInfo:
        row = self._database.row(f"{INFO} WHERE number = ?", (self._number,))
        if row is None:
            raise StoreError("the session is no longer in the store")
        return as_info(row)

    # The log

    @property
    def head(self) -> int:
        """The newest seq; 0 for an empty log."""
        return log.length(self._database, self._number)

    def entries(self, first: int = 1, last: int | None = None) -> list[Entry]:
        """The messages first … last in order; without a last one, all from `first` on."""
        return log.entries(self._database, self._number, first, last)

    def said(self, last: int) -> tuple[int, int]:
        """How many of the messages 1 … last a person wrote, and the seq of the newest of them; 0 for none."""
        return log.said(self._database, self._number, last)

    def todo_results(self) -> list[int]:
        """The seqs of what may be results of the todo tool, newest first."""
        return log.todo_results(self._database, self._number)

    def append(self, messages: Sequence[Message]) -> list[Entry]:
        """All or none of them; the partial answer goes in the same transaction."""
        return log.append(self._writable(), self._number, messages)

    def save_partial(self, text: str, reasoning: str = "") -> None:
        """Keep the answer so far, in place of what was kept of it before."""
        log.save_partial(self._writable(), self._number, text, reasoning)

    def partial(self) -> Partial | None:
        return log.partial(self._database, self._number)

    def recover(self) -> list[Entry]:
        """Close what a killed process left open (`Store.open_session` does it); gives what was added."""
        return log.recover(self._writable(), self._number)

    def search(self, question: str, limit: int = 10, *, weights: Weights | None = None) -> list[Hit]:
        """The messages of the whole log that answer best, best first. Any text is a question."""
        return hits.find(self._database, question, self._number, limit, weights=weights)

    def found_text(self, seq: int) -> str:
        """All of a message that search looks at, a cut tool output in whole; empty where there is no such message."""
        return hits.found_text(self._database, self._number, seq)

    # The view

    @property
    def view_id(self) -> int:
        """The number of the view in force; 0 is the one that shows the whole log."""
        return views.head_view(self._database, self._number)

    def view(self, number: int | None = None) -> View:
        """The view in force, or an earlier one by its number."""
        return views.load(self._database, self._number, self.view_id if number is None else number)

    def commit_view(
        self, view: View, record: CompactionRecord, *, expected_head: int | None = None
    ) -> CompactionRecord:
        """Put `view` in force, in one transaction. `expected_head`: the last seq that its planner knew.

        Messages appended since are in the view's tail. Raises StoreError, and nothing changed, where view and log do
        not fit, or where `record.view_before` is given and another view is in force.
        """
        return views.commit(self._writable(), self._number, view, record, expected_head)

    def undo(self) -> CompactionRecord | None:
        """Put the view before the last compaction in force; None where there is none. Later messages stay."""
        return views.undo(self._writable(), self._number)

    def redo(self) -> CompactionRecord | None:
        return views.redo(self._writable(), self._number)

    @property
    def can_undo(self) -> bool:
        return self.view_id > 0

    @property
    def can_redo(self) -> bool:
        return views.redoable(self._database, self._number) is not None

    def standing(self) -> tuple[int, float | None]:
        """What the compactions that stand saved in tokens, and cost in US dollars (None: no cost is known)."""
        return views.standing(self._database, self._number)

    def compactions(self) -> list[CompactionRecord]:
        """All that ever were, oldest first, undone ones too."""
        return views.compactions(self._database, self._number)

    def summaries(self) -> list[Summary]:
        """All that ever were, oldest first, those of undone compactions too."""
        return list(views.summaries(self._database, self._number).values())

    def pins(self) -> frozenset[int]:
        rows = self._database.rows("SELECT seq FROM pins WHERE session = ?", (self._number,))
        return frozenset(seq for (seq,) in rows)

    def pin(self, seq: int) -> None:
        """Raises StoreError where the log has no such message."""
        with self._writable().transaction() as connection:
            if not 1 <= seq <= log.head(connection, self._number):
                raise StoreError(f"there is no message {seq} in this session")
            connection.execute("INSERT INTO pins VALUES (?, ?) ON CONFLICT DO NOTHING", (self._number, seq))

    def unpin(self, seq: int) -> None:
        with self._writable().transaction() as connection:
            connection.execute("DELETE FROM pins WHERE session = ? AND seq = ?", (self._number, seq))

    # What it cost

    def record_usage(self, seq: int, model: str, used: Usage, view_id: int) -> None:
        """What the provider reported for one request, sent with the view `view_id` when the log ended at `seq`."""
        usage.record(self._writable(), self._number, seq, model, used, view_id)
        if self._totals is not None:
            self._totals = usage.added(self._totals, used)

    def usage(self) -> list[UsageRow]:
        return usage.rows(self._database, self._number)

    def reports(self, newest: int) -> list[UsageRow]:
        """The newest so many of `usage` that are about requests of a view, oldest first."""
        return usage.reports(self._database, self._number, newest)

    def totals(self) -> Usage:
        """The sums over the whole session. Who writes it adds to what was summed up once: nobody else does."""
        if self._totals is not None:
            return self._totals
        totals = usage.totals(self._database, self._number)
        if not self.is_read_only:
            self._totals = totals
        return totals

    # The session itself

    def rename(self, name: str) -> None:
        """Any text, made one line; an empty one takes the name away."""
        self._update("name", as_name(name))

    def set_model(self, model: str) -> None:
        self._update("model", clean_text(model))

    def become_chat(self) -> None:
        """A person goes on with it in a chat, whatever made it; a reader changes nothing."""
        if not self.is_read_only and self.info.kind != "chat":
            self._update("kind", "chat")

    def set_pinned(self, is_pinned: bool) -> None:
        """A pinned session is never removed by age or number."""
        self._update("is_pinned", int(is_pinned))

    def close(self) -> None:
        """Let go of the session's lock; the object is of no use afterwards."""
        if self._on_close is not None:
            on_close, self._on_close = self._on_close, None
            on_close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def refuse_reader(self) -> None:
        """Raise StoreError where the session was opened for reading."""
        if self.is_read_only:
            raise StoreError(
                "this session is open for reading only",
                advice=f"`nca sessions fork {self.info.id}` makes a copy to go on in.",
            )

    def _writable(self) -> Database:
        if self._on_close is None:
            raise StoreError("this session is closed")
        self.refuse_reader()
        return self._database

    def _update(self, column: str, value: str | int) -> None:
        with self._writable().transaction() as connection:
            connection.execute(
                f"UPDATE sessions SET {column} = ?, updated_at = ? WHERE number = ?",  # noqa: S608
                (value, time.time(), self._number),
            )
