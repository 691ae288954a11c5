"""One open session: its log, views and usage, and its name, model and kind. Calls that write return when durable."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from nca.context.view import Range
from nca.errors import StoreError
from nca.messages import Entry, clean_text
from nca.sessions import results
from nca.sessions.access import SessionAccess
from nca.sessions.log import SessionLog
from nca.sessions.origin import Origin, as_origin
from nca.sessions.ranking import RankingWeights
from nca.sessions.results import SNIPPET_CHARS, Hit
from nca.sessions.rewinds import SessionRewinds
from nca.sessions.sql import Lease, Row, SessionDatabase
from nca.sessions.usage import SessionUsage
from nca.sessions.views import SessionViews

_NAME_CHARS = 200
_SECONDS_A_DAY = 86_400

Kind = Literal["chat", "run"]
"""What made a session: a chat, which a person continues, or `nca run`, which asks once."""


class SessionInfo(msgspec.Struct, frozen=True):
    """A session in a list. Times are seconds since the epoch; `title` begins the person's first message."""

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
    has_forks: bool = False
    """Whether another session was forked from it."""
    chosen_model: str = ""
    """The model that was chosen with /model in it, as typed (`openai/gpt-5:high`); "" if the settings chose it."""
    origin: Origin | None = None
    """Where it was imported from, if it is another agent's."""


INFO = (
    "SELECT id, name, directory, model, created_at, updated_at,"
    " (SELECT coalesce(max(seq), 0) FROM messages WHERE session = number) AS messages, is_pinned, title, kind,"
    " has_forks, chosen_model, origin FROM sessions"
)


def as_info(row: Row) -> SessionInfo:
    values = dict(zip(SessionInfo.__struct_fields__, row, strict=True))
    values |= {name: bool(values[name]) for name in ("is_pinned", "has_forks")}
    return SessionInfo(**values | {"origin": as_origin(values["origin"])})


def as_name(text: str) -> str:
    """A session's name as it is stored: one line."""
    return " ".join(clean_text(text).split())[:_NAME_CHARS]


def expired(rows: Sequence[tuple[str, float, bool]], retention_days: int, max_sessions: int) -> list[str]:
    """See `Store.expired`. rows: id, last use and whether it is kept in any case, most recently used first."""
    found: list[str] = []
    days: set[float] = set()
    newer = 0
    for session_id, updated_at, is_kept in rows:
        days.add(updated_at // _SECONDS_A_DAY)
        if is_kept:
            continue
        if 0 < retention_days < len(days) - 1 or 0 < max_sessions <= newer:
            found.append(session_id)
        newer += 1
    return found[::-1]


class Session(SessionAccess):
    """One open session, made by `Store.create` and `Store.open_session`.

    log        its messages
    views      what the model sees of them: compactions, undo, redo, pins
    rewinds    going back to before a message, and forward again
    usage      what its requests used and cost
    recovered  what opening it had to add to the log
    """

    def __init__(
        self,
        database: SessionDatabase,
        number: int,
        *,
        is_read_only: bool = True,
        lease: Lease | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(database, number, is_read_only=is_read_only, lease=lease)
        self._on_close = on_close
        self.log = SessionLog(self)
        self.views = SessionViews(self)
        self.rewinds = SessionRewinds(self, self.log, self.views)
        self.usage = SessionUsage(self)
        self.recovered: tuple[Entry, ...] = ()

    @property
    def info(self) -> SessionInfo:
        row = self.row(f"{INFO} WHERE number = ?")
        if row is None:
            raise StoreError("The session is no longer in the store")
        return as_info(row)

    def recover(self) -> None:
        """Complete what a killed process left open; see `recovered`."""
        self.recovered = tuple(self.log.recover())

    def search(
        self,
        question: str,
        limit: int = 10,
        *,
        weights: RankingWeights | None = None,
        chars: int = SNIPPET_CHARS,
        aside: Sequence[Range] = (),
    ) -> list[Hit]:
        """The messages of the whole log but those `aside` that answer best, best first. Any text is a question."""
        return results.find(self.database, question, self.number, limit, weights=weights, chars=chars, aside=aside)

    def searchable_text(self, seq: int) -> str:
        """All of a message that search looks at, a cut tool output in whole; "" if there is no such message."""
        return results.searchable_text(self.database, self.number, seq)

    def rename(self, name: str) -> None:
        """Set the name to any text, as one line; an empty text removes the name."""
        self._update("name", as_name(name))

    def set_model(self, model: str) -> None:
        self._update("model", clean_text(model))

    def remember_model(self, typed: str) -> None:
        """Remember the model that the person chose, as it was typed; "" forgets it."""
        self._update("chosen_model", as_name(typed))

    def become_chat(self) -> None:
        """Mark the session as a chat, because a person continues it in one. A reader changes nothing."""
        if not self.is_read_only and self.info.kind != "chat":
            self._update("kind", "chat")

    def set_pinned(self, is_pinned: bool) -> None:
        """Protect the session from being archived by age or number, or stop protecting it."""
        self._update("is_pinned", int(is_pinned))

    def close(self) -> None:
        """Release the session's lock; the object is of no use afterwards."""
        if not self.is_closed:
            self.is_closed = True
            self._on_close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _update(self, column: str, value: str | int) -> None:
        with self.transaction() as connection:
            connection.execute(
                f"UPDATE sessions SET {column} = ?, updated_at = ? WHERE number = ?",  # noqa: S608
                (value, time.time(), self.number),
            )
