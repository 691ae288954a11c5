"""Preview of a session in a list: its last question and answer, and its size."""

from __future__ import annotations

import msgspec

from nca.sessions.database import Database
from nca.sessions.mended import stored_message

_LOOKED_THROUGH = 20
"""Newest messages of a role that are searched for text: steps of a turn often hold only calls."""


class SessionPreview(msgspec.Struct, frozen=True):
    """The last text of the person (`asked`) and of the model (`answered`), and the size of the log."""

    asked: str
    answered: str
    size_bytes: int


def load_preview(database: Database, session: int) -> SessionPreview:
    """Skips messages that cannot be read. Raises StoreError."""
    (size,) = database.row("SELECT sum(octet_length(body)) FROM messages WHERE session = ?", (session,)) or (0,)
    return SessionPreview(_last_text(database, session, "user"), _last_text(database, session, "assistant"), size or 0)


def _last_text(database: Database, session: int, role: str) -> str:
    """Of the newest messages; what the view in force puts aside is passed over."""
    rows = database.rows(
        "SELECT seq, body, coalesce(octet_length(body), 0) FROM messages"
        " WHERE session = ?1 AND role = ?2 AND NOT EXISTS ("
        "SELECT 1 FROM sessions s JOIN views v ON v.session = s.number AND v.number = s.head_view,"
        " json_each(iif(json_valid(v.body), v.body, '{}'), '$.aside') WHERE s.number = ?1"
        " AND seq BETWEEN value ->> 0 AND value ->> 1) ORDER BY seq DESC LIMIT ?3",
        (session, role, _LOOKED_THROUGH),
    )
    for seq, body, size in rows:
        message = stored_message(body, role, seq, size)
        if message.text.strip() and not message.is_synthetic:
            return message.text
    return ""
