"""Token usage and cost of a session, as providers reported them, and the lessons about models."""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec

from nca.errors import StoreUnreachable
from nca.messages import Usage, clean_text
from nca.sessions.access import SessionAccess
from nca.sessions.encoding import encode
from nca.sessions.sql import Transaction

BESIDE = 0
"""The seq of a report that is not about a request of a view: a summary, or an answer in several samplings."""
UNREPORTED = -1
"""The seq of nca's own count for an answer that was stopped or broke off, so that no report came."""


class UsageRow(msgspec.Struct, frozen=True):
    """The report for one request: `seq` is the newest message at the time, `view_id` the view that was sent.

    seq is BESIDE or UNREPORTED if it says nothing about a request of a view.
    """

    seq: int
    model: str
    usage: Usage
    view_id: int
    at: float
    """Seconds since the epoch."""


class Learned(msgspec.Struct, frozen=True):
    """What was learned of a model, over all sessions: its calibration, or under its name and endpoint its window.

    ratio           tokens per raw token; meaningless while `samples` is 0
    window_tokens   the window that an overflow error named; None if none did
    samples         how many reports the ratio rests on
    at              when it was learned, seconds since the epoch
    """

    ratio: float = 1.0
    window_tokens: int | None = None
    samples: int = 0
    at: float = 0.0


*_COUNTS, _COST = Usage.__struct_fields__
_COLUMNS = ", ".join((*_COUNTS, _COST))
_INSERT = f"INSERT INTO usage (session, seq, view, model, at, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_SELECT = f"SELECT seq, model, view, at, {_COLUMNS} FROM usage WHERE session = ?"  # noqa: S608
_SUMS = ", ".join(f"coalesce(sum({name}), 0)" for name in _COUNTS)
_SUM = f"SELECT {_SUMS}, sum({_COST}) FROM usage WHERE session = ?"  # noqa: S608


class SessionUsage:
    """The usage that providers reported for one session. A call that writes is durable when it returns."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._totals: Usage | None = None

    def record(self, seq: int, model: str, usage: Usage, view_id: int) -> None:
        """Add the report for one request, sent with the view `view_id` when the log ended at `seq`."""
        row = UsageRow(seq, model, usage, view_id, time.time())
        try:
            with self._access.transaction() as connection:
                insert(connection, self._access.number, [row])
        except StoreUnreachable:
            if (spool := self._access.spool) is None:
                raise
            spool.keep_usage(encode(row))
        if self._totals is not None:
            self._totals += usage

    def rows(self) -> list[UsageRow]:
        """Every report, oldest first."""
        return self._read(f"{_SELECT} ORDER BY id")

    def reports(self, newest: int) -> list[UsageRow]:
        """The newest reports about requests of a view, at most so many, oldest first."""
        return self._read(f"{_SELECT} AND seq > {BESIDE} ORDER BY id DESC LIMIT ?", newest)[::-1]

    def totals(self) -> Usage:
        """The sums over the session; `cost` adds up the known costs, None if none is known."""
        if self._totals is not None:
            return self._totals
        row = self._access.row(_SUM)
        totals = Usage(*row) if row else Usage(0, 0)
        if not self._access.is_read_only:
            # Only the one process that has the session open adds to it, so its sums stay right.
            self._totals = totals
        return totals

    def _read(self, sql: str, *bindings: int) -> list[UsageRow]:
        found = self._access.rows(sql, *bindings)
        return [UsageRow(seq, model, Usage(*counts), view, at) for seq, model, view, at, *counts in found]


def insert(connection: Transaction, session: int, calls: Iterable[UsageRow]) -> None:
    """Write reports, inside the caller's transaction."""
    rows = [
        (session, call.seq, call.view_id, clean_text(call.model), call.at, *msgspec.structs.astuple(call.usage))
        for call in calls
    ]
    connection.executemany(_INSERT, rows)
