"""Who writes a session: a token that a write checks, and a lock of the server that its holder's connection keeps.

The lock goes with the connection, so a holder that was killed keeps nobody out. The token is what makes a lost lease
safe: each holder has a new one, and of an old one no write is taken. No clock decides.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import psycopg

from nca.errors import SessionLocked
from nca.sessions.postgres.connection import Connection, Statement
from nca.sessions.postgres.spool import Spool

_HELD = "SELECT token, holder, since FROM leases WHERE session_id = ? FOR UPDATE"


class _Holder(Protocol):
    """The keeper of a process's leases: `nca.sessions.postgres.database.PostgresDatabase`."""

    def let_go(self, held: PostgresLease, *, remove: bool) -> None: ...
    def spool(self, session_id: str, token: int) -> Spool | None: ...


class PostgresLease:
    """The lease of a session in one process."""

    def __init__(self, database: _Holder, session_id: str, token: int) -> None:
        self._database = database
        self.session_id = session_id
        self.token = token
        self._spool = database.spool(session_id, token)
        self._is_lost = False

    @property
    def spool(self) -> Spool | None:
        """See `nca.sessions.sql.Lease`. Who has lost the session keeps nothing more for it."""
        return None if self._is_lost else self._spool

    def release(self, *, remove: bool = False) -> None:
        """`remove`: also its row, if the session is gone."""
        if self._spool is not None:
            self._spool.let_go()
        self._database.let_go(self, remove=remove)

    @property
    def query(self) -> Statement:
        """Asks who has the session; nobody can take it over before the end of the transaction."""
        return Statement(_HELD, (self.session_id,))

    def check(self, found: Sequence[tuple[int, str, float]]) -> None:
        """Raise SessionLocked if another process has taken the session over. found: what `query` gave."""
        [(token, holder, since)] = found or [(0, "", 0.0)]
        if token != self.token:
            is_kept = self.spool is not None and not self.spool.is_empty
            self._is_lost = True
            kept = " The messages kept on this machine become a copy when you leave the session." if is_kept else ""
            raise SessionLocked(
                f"Session {self.session_id} was taken over{_by(holder, since)}; nothing more is stored here",
                advice=f"Go on there, or in a copy: `nca sessions fork {self.session_id}`.{kept}",
            )

    def lock(self, connection: Connection) -> None:
        """Take the lock on a new connection; whether this is still the holder is checked with each write."""
        connection.run("SELECT pg_try_advisory_lock(?)", (_key(self.session_id, self.token),))

    def unlock(self, connection: Connection, *, remove: bool) -> None:
        with suppress(psycopg.Error):  # a connection that is lost has no lock
            connection.run("SELECT pg_advisory_unlock(?)", (_key(self.session_id, self.token),))
            if remove:
                connection.run(
                    "DELETE FROM leases WHERE session_id = ?1 AND token = ?2"
                    " AND NOT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)",
                    (self.session_id, self.token),
                )


def take(connection: Connection, session_id: str, *, takes_over: bool) -> int:
    """Take the lease of a session, in a transaction; returns the token. Raises SessionLocked, which names the holder.

    takes_over  from a holder who is still there
    """
    with connection.transaction():
        connection.run("INSERT INTO leases (session_id) VALUES (?) ON CONFLICT DO NOTHING", (session_id,))
        [(token, holder, since)] = connection.run(_HELD, (session_id,))
        key = _key(session_id, token)
        [(is_free,)] = connection.run("SELECT pg_try_advisory_lock(?)", (key,))
        if not is_free and not takes_over:
            raise SessionLocked(
                f"Session {session_id} is already open{_by(holder, since)}",
                advice=f"Close it there, or continue in a copy: `nca sessions fork {session_id}`.",
            )
        if is_free:
            connection.run("SELECT pg_advisory_unlock(?)", (key,))
        holder = f"process {os.getpid()} on {socket.gethostname()}"
        connection.run(
            "UPDATE leases SET token = ?, holder = ?, since = ? WHERE session_id = ?",
            (token + 1, holder, time.time(), session_id),
        )
        connection.run("SELECT pg_try_advisory_lock(?)", (_key(session_id, token + 1),))
    return int(token) + 1


def _key(session_id: str, token: int) -> int:
    """The number of the advisory lock."""
    digest = hashlib.sha256(f"nca:{session_id}:{token}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _by(holder: str, since: float) -> str:
    if not holder:
        return " in another process"
    return f" in {holder}, since {time.strftime('%Y-%m-%d %H:%M', time.localtime(since))}"
