"""Views, the compactions that made them, and going back and forth between them.

The views of a session are a tree: a compaction adds a child of the view in force and makes it the one in force.
Undo goes to the parent. Redo goes to the newest child, which is what was undone last, and nothing after a new
compaction: that one has no children. View 0 shows the whole log and has no row of its own in `compactions`.
"""

from __future__ import annotations

import time

import apsw
import msgspec

from nca.context.view import Marker, Stub, Summary, Verbatim, View, check_partition
from nca.errors import StoreError
from nca.messages import clean_text
from nca.sessions import log
from nca.sessions.database import Database, Row
from nca.sessions.encoding import decode, encode

CURRENT = -1


class CompactionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction did. The store gives `id`, `view_after`, `undone`, and `at` where it is 0.

    view_before   the view that was planned on; the commit is refused when another is in force. CURRENT: whichever is
    at            seconds since the epoch
    cost          US dollars, None where unknown
    undone        its view is no longer in force, nor under the one that is
    """

    trigger: str
    stages: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    kept_facts: int = 0
    total_facts: int = 0
    seconds: float = 0.0
    cost: float | None = None
    at: float = 0.0
    view_before: int = CURRENT
    view_after: int = CURRENT
    id: str = ""
    undone: bool = False


class SummaryPlace(msgspec.Struct, frozen=True, tag_field="type", tag="summary"):
    """A summary inside a stored view: where it stands among the summaries."""

    row: int


class StoredView(msgspec.Struct, frozen=True):
    items: tuple[Verbatim | Stub | SummaryPlace | Marker, ...]
    tail: int


_view_decoder = msgspec.json.Decoder(StoredView)
_summary_decoder = msgspec.json.Decoder(Summary)
_stages_decoder = msgspec.json.Decoder(tuple[str, ...])

_RECORD_FIELDS = (
    *("trigger", "stages", "tokens_before", "tokens_after", "kept_facts", "total_facts", "seconds", "cost"),
    *("at", "view_before", "view_after"),
)
_RECORD = (
    "SELECT c.trigger, c.stages, c.tokens_before, c.tokens_after, c.kept_facts, c.total_facts, c.seconds, c.cost,"
    " c.at, v.parent, v.number FROM compactions c JOIN views v ON v.session = c.session AND v.number = c.view"
    " WHERE c.session = ?"
)


def create_first(connection: apsw.Connection, session: int) -> None:
    """View 0 of a new session."""
    connection.execute("INSERT INTO views VALUES (?, 0, NULL, ?)", (session, encode(StoredView((), 1))))


def head_view(database: Database, session: int) -> int:
    """The number of the view in force."""
    row = database.row("SELECT head_view FROM sessions WHERE number = ?", (session,))
    if row is None:
        raise StoreError("the session is no longer in the store")
    return int(row[0])


def load(database: Database, session: int, number: int) -> View:
    """A view, exactly as it was committed. Raises StoreError where there is none."""
    row = database.row("SELECT body FROM views WHERE session = ? AND number = ?", (session, number))
    if row is None:
        raise StoreError(f"there is no view {number}")
    stored = decode(row[0], _view_decoder, f"view {number}")
    rows = [item.row for item in stored.items if isinstance(item, SummaryPlace)]
    summaries = {summary: _summary(database, session, summary) for summary in rows}
    items = (summaries[item.row] if isinstance(item, SummaryPlace) else item for item in stored.items)
    return View(tuple(items), stored.tail)


def commit(
    database: Database, session: int, view: View, record: CompactionRecord, expected_head: int | None
) -> CompactionRecord:
    """Make `view` the one in force, with its summaries and the record, or change nothing.

    Raises StoreError where the view is no partition of the log, reaches past its end, was planned on a log that is
    longer than ours (`expected_head`), or on a view that is not in force.
    """
    try:
        check_partition(view)
    except ValueError as error:
        raise StoreError(f"the compaction was not applied: {error}") from error
    with database.transaction() as connection:
        head = log.head(connection, session)
        current, number = connection.execute(
            "SELECT head_view, (SELECT max(number) + 1 FROM views WHERE session = ?1) FROM sessions WHERE number = ?1",
            (session,),
        ).get
        if view.tail > head + 1 or (expected_head or 0) > head:
            raise StoreError(f"the compaction was not applied: it covers more than the {head} messages of the log")
        if record.view_before not in (CURRENT, current):
            raise StoreError("the compaction was not applied: the view has changed since it was planned")
        body = encode(_stored(connection, session, view))
        connection.execute("INSERT INTO views VALUES (?, ?, ?, ?)", (session, number, current, body))
        at = record.at or time.time()
        insert_record(connection, session, number, msgspec.structs.replace(record, at=at))
        _go_to(connection, session, number)
    return msgspec.structs.replace(
        record, id=_record_id(number), at=at, view_before=current, view_after=number, undone=False
    )


def undo(database: Database, session: int) -> CompactionRecord | None:
    """Go back to the view before the last compaction; None where there is none."""
    current = head_view(database, session)
    if current == 0:
        return None
    record = _record(database, session, current)
    with database.transaction() as connection:
        _go_to(connection, session, record.view_before)
    return msgspec.structs.replace(record, undone=True)


def redo(database: Database, session: int) -> CompactionRecord | None:
    """Apply what was undone last once more; None where nothing was, or a newer compaction has replaced it."""
    number = redoable(database, session)
    if number is None:
        return None
    with database.transaction() as connection:
        _go_to(connection, session, number)
    return _record(database, session, number)


def redoable(database: Database, session: int) -> int | None:
    """The number of the view that redo would go to."""
    row = database.row(
        "SELECT max(v.number) FROM views v JOIN sessions s ON s.number = v.session AND v.parent = s.head_view"
        " WHERE s.number = ?",
        (session,),
    )
    return row[0] if row else None


def compactions(database: Database, session: int) -> list[CompactionRecord]:
    """All that ever were, oldest first."""
    rows = database.rows(f"{_RECORD} ORDER BY c.view", (session,))
    parents = {row[10]: row[9] for row in rows}
    in_force, number = set(), head_view(database, session)
    while number in parents:
        in_force.add(number)
        number = parents[number]
    return [_as_record(row, undone=row[10] not in in_force) for row in rows]


def standing(database: Database, session: int) -> tuple[int, float | None]:
    """What the compactions that stand saved together, in tokens, and cost in US dollars; None: no cost is known."""
    row = database.row(
        "WITH RECURSIVE line (number) AS (SELECT head_view FROM sessions WHERE number = ?1 UNION ALL"
        " SELECT parent FROM views JOIN line USING (number) WHERE session = ?1 AND parent IS NOT NULL)"
        " SELECT coalesce(sum(tokens_before - tokens_after), 0), sum(cost)"
        " FROM compactions JOIN line ON view = number WHERE session = ?1",
        (session,),
    )
    return (int(row[0]), row[1]) if row else (0, None)


def summaries(database: Database, session: int) -> dict[int, Summary]:
    """All that ever were, those of undone compactions too, oldest first, by their rows."""
    rows = database.rows("SELECT number, body FROM summaries WHERE session = ? ORDER BY number", (session,))
    return {row: decode(body, _summary_decoder, "a summary") for row, body in rows}


def stored(database: Database, session: int) -> list[tuple[int, int | None, StoredView]]:
    """Each view with its number and that of the view before it, oldest first."""
    rows = database.rows("SELECT number, parent, body FROM views WHERE session = ? ORDER BY number", (session,))
    return [(number, parent, decode(body, _view_decoder, f"view {number}")) for number, parent, body in rows]


def check_all(connection: apsw.Connection, session: int, head: int) -> None:
    """Raise StoreError unless every view of a session can be shown over its log of `head` messages."""
    database = Database(connection, None)
    for (number,) in database.rows("SELECT number FROM views WHERE session = ?", (session,)):
        view = load(database, session, number)
        try:
            check_partition(view)
        except ValueError as error:
            raise StoreError(str(error)) from error
        if view.tail > head + 1:
            raise StoreError(f"view {number} covers more than the log")
    load(database, session, head_view(database, session))


def _stored(connection: apsw.Connection, session: int, view: View) -> StoredView:
    """The view with its summaries in rows; one that an earlier view has too is not written again."""
    items: list[Verbatim | Stub | SummaryPlace | Marker] = []
    for item in view.items:
        if not isinstance(item, Summary):
            items.append(item)
            continue
        items.append(SummaryPlace(insert_summary(connection, session, item)))
    return StoredView(tuple(items), view.tail)


def insert_summary(connection: apsw.Connection, session: int, summary: Summary) -> int:
    """The row of a summary, inside the caller's transaction; the one that is there, where an equal one is."""
    body = encode(summary)
    row = (
        connection.execute(
            "SELECT number FROM summaries WHERE session = ?1 AND length(body) = length(?2) AND body = ?2",
            (session, body),
        ).get
        or connection.execute(
            "INSERT INTO summaries (session, body) VALUES (?, ?) RETURNING number", (session, body)
        ).get
    )
    return int(row)


