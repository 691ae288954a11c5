"""One open session: its log, views and usage, and its name, model and kind. Calls that write return when durable.

A session in a list: the facts about it, and a preview of its last question and answer.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from nca.context.view import Range
from nca.errors import SessionNotFound, StoreDamaged, StoreError
from nca.humanize import check_kind
from nca.messages import Entry, clean_text
from nca.sessions import results
from nca.sessions.access import Origin, SessionAccess, as_origin
from nca.sessions.encoding import decode
from nca.sessions.log import SessionLog
from nca.sessions.mended import stored_message
from nca.sessions.results import SNIPPET_CHARS, Hit
from nca.sessions.rewinds import SessionRewinds
from nca.sessions.search import RankingWeights
from nca.sessions.sql import Lease, Row, SessionDatabase
from nca.sessions.usage import SessionUsage
from nca.sessions.view_rows import StoredView
from nca.sessions.views import SessionViews

_ID_BYTES = 4
_NAME_CHARS = 200
_LISTED_MATCHES = 5
_SECONDS_A_DAY = 86_400
_IS_KEPT = "name <> '' OR is_pinned <> 0 OR has_forks <> 0 OR EXISTS (SELECT 1 FROM pins WHERE session = number)"
IS_EMPTY = "NOT EXISTS (SELECT 1 FROM messages WHERE session = number)"

Kind = Literal["chat", "run"]
"""The origin of a session: a chat, which a person continues, or `nca run`, which asks once."""


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
    """The source of the import, if it is another agent's."""

    @property
    def is_as_imported(self) -> bool:
        """Nobody went on with this session of another agent since its import: no model of nca answered in it."""
        return self.origin is not None and self.messages <= self.origin.messages


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


def expired(database: SessionDatabase, retention_days: int, max_sessions: int) -> list[str]:
    """See `Store.expired`."""
    rows = database.rows(f"SELECT id, updated_at, {_IS_KEPT} FROM sessions ORDER BY touched DESC")  # noqa: S608
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
    views      the model's view of them: compactions, undo, redo, pins
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

    def has_ended(self, *, is_committed: bool) -> None:
        self.log.end_transaction(is_committed=is_committed)

    @property
    def info(self) -> SessionInfo:
        row = self.lasting_row(f"{INFO} WHERE number = ?")
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

    @property
    def namesakes(self) -> list[str]:
        """The ids of other sessions that have the same name, the last used first."""
        if not self.info.name:
            return []
        sql = "SELECT id FROM sessions WHERE name = ? AND id <> ? ORDER BY touched DESC"
        return [found for (found,) in self.database.rows(sql, (self.info.name, self.info.id))]

    def set_model(self, model: str) -> None:
        """Note which model answers from now on. A reader changes nothing."""
        if not self.is_read_only and self.info.model != (name := clean_text(model)):
            self._update("model", name)

    def remember_model(self, typed: str) -> None:
        """Remember the model that the person chose, as it was typed; "" forgets it."""
        self._update("chosen_model", as_name(typed))

    def begin_turn(self, model: str, kind: Kind) -> None:
        """Note which model answers; a message that is sent in a chat makes the session one."""
        self.set_model(model)
        if kind == "chat" != self.info.kind:
            self._update("kind", kind)

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
        """Change a fact about the session, which is no use of it."""
        self.write(f"UPDATE sessions SET {column} = ? WHERE number = ?", value, self.number)  # noqa: S608


def new_id(database: SessionDatabase, archive_of: Callable[[str], Path | None]) -> str:
    """An id that neither a session nor an archive has."""
    while True:
        session_id = secrets.token_hex(_ID_BYTES)
        archive = archive_of(session_id)
        is_archived = archive is not None and os.path.exists(archive)
        if not is_archived and not database.row("SELECT 1 FROM sessions WHERE id = ?", (session_id,)):
            return session_id


def find_session(database: SessionDatabase, named: str, archive_of: Callable[[str], Path | None]) -> tuple[str, int]:
    """The id and the number of the session of this id, beginning of an id, or name. Raises SessionNotFound."""
    check_kind(named, str, "session", "an id, its beginning, or a name")
    wanted = clean_text(named).strip()
    rows = database.rows(
        "SELECT id, number FROM sessions WHERE id = ?1 OR (?1 <> '' AND substr(id, 1, length(?1)) = ?1)"
        " OR (?1 <> '' AND name = ?1) ORDER BY id <> ?1, touched DESC",
        (wanted,),
    )
    if not rows:
        archive = archive_of(wanted) if wanted.isalnum() else None
        if archive is not None and os.path.exists(archive):
            raise SessionNotFound(
                f"Session {wanted} is archived", advice=f"`nca sessions restore {wanted}` brings it back."
            )
        raise SessionNotFound(f"There is no session {wanted!r}", advice="`nca sessions list` shows them.")
    if rows[0][0] != wanted and len(rows) > 1:
        some = ", ".join(row[0] for row in rows[:_LISTED_MATCHES]) + (" …" if len(rows) > _LISTED_MATCHES else "")
        by_id = any(found.startswith(wanted) for found, _ in rows)
        advice = "Give more of the id." if by_id else "Several sessions have this name: give one of these ids."
        raise SessionNotFound(f"{wanted!r} could be any of {some}", advice=advice)
    return rows[0][0], rows[0][1]


_LOOKED_THROUGH = 20
"""Newest messages of a role that are searched for text: steps of a turn often hold only calls."""


class SessionPreview(msgspec.Struct, frozen=True):
    """The last text of the person (`asked`) and of the model (`answered`), and the size of the log."""

    asked: str
    answered: str
    size_bytes: int


def load_preview(database: SessionDatabase, session: int) -> SessionPreview:
    """Skips messages that cannot be read, and what the current view puts aside. Raises StoreError."""
    size = database.value("SELECT sum(octet_length(body)) FROM messages WHERE session = ?", (session,), 0)
    aside = "".join(f" AND NOT (seq BETWEEN {first} AND {last})" for first, last in _aside(database, session))
    asked, answered = (_last_text(database, session, role, aside) for role in ("user", "assistant"))
    return SessionPreview(asked, answered, size)


def _aside(database: SessionDatabase, session: int) -> tuple[Range, ...]:
    body = database.value(
        "SELECT v.body FROM sessions s JOIN views v ON v.session = s.number AND v.number = s.head_view"
        " WHERE s.number = ?",
        (session,),
    )
    with suppress(StoreDamaged):
        return decode(body, StoredView, "a view").aside
    return ()


def _last_text(database: SessionDatabase, session: int, role: str, condition: str) -> str:
    rows = database.rows(
        "SELECT seq, body, coalesce(octet_length(body), 0) FROM messages"  # noqa: S608
        f" WHERE session = ? AND role = ?{condition} ORDER BY seq DESC LIMIT ?",
        (session, role, _LOOKED_THROUGH),
    )
    for seq, body, size in rows:
        message = stored_message(body, role, seq, size)
        if message.text.strip() and not message.is_synthetic:
            return message.text
    return ""
