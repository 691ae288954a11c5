"""Read and write a whole session as one value, for export, import and fork.

Add to an imported session what its file has more by now.

Reading needs no transaction: everything is append-only, so each part is read before the part that it refers to (pins
and views before the log), and what another process adds meanwhile is ignored.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from nca.context.view import Marker, Range, Stub, Summary, Verbatim, View, check_partition, is_in
from nca.errors import StoreDamaged, StoreError, UsageError
from nca.messages import Entry, clean_text
from nca.sessions import log, usage, view_rows
from nca.sessions.encoding import encode
from nca.sessions.session import Kind, Session, SessionInfo, as_name
from nca.sessions.sql import SessionDatabase, Transaction
from nca.sessions.usage import UsageRow
from nca.sessions.view_rows import BESIDE, CURRENT, CompactionRecord, StoredItem, StoredView, SummaryPlace, go_to

FORKED = "(fork) "
"""Before the title of a fork."""


class ViewCopy(msgspec.Struct, frozen=True):
    """A view by its number. `parent`: the view before it, None for view 0. Summaries are in `SessionCopy.summaries`,
    the first of them in place 1. The rest is that of `StoredView`."""

    number: int
    parent: int | None
    items: tuple[StoredItem, ...]
    tail: int
    aside: tuple[Range, ...] = ()
    since: int = 0
    left: int = CURRENT
    files: int = 0
    pins: tuple[int, ...] = ()


class SessionCopy(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in a session except an answer that is being streamed. `head_view`: the current view.

    The names of the fields in JSON are those of an exported file.
    """

    info: SessionInfo = msgspec.field(name="session")
    entries: tuple[Entry, ...] = msgspec.field(name="messages")
    views: tuple[ViewCopy, ...]
    head_view: int
    summaries: tuple[Summary, ...] = ()
    compactions: tuple[CompactionRecord, ...] = ()
    pins: tuple[int, ...] = ()
    usage: tuple[UsageRow, ...] = ()

    @property
    def conversation(self) -> tuple[Entry, ...]:
        """The messages without those that are aside: rewound, or asked beside it."""
        aside = self.view(self.head_view).aside
        return tuple(entry for entry in self.entries if not is_in(entry.seq, aside))

    def with_info(self, **changes: Any) -> SessionCopy:
        return msgspec.structs.replace(self, info=msgspec.structs.replace(self.info, **changes))

    def view(self, number: int) -> View:
        """A view with its summaries. Raises StoreError if there is no such view."""
        for copy in self.views:
            if copy.number == number:
                return self.shown_by(copy)
        raise StoreError(f"There is no view {number}")

    def shown_by(self, copy: ViewCopy) -> View:
        return View(tuple(self._item(item) for item in copy.items), copy.tail, copy.aside)

    def _item(self, item: StoredItem) -> Verbatim | Stub | Summary | Marker:
        if not isinstance(item, SummaryPlace):
            return item
        if not 1 <= item.row <= len(self.summaries):
            raise StoreError(f"A view names summary {item.row}; there are {len(self.summaries)}")
        return self.summaries[item.row - 1]


FIRST_VIEW = ViewCopy(0, None, (), 1)
"""The view that shows the whole log."""


def new_copy(
    entries: Sequence[Entry], *, directory: str, name: str = "", model: str = "", kind: Kind = "chat"
) -> SessionCopy:
    """A new session that has only a log."""
    now = time.time()
    title = log.title_of([entry.message for entry in entries])
    info = SessionInfo("", name, directory, model, now, now, len(entries), False, title, kind)
    return SessionCopy(info=info, entries=tuple(entries), views=(FIRST_VIEW,), head_view=0)


