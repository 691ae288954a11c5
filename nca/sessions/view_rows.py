"""The rows of a session's views: what a view and a compaction are in the database."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from nca.context.view import Marker, Range, Stub, Summary, Verbatim, View
from nca.errors import StoreDamaged, ViewInUse
from nca.messages import clean_text
from nca.sessions import log
from nca.sessions.encoding import decode, encode
from nca.sessions.sql import Row, SessionDatabase, Transaction

CURRENT = -1
REWIND, REDO, BESIDE, UNDO = "rewind", "redo", "beside", "undo"
PUTS_ASIDE = frozenset({REWIND, REDO, BESIDE, UNDO})
"""Triggers of views that are not compactions: the same conversation, or a part of it, with messages put aside."""

PIN, UNPIN, RESTORE = "pin", "unpin", "restore"
BY_HAND = frozenset({"clear", "expand", PIN, UNPIN, "collapse", RESTORE, "retry"})
"""Stages of views that a person asked for, message by message. No compaction made them."""


class CompactionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a compaction. The store sets `id`, `view_after`, `undone`, and `at` if it is 0.

    view_before   the view it was planned on; the commit is refused if another is current. CURRENT (-1): any view
    kept          the facts by kind: how many can still be read, and how many were ever stated. Empty: not counted
    at            seconds since the epoch
    cost          US dollars; None if unknown
    undone        neither the current view nor a parent of it comes from this compaction
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
    kept: dict[str, tuple[int, int]] = {}
    view_before: int = CURRENT
    view_after: int = CURRENT
    id: str = ""
    undone: bool = False

    @property
    def is_by_hand(self) -> bool:
        """A change that a person asked for, such as a message that was collapsed; no compaction."""
        return bool(BY_HAND.intersection(self.stages))


class SummaryPlace(msgspec.Struct, frozen=True, tag_field="type", tag="summary"):
    """A summary inside a stored view, by its row among the summaries."""

    row: int


StoredItem = Verbatim | Stub | SummaryPlace | Marker


class StoredView(msgspec.Struct, frozen=True):
    """A view as it is stored: summaries in rows of their own."""

    items: tuple[StoredItem, ...]
    tail: int
    aside: tuple[Range, ...] = ()
    since: int = 0
    """The first message that was appended under it; 0 for the first view."""
    left: int = CURRENT
    """The view that was current before it, if that is not its parent."""
    files: int = 0
    """The rewind of files (`nca.file_history`) that went with it; 0: none was recorded."""
    pins: tuple[int, ...] = ()
    """The messages that were pinned with it, or unpinned: its compaction's stage says which."""


FIRST = StoredView((), 1)
"""View 0, which shows the whole log."""

_STORED = CompactionRecord.__struct_fields__[:10]
"""The fields that are columns of `compactions`: trigger to kept."""
RECORD = (
    f"SELECT {', '.join(f'c.{name}' for name in _STORED)}, v.parent, v.number"  # noqa: S608
    " FROM compactions c JOIN views v ON v.session = c.session AND v.number = c.view WHERE c.session = ?"
)
"""The query of the rows for `as_record`."""


def stored_items(connection: Transaction, session: int, view: View) -> Iterator[StoredItem]:
    """The view's items with its summaries in rows; one that an earlier view has too is not written again."""
    for item in view.items:
        yield SummaryPlace(insert_summary(connection, session, item)) if isinstance(item, Summary) else item


def insert_summary(connection: Transaction, session: int, summary: Summary) -> int:
    """Write a summary unless an equal one is there; returns its row. Runs inside the caller's transaction."""
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


def insert_record(connection: Transaction, session: int, view: int, record: CompactionRecord) -> None:
    stages = msgspec.json.encode([clean_text(stage) for stage in record.stages]).decode()
    rest = (getattr(record, name) for name in _STORED[2:-1])
    kept = msgspec.json.encode(record.kept).decode()
    connection.execute(
        "INSERT INTO compactions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session, view, clean_text(record.trigger), stages, *rest, kept),
    )


def set_pins(connection: Transaction, session: int, pins: Sequence[int], *, is_pinned: bool) -> None:
    add, take = (
        "INSERT INTO pins VALUES (?, ?) ON CONFLICT DO NOTHING",
        "DELETE FROM pins WHERE session = ? AND seq = ?",
    )
    connection.executemany(add if is_pinned else take, [(session, seq) for seq in pins])


def go_to(connection: Transaction, session: int, view: int, *, is_use: bool = True) -> None:
    """Put a view in force. `is_use`: the session is the one used last then."""
    connection.execute("UPDATE sessions SET head_view = ? WHERE number = ?", (view, session))
    if is_use:
        log.touch(connection, session, time.time())


def as_record(row: Row, *, undone: bool) -> CompactionRecord:
    values = dict(zip((*_STORED, "view_before", "view_after"), row, strict=True))
    stages: tuple[str, ...] = ()
    kept: dict[str, tuple[int, int]] = {}
    with suppress(StoreDamaged):
        stages = decode(values["stages"], tuple[str, ...], "a compaction's stages")
    with suppress(StoreDamaged):
        kept = decode(values["kept"], dict[str, tuple[int, int]], "what a compaction kept")
    values |= {"stages": stages, "kept": kept}
    return CompactionRecord(**values, id=record_id(values["view_after"]), undone=undone)


def record_id(view: int) -> str:
    return f"c{view}"


_VERSION_BITS = 62

_DELETE = "DELETE FROM program_views WHERE key = ? AND version = ? RETURNING key"


class StoredState(NamedTuple):
    """The state of a view as JSON. `version`: no other save has it."""

    body: str
    version: int


class ProgramViews:
    """One row for each key; each save replaces it. Any number of threads and processes may use one store."""

    def __init__(self, database: SessionDatabase, refuse_reader: Callable[[], None]) -> None:
        self._database, self._refuse_reader = database, refuse_reader

    def read(self, key: str) -> StoredState | None:
        """The state saved last, if any. Raises StoreError."""
        row = self._database.row("SELECT body, version FROM program_views WHERE key = ?", (clean_text(key),))
        return StoredState(*row) if row else None

    def save(self, key: str, body: str, replaces: StoredState | None) -> None:
        """Save a state in place of `replaces`, which was read before; None: in place of nothing. Durable on return.

        Raises ViewInUse and changes nothing if somebody has saved or deleted it since; StoreError.
        """
        self._refuse_reader()
        name = clean_text(key)
        with self._database.transaction() as connection:
            # If several write at once, the second waits for the first, and then finds no such row.
            is_first = replaces is None or connection.execute(_DELETE, (name, replaces.version)).get is not None
            row = (secrets.randbits(_VERSION_BITS), name, clean_text(body), time.time())
            inserts = "INSERT INTO program_views VALUES (?, ?, ?, ?) ON CONFLICT (key) DO NOTHING RETURNING key"
            if not is_first or connection.execute(inserts, row).get is None:
                raise _changed(key)

    def delete(self, key: str, stored: StoredState | None = None) -> None:
        """Delete what was saved, if anything was: the view starts over. Raises StoreError.

        stored: the state read before; raises ViewInUse and deletes nothing if somebody has saved or deleted it since
        """
        self._refuse_reader()
        with self._database.transaction() as connection:
            if stored is None:
                connection.execute("DELETE FROM program_views WHERE key = ?", (clean_text(key),))
            elif connection.execute(_DELETE, (clean_text(key), stored.version)).get is None:
                raise _changed(key)


def _changed(key: str) -> ViewInUse:
    return ViewInUse(
        f"Another request has fitted the conversation {key!r} meanwhile.", advice="Nothing was changed; ask again."
    )
