"""Add to an imported session what its file has more by now."""

from __future__ import annotations

import time

import msgspec

from nca.errors import StoreError
from nca.sessions import log, transfer, usage
from nca.sessions.encoding import encode
from nca.sessions.session import Session
from nca.sessions.sql import Transaction
from nca.sessions.transfer import SessionCopy, ViewCopy
from nca.sessions.view_rows import BESIDE, CompactionRecord, go_to


def extend(session: Session, copy: SessionCopy) -> None:
    """Append the later messages of `copy`, which begins with the messages of the session, with its views and usage.

    Where only views were added, these are; else (a branch was left) the newest one is put in force as one more view.
    Raises StoreError, and changes nothing, if the session has messages that the copy does not have.
    """
    transfer.check(copy)
    before = transfer.read(session)
    if len(before.entries) > len(copy.entries):
        raise StoreError("The session has more messages than its file")
    with session.transaction() as connection:
        number = session.number
        log.insert(session.database, connection, number, copy.entries[len(before.entries) :])
        if _continues(before, copy):
            transfer.insert_views(connection, number, copy, copy.views[len(before.views) :])
            go_to(connection, number, copy.head_view)
            used = copy.usage[len(before.usage) :]
        else:
            view = _put_last(connection, session, before, copy)
            used = tuple(msgspec.structs.replace(row, view_id=view) for row in copy.usage[len(before.usage) :])
        usage.insert(connection, number, used)
        if (origin := copy.info.origin) is not None:
            origin = msgspec.structs.replace(origin, views=_views(session))
            connection.execute("UPDATE sessions SET origin = ? WHERE number = ?", (encode(origin), number))
        log.touch(connection, number, time.time())


def has_gone_on(session: Session) -> bool:
    """Whether anything was added to an imported session, or undone in it, since it was imported."""
    origin = session.info.origin
    if origin is None:
        return True
    return (session.log.head, session.views.current_id, _views(session)) != (
        origin.messages,
        origin.views - 1,
        origin.views,
    )


def _views(session: Session) -> int:
    row = session.row("SELECT max(number) + 1 FROM views WHERE session = ?")
    return int(row[0] or 1) if row else 1


def _continues(before: SessionCopy, after: SessionCopy) -> bool:
    """Whether the views of `after` begin with those of `before`, of which the last is in force."""
    views, summaries = after.views[: len(before.views)], after.summaries[: len(before.summaries)]
    same = [_shown(one) for one in views] == [_shown(one) for one in before.views]
    return same and summaries == before.summaries and before.head_view == len(before.views) - 1


def _shown(view: ViewCopy) -> ViewCopy:
    return msgspec.structs.replace(view, since=0)


def _put_last(connection: Transaction, session: Session, before: SessionCopy, after: SessionCopy) -> int:
    """Put the view in force in `after` in force, as a child of the one in force; returns its number."""
    made = [one for one in after.compactions if one.view_after == after.head_view]
    beside = CompactionRecord(trigger=BESIDE, stages=(BESIDE,))
    record = msgspec.structs.replace(made[0] if made else beside, view_before=before.head_view)
    return session.views.put_in_force(connection, after.view(after.head_view), record).view_after