def read(session: Session) -> SessionCopy:
    """Read a session. Raises StoreError if it was deleted, StoreDamaged if a part cannot be read."""
    pins = sorted(session.views.pins())
    head_view = session.views.current_id
    stored = session.views.stored()
    known = {number for number, _, _ in stored}
    records = [record for record in session.views.records() if record.view_after in known]
    used = [row for row in session.usage.rows() if row.view_id in known]
    summaries = session.views.summaries_by_row()
    places = {row: place for place, row in enumerate(summaries, 1)}
    entries = session.log.entries()
    return SessionCopy(
        info=msgspec.structs.replace(session.info, messages=len(entries)),
        entries=tuple(entries),
        views=tuple(
            ViewCopy(number, parent, tuple(_renumbered(view.items, places)), *msgspec.structs.astuple(view)[1:])
            for number, parent, view in stored
        ),
        head_view=head_view,
        summaries=tuple(summaries.values()),
        compactions=tuple(records),
        pins=tuple(pins),
        usage=tuple(row for row in used if row.seq <= len(entries)),
    )


def cut(copy: SessionCopy, at: int) -> SessionCopy:
    """The session up to message `at` and the results of its calls, without usage: that stays with the original.

    It has the views that there were then: the one in force is the newest of the original's that was made before a later
    message came. Undo and redo use the remaining views. Raises UsageError if there is no such message.
    """
    last = len(copy.entries)
    if not 1 <= at <= last:
        valid = f"1 to {last:,}" if last > 1 else "1" if last else "none, it is empty"
        raise UsageError(
            f"There is no message {at} in session {copy.info.id}; valid: {valid}.",
            advice=f"`nca sessions show {copy.info.id}` numbers them.",
        )
    while at < len(copy.entries) and copy.entries[at].message.role == "tool":
        at += 1
    left = {view.number: view for view in copy.views if max(view.tail, view.since) <= at + 1}
    parents = {view.number: view.parent for view in copy.views}

    def nearest(number: int | None) -> int | None:
        while number is not None and number not in left:
            number = parents[number]
        return number

    return msgspec.structs.replace(
        copy.with_info(messages=at),
        entries=copy.entries[:at],
        views=tuple(
            msgspec.structs.replace(
                view, parent=nearest(view.parent), left=CURRENT if view.left == CURRENT else nearest(view.left) or 0
            )
            for view in left.values()
        ),
        head_view=nearest(copy.head_view) or 0,
        compactions=tuple(record for record in copy.compactions if record.view_after in left),
        pins=tuple(seq for seq in copy.pins if seq <= at),
        usage=(),
    )


def as_fork(copy: SessionCopy, name: str = "") -> SessionCopy:
    """The copy as a session of its own, without usage."""
    name = name or (f"{copy.info.name} (fork)" if copy.info.name else "")
    model = "" if copy.info.is_as_imported else copy.info.model
    copy = copy.with_info(name=name, model=model, is_pinned=False, has_forks=False, origin=None)
    return msgspec.structs.replace(copy, usage=())


def as_new(copy: SessionCopy, *, is_fork: bool) -> SessionCopy:
    """The copy as a session that is used now. Its title is what the first message of the conversation says."""
    if not is_fork:
        # It may be somebody else's session: their choice says nothing about this person's models.
        copy = copy.with_info(chosen_model="")
    aside = next((view.aside for view in copy.views if view.number == copy.head_view), ())
    title = log.title_of([entry.message for entry in copy.entries if not is_in(entry.seq, aside)])
    return copy.with_info(title=title, updated_at=time.time())


def with_end(copy: SessionCopy, entries: Sequence[Entry], used: Sequence[UsageRow]) -> SessionCopy:
    """A fork that ends with other messages: it has the messages before the first of them, and these."""
    at = min(entries[0].seq - 1, len(copy.entries))
    copy = msgspec.structs.replace(copy, entries=copy.entries[:at])
    if at:
        copy = cut(copy, at)
    else:
        info = copy.info
        copy = new_copy((), directory=info.directory, name=info.name, model=info.model, kind=info.kind)
    views = {view.number for view in copy.views}
    ends = tuple(msgspec.structs.replace(entry, seq=at + place) for place, entry in enumerate(entries, 1))
    return msgspec.structs.replace(
        as_fork(copy), entries=copy.entries + ends, usage=tuple(row for row in used if row.view_id in views)
    )


