"""What the calls of a session used, as reported, and what was learned about models from it."""

from __future__ import annotations

import time
from collections.abc import Iterable

import apsw
import msgspec

from nca.messages import Usage, clean_text
from nca.sessions.database import Database

BESIDE = 0
"""The seq of a row that is about no request of a view: a summary, or an answer in several samplings."""


class UsageRow(msgspec.Struct, frozen=True):
    """One call: `seq` is the last message when it was recorded, `view_id` the view that was sent."""

    seq: int
    model: str
    usage: Usage
    view_id: int
    at: float
    """Seconds since the epoch."""


class Learned(msgspec.Struct, frozen=True):
    """What reports taught about a model, over all sessions.

    ratio           tokens per raw token; means nothing while `samples` is 0
    window_tokens   the window that an overflow error told, None where none did
    samples         how many reports the ratio rests on
    at              when it was learned, seconds since the epoch
    """

    ratio: float = 1.0
    window_tokens: int | None = None
    samples: int = 0
    at: float = 0.0


_INSERT = (
    "INSERT INTO usage (session, seq, view, model, at, prompt_tokens, completion_tokens, cache_read_tokens,"
    " cache_write_tokens, reasoning_tokens, cost) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SELECT = (
    "SELECT seq, model, view, at, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,"
    " reasoning_tokens, cost FROM usage WHERE session = ?"
)
_SUM = (
    "SELECT coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0), coalesce(sum(cache_read_tokens), 0),"
    " coalesce(sum(cache_write_tokens), 0), coalesce(sum(reasoning_tokens), 0), sum(cost) FROM usage WHERE session = ?"
)


def record(database: Database, session: int, seq: int, model: str, usage: Usage, view_id: int) -> None:
    """Durable on return."""
    with database.transaction() as connection:
        insert(connection, session, [UsageRow(seq, model, usage, view_id, time.time())])


def insert(connection: apsw.Connection, session: int, calls: Iterable[UsageRow]) -> None:
    """Inside the caller's transaction."""
    rows = [
        (session, call.seq, call.view_id, clean_text(call.model), call.at, *msgspec.structs.astuple(call.usage))
        for call in calls
    ]
    connection.executemany(_INSERT, rows)


def rows(database: Database, session: int) -> list[UsageRow]:
    """Oldest first."""
    return _read(database, f"{_SELECT} ORDER BY id", (session,))


def reports(database: Database, session: int, newest: int) -> list[UsageRow]:
    """The newest so many that are about requests of a view, oldest first."""
    found = _read(database, f"{_SELECT} AND seq <> {BESIDE} ORDER BY id DESC LIMIT ?", (session, newest))
    return found[::-1]


def _read(database: Database, sql: str, bindings: tuple[int, ...]) -> list[UsageRow]:
    found = database.rows(sql, bindings)
    return [UsageRow(seq, model, Usage(*counts), view, at) for seq, model, view, at, *counts in found]


def added(total: Usage, one: Usage) -> Usage:
    """The sums with one call more, as `totals` would give them."""
    costs = [cost for cost in (total.cost, one.cost) if cost is not None]
    counts = {
        name: getattr(total, name) + getattr(one, name) for name in Usage.__struct_fields__ if name.endswith("_tokens")
    }
    return Usage(**counts, cost=sum(costs) if costs else None)


def totals(database: Database, session: int) -> Usage:
    """The sums; the cost is that of the calls whose cost is known, None where none is."""
    row = database.row(_SUM, (session,))
    return Usage(*row) if row else Usage(0, 0)


def learned(database: Database, model: str) -> Learned:
    """What is known of a model; a Learned with 0 samples and no window where nothing is."""
    row = database.row("SELECT ratio, window_tokens, samples, at FROM learned WHERE model = ?", (clean_text(model),))
    return Learned(*row) if row else Learned()


def save_learned(database: Database, model: str, lesson: Learned) -> None:
    """Durable on return; replaces what was known."""
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO learned VALUES (?, ?, ?, ?, ?) ON CONFLICT (model) DO UPDATE SET ratio = excluded.ratio,"
            " window_tokens = excluded.window_tokens, samples = excluded.samples, at = excluded.at",
            (clean_text(model), lesson.ratio, lesson.window_tokens, lesson.samples, lesson.at or time.time()),
        )
