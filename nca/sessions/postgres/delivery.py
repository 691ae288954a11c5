"""Store what ended processes of this machine kept; see `nca.sessions.postgres.spool`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from nca.errors import SessionLocked, StoreError, StoreUnreachable
from nca.sessions import store_errors, transfer
from nca.sessions.postgres import spool
from nca.sessions.postgres.spool import Diverged, Kept, messages_kept
from nca.sessions.session import Session
from nca.sessions.sql import SessionDatabase


def deliver(database: SessionDatabase, beside: Path, tell: Callable[[str], None]) -> None:
    """Store all that was kept for the database, and say so. Raises StoreError. beside: as in `SessionDatabase.path`."""
    for path, session_id, token in spool.left_in(beside):
        if (lock := spool.take(path)) is None:
            continue
        kept: list[Kept] = []
        try:
            kept = spool.read(path)
            said = _stored(database, session_id, token, kept) if kept else ""
            if said is not None:
                with store_errors.explained(path, "delete"):
                    path.unlink(missing_ok=True)
                if said:
                    tell(said)
        except StoreUnreachable:
            tell(f"{messages_kept(kept)} in {path}. The next start of nca stores this file.")
        except StoreError as error:
            tell(f"{path} could not be stored and stays: {error.message}")
        finally:
            lock.release(remove=True)


def _stored(database: SessionDatabase, session_id: str, token: int, kept: Sequence[Kept]) -> str | None:
    """What was stored and where, as a sentence; None if it cannot be stored yet."""
    found = database.row("SELECT number FROM sessions WHERE id = ?", (session_id,))
    if found is None:
        return f"Session {session_id} was deleted. {_copied(database, session_id, None, token, kept)}"
    try:
        lease = database.hold(session_id)
        try:
            with database.transaction(lease) as transaction:
                spool.write(database, transaction, found[0], kept)
        finally:
            if lease is not None:
                lease.release()
        return f"{messages_kept(kept)} stored now, in session {session_id}."
    except SessionLocked:
        if database.row("SELECT token FROM leases WHERE session_id = ?", (session_id,)) == (token,):
            return None  # the server has not noticed yet that the process has ended
    except Diverged:
        pass
    copied = _copied(database, session_id, found[0], token, kept)
    return f"Session {session_id} has gone on elsewhere. {copied}"


def _copied(
    database: SessionDatabase,
    session_id: str,
    number: int | None,
    token: int,
    kept: Sequence[Kept],
) -> str:
    """Store in a copy of the session what no longer fits behind its end; says so."""
    entries = [one.entry() for one in kept if one.is_message]
    if not entries:
        if number is not None:
            with database.transaction() as transaction:
                spool.write_usage(transaction, number, kept)
        return "Only its cost was kept on this machine."
    before = transfer.new_copy((), directory="") if number is None else transfer.read(Session(database, number))
    copy = transfer.with_end(before, entries, spool.reports(kept))
    transfer.check(copy)
    copy_id = spool.copy_id(session_id, token)
    with database.transaction() as transaction:
        if not transaction.execute("SELECT 1 FROM sessions WHERE id = ?", (copy_id,)).get:
            transfer.write(database, transaction, copy_id, copy)
            transaction.execute("UPDATE sessions SET has_forks = 1 WHERE number = ?", (number,))
    return f"{messages_kept(kept)} in a copy of it now: session {copy_id}."