def check(copy: SessionCopy) -> None:
    """Raise StoreError, which names the part, if the parts are inconsistent."""
    head = len(copy.entries)
    if [entry.seq for entry in copy.entries] != list(range(1, head + 1)):
        raise StoreError("The messages are not numbered 1, 2, 3 …")
    numbers: set[int] = set()
    for view in sorted(copy.views, key=lambda view: view.number):
        is_first = view.number == 0
        if view.number in numbers or (view.parent is None) != is_first or not (is_first or view.parent in numbers):
            raise StoreError(f"View {view.number} has no view before it, or a number that another one has")
        if view.left not in {CURRENT, *numbers}:
            raise StoreError(f"View {view.number} left view {view.left}, which does not come before it")
        numbers.add(view.number)
        try:
            check_partition(copy.shown_by(view))
        except ValueError as error:
            raise StoreError(f"View {view.number}: {error}") from error
        if view.tail > head + 1:
            raise StoreError(f"View {view.number} covers up to message {view.tail - 1}; there are {head}")
    if copy.head_view not in numbers:
        raise StoreError(f"The view in force, {copy.head_view}, is missing")
    if sorted(record.view_after for record in copy.compactions) != sorted(numbers - {0}):
        raise StoreError("The compactions are not those that the views come from")
    if any(not 1 <= seq <= head for pins in (copy.pins, *(view.pins for view in copy.views)) for seq in pins):
        raise StoreError("A pin is on a message that is not there")
    if any(row.view_id not in numbers for row in copy.usage):
        raise StoreError("The usage of a call is that of a view which is not there")


def read_exactly(session: Session) -> SessionCopy:
    """Read a session, each message to the byte. Raises StoreDamaged if a part is damaged: no copy can hold that."""
    copy = read(session)
    bodies = [body for (body,) in session.rows("SELECT body FROM messages WHERE session = ? ORDER BY seq")]
    counts = session.row(
        "SELECT (SELECT count(*) FROM views WHERE session = ?1), (SELECT count(*) FROM compactions WHERE session = ?1),"
        " (SELECT count(*) FROM summaries WHERE session = ?1), (SELECT count(*) FROM pins WHERE session = ?1),"
        " (SELECT count(*) FROM usage WHERE session = ?1)"
    )
    held = (copy.views, copy.compactions, copy.summaries, copy.pins, copy.usage)
    if counts != tuple(map(len, held)) or bodies != [encode(entry.message) for entry in copy.entries]:
        raise not_whole(session.info.id)
    return copy


def not_whole(session_id: str) -> StoreDamaged:
    return StoreDamaged(f"Session {session_id} is damaged and no copy can hold all of it")


def add(database: SessionDatabase, session_id: str, copy: SessionCopy, *, forked_from: int | None = None) -> bool:
    """Add the copy as a session, in one transaction; False if there is one with this id. Raises StoreError.

    forked_from  the number of the session that it was forked from, from which its name or its title tells it
    """
    check(copy)
    with database.transaction() as connection:
        if connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).get:
            return False
        write(database, connection, session_id, copy)
        if forked_from is not None:
            connection.execute("UPDATE sessions SET has_forks = 1 WHERE number = ?", (forked_from,))
            # In front: a title is as long as a first message, and lists cut its end.
            marked = "UPDATE sessions SET title = ? || title WHERE id = ? AND name = '' AND title <> ''"
            connection.execute(marked, (FORKED, session_id))
    return True


def write(database: SessionDatabase, connection: Transaction, session_id: str, copy: SessionCopy) -> int:
    """Write the copy as a new session in the caller's transaction and return its number. It is the newest in lists."""
    info = copy.info
    number = connection.execute(
        "INSERT INTO sessions"
        " (id, name, directory, model, title, is_pinned, kind, has_forks, chosen_model, created_at, updated_at, origin,"
        " touched) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " (SELECT coalesce(max(touched), 0) + 1 FROM sessions)) RETURNING number",
        (
            *(session_id, as_name(info.name), clean_text(info.directory), clean_text(info.model), as_name(info.title)),
            *(int(info.is_pinned), info.kind, int(info.has_forks), as_name(info.chosen_model)),
            *(info.created_at, info.updated_at, encode(info.origin) if info.origin else ""),
        ),
    ).get
    log.insert(database, connection, number, copy.entries)
    connection.executemany("INSERT INTO pins VALUES (?, ?)", [(number, seq) for seq in sorted(set(copy.pins))])
    insert_views(connection, number, copy, copy.views)
    usage.insert(connection, number, copy.usage)
    connection.execute("UPDATE sessions SET head_view = ? WHERE number = ?", (copy.head_view, number))
    return int(number)


