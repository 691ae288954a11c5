"""Where an imported session comes from, so that it is imported once and again when it has grown."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from nca.errors import StoreDamaged
from nca.messages import Entry
from nca.sessions.encoding import decode, encode_bytes


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """A session of another agent, as far as it was imported.

    agent       the agent's name
    session_id  the agent's own id of the session
    path, key   the file, and which of its sessions
    size_bytes  the size of the file when it was read; `at`: when it was last used then, seconds since the epoch
    messages    how many messages of the log come from it: the first ones; `views`: how many views
    digest      of these messages; another one later means that the file has other messages now
    """

    agent: str
    path: str
    key: str = ""
    session_id: str = ""
    size_bytes: int = 0
    at: float = 0.0
    messages: int = 0
    views: int = 1
    digest: str = ""

    def begins(self, entries: Sequence[Entry]) -> bool:
        """Whether these messages begin with those that were imported."""
        return len(entries) >= self.messages and digest_of(entries[: self.messages]) == self.digest


_decoder = msgspec.json.Decoder(Origin)


def digest_of(entries: Sequence[Entry]) -> str:
    digest = blake2b(digest_size=16)
    for entry in entries:
        digest.update(encode_bytes(entry.message))
        digest.update(b"\n")
    return digest.hexdigest()


def as_origin(body: str) -> Origin | None:
    """None for a session of nca's own, and where the row is damaged."""
    try:
        return decode(body, _decoder, "where a session comes from") if body else None
    except StoreDamaged:
        return None