def _summary(database: Database, session: int, number: int) -> Summary:
    row = database.row("SELECT body FROM summaries WHERE session = ? AND number = ?", (session, number))
    if row is None:
        raise StoreError(f"summary {number} is missing")
    return decode(row[0], _summary_decoder, f"summary {number}")


def insert_record(connection: apsw.Connection, session: int, view: int, record: CompactionRecord) -> None:
    values = {
        "session": session,
        "view": view,
        "trigger": clean_text(record.trigger),
        "stages": msgspec.json.encode([clean_text(stage) for stage in record.stages]).decode(),
        **{name: getattr(record, name) for name in _RECORD_FIELDS[2:9]},
    }
    connection.execute(
        "INSERT INTO compactions VALUES (:session, :view, :trigger, :stages, :tokens_before, :tokens_after,"
        " :kept_facts, :total_facts, :seconds, :cost, :at)",
        values,
    )


def _go_to(connection: apsw.Connection, session: int, view: int) -> None:
    connection.execute("UPDATE sessions SET head_view = ? WHERE number = ?", (view, session))
    log.touch(connection, session, time.time())


def _record(database: Database, session: int, view: int) -> CompactionRecord:
    row = database.row(f"{_RECORD} AND c.view = ?", (session, view))
    if row is None:
        raise StoreError(f"the record of compaction {_record_id(view)} is missing")
    return _as_record(row, undone=False)


def _as_record(row: Row, *, undone: bool) -> CompactionRecord:
    values = dict(zip(_RECORD_FIELDS, row, strict=True))
    values["stages"] = decode(values["stages"], _stages_decoder, "a compaction's stages")
    return CompactionRecord(**values, id=_record_id(values["view_after"]), undone=undone)


def _record_id(view: int) -> str:
    return f"c{view}"