def insert_views(connection: Transaction, session: int, copy: SessionCopy, views: Sequence[ViewCopy]) -> None:
    """Write these views of the copy with the summaries that are in them, and the compactions that made them."""
    wanted = {item.row for view in views for item in view.items if isinstance(item, SummaryPlace)}
    rows = {
        place: view_rows.insert_summary(connection, session, summary)
        for place, summary in enumerate(copy.summaries, 1)
        if place in wanted
    }
    for view in sorted(views, key=lambda view: view.number):
        body = encode(StoredView(tuple(_renumbered(view.items, rows)), *msgspec.structs.astuple(view)[3:]))
        connection.execute("INSERT INTO views VALUES (?, ?, ?, ?)", (session, view.number, view.parent, body))
    written = {view.number for view in views}
    for record in copy.compactions:
        if record.view_after in written:
            view_rows.insert_record(connection, session, record.view_after, record)


def _renumbered(items: Iterable[StoredItem], rows: dict[int, int]) -> Iterable[StoredItem]:
    for item in items:
        yield SummaryPlace(rows[item.row]) if isinstance(item, SummaryPlace) else item


def extend(session: Session, copy: SessionCopy) -> None:
    """Append the later messages of `copy`, which begins with the messages of the session, with its views and usage.

    If it still has the name that it came with, it gets the copy's.
    If only views were added, they are; else (a branch was left) the newest one is added as one more current view.
    Raises StoreError, and changes nothing, if the session has messages that the copy does not have.
    """
    check(copy)
    before = read(session)
    if len(before.entries) > len(copy.entries):
        raise StoreError("The session has more messages than its file")
    with session.transaction() as connection:
        number = session.number
        log.insert(session.database, connection, number, copy.entries[len(before.entries) :])
        if _continues(before, copy):
            insert_views(connection, number, copy, copy.views[len(before.views) :])
            go_to(connection, number, copy.head_view)
            used = copy.usage[len(before.usage) :]
        else:
            view = _put_last(connection, session, before, copy)
            used = tuple(msgspec.structs.replace(row, view_id=view) for row in copy.usage[len(before.usage) :])
        usage.insert(connection, number, used)
        if (origin := copy.info.origin) is not None:
            origin = msgspec.structs.replace(origin, views=_views(session))
            earlier = before.info.origin
            is_theirs = earlier is not None and before.info.name == earlier.name
            name = copy.info.name if is_theirs else before.info.name
            connection.execute(
                "UPDATE sessions SET origin = ?, name = ? WHERE number = ?", (encode(origin), name, number)
            )


def has_gone_on(session: Session) -> bool:
    """Whether anything was added to an imported session, or undone in it, since it was imported."""
    origin = session.info.origin
    if origin is None:
        return True
    then = origin.messages, origin.views - 1, origin.views
    return (session.log.head, session.views.current_id, _views(session)) != then


def _views(session: Session) -> int:
    return session.integer("SELECT max(number) FROM views WHERE session = ?") + 1


def _continues(before: SessionCopy, after: SessionCopy) -> bool:
    """Whether the views of `after` begin with those of `before`, the last of them current."""
    views, summaries = after.views[: len(before.views)], after.summaries[: len(before.summaries)]
    same = [_shown(one) for one in views] == [_shown(one) for one in before.views]
    return same and summaries == before.summaries and before.head_view == len(before.views) - 1


def _shown(view: ViewCopy) -> ViewCopy:
    return msgspec.structs.replace(view, since=0)


def _put_last(connection: Transaction, session: Session, before: SessionCopy, after: SessionCopy) -> int:
    """Put the current view in `after` in force, as a child of the one in force; returns its number."""
    made = [one for one in after.compactions if one.view_after == after.head_view]
    beside = CompactionRecord(trigger=BESIDE, stages=(BESIDE,))
    record = msgspec.structs.replace(made[0] if made else beside, view_before=before.head_view)
    return session.views.put_in_force(connection, after.view(after.head_view), record).view_after
