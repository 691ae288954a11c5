"""What a list shows of a session beside its name: where it ended, and how large it is."""

from __future__ import annotations

import msgspec

from nca.errors import StoreDamaged
from nca.messages import Message
from nca.sessions.database import Database
from nca.sessions.encoding import decode

_LOOKED_THROUGH = 20
"""Messages of one role, newest first, until one has text: steps of a turn are often calls only."""

_message_decoder = msgspec.json.Decoder(Message)


class Glance(msgspec.Struct, frozen=True):
    """asked, answered: the last text of the person and of the model, as they were stored; size_bytes: of the log."""

    asked: str
    answered: str
    size_bytes: int


def glance(database: Database, session: int) -> Glance:
    """Raises StoreError. A message that cannot be read is passed over: opening the session says so."""
    (size,) = database.row("SELECT sum(octet_length(body)) FROM messages WHERE session = ?", (session,)) or (0,)
    return Glance(_last_text(database, session, "user"), _last_text(database, session, "assistant"), size or 0)


def _last_text(database: Database, session: int, role: str) -> str:
    rows = database.rows(
        "SELECT seq, body FROM messages WHERE session = ? AND role = ? ORDER BY seq DESC LIMIT ?",
        (session, role, _LOOKED_THROUGH),
    )
    for seq, body in rows:
        try:
            text = decode(body, _message_decoder, f"message {seq}").text
        except StoreDamaged:
            continue
        if text.strip():
            return text
    return ""
