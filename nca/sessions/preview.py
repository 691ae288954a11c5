"""Preview of a session in a list: its last question and answer, and its size."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from nca.context.view import Range
from nca.errors import StoreDamaged
from nca.sessions.encoding import decode
from nca.sessions.mended import stored_message
from nca.sessions.sql import SessionDatabase

_LOOKED_THROUGH = 20
"""Newest messages of a role that are searched for text: steps of a turn often hold only calls."""


class SessionPreview(msgspec.Struct, frozen=True):
    """The last text of the person (`asked`) and of the model (`answered`), and the size of the log."""

    asked: str
    answered: str
    size_bytes: int


class _Aside(msgspec.Struct, frozen=True):
    """The part of a stored view that a preview needs."""

    aside: tuple[Range, ...] = ()


def load_preview(database: SessionDatabase, session: int) -> SessionPreview:
    """Skips messages that cannot be read, and what the view in force puts aside. Raises StoreError."""
    (size,) = database.row("SELECT sum(octet_length(body)) FROM messages WHERE session = ?", (session,)) or (0,)
    aside = "".join(f" AND NOT (seq BETWEEN {first} AND {last})" for first, last in _aside(database, session))
    asked, answered = (_last_text(database, session, role, aside) for role in ("user", "assistant"))
    return SessionPreview(asked, answered, size or 0)


def _aside(database: SessionDatabase, session: int) -> tuple[Range, ...]:
    row = database.row(
        "SELECT v.body FROM sessions s JOIN views v ON v.session = s.number AND v.number = s.head_view"
        " WHERE s.number = ?",
        (session,),
    )
    with suppress(StoreDamaged):
        return decode(row[0], _Aside, "a view").aside if row else ()
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
