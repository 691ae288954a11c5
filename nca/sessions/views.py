"""The views of a session: commit, undo, redo, and the compactions that made them.

The views of a session form a tree. A compaction adds a child to the current view and puts the child in force. Undo
goes to the parent; redo goes to the newest child, which is the one undone last. A new compaction has no children, so
there is nothing to redo. View 0 shows the whole log and has no row in `compactions`.

A view that puts messages aside (`nca.sessions.rewinds`) is a child of the view that it begins from, so the parents of
the current view are the compactions in effect.
"""

from __future__ import annotations

import time
from contextlib import suppress

import msgspec

from nca.context.view import Summary, View, check_partition, put_aside
from nca.errors import StoreDamaged, StoreError
from nca.sessions import log, view_rows
from nca.sessions.access import SessionAccess
from nca.sessions.encoding import decode, encode
from nca.sessions.sql import Transaction
from nca.sessions.view_rows import (
    BESIDE,
    CURRENT,
    PIN,
    PUTS_ASIDE,
    REDO,
    UNDO,
    UNPIN,
    CompactionRecord,
    StoredView,
    SummaryPlace,
)

__all__ = ["CURRENT", "CompactionRecord", "SessionViews", "SummaryPlace"]


_PUTS_ASIDE_SQL = "(" + ", ".join(f"'{trigger}'" for trigger in sorted(PUTS_ASIDE)) + ")"


class SessionViews:
    """The views of one session, the compactions that made them, and its pins. A call that writes is durable."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._sound: set[int] = {0}
        """Views that were found to be readable."""
        self._in_effect: tuple[int, tuple[int, float | None]] | None = None
        """The newest answer of `totals_in_effect`, and for which view."""

    @property
    def current_id(self) -> int:
        """The number of the current view; 0 is the one that shows the whole log."""
        return self.nearest(self._head_view())

    @property
    def is_damaged(self) -> bool:
        """Whether the last compaction cannot be read. A view before it is then in force."""
        return self.current_id != self._head_view()

    def current(self) -> View:
        """The view in force."""
        return self.load(self.current_id)

    def load(self, number: int) -> View:
        """A view, exactly as it was committed. Raises StoreDamaged if it cannot be read, or if there is none."""
        stored = self.stored_view(number)
        rows = [item.row for item in stored.items if isinstance(item, SummaryPlace)]
        summaries = {summary: self._summary(summary) for summary in rows}
        items = (summaries[item.row] if isinstance(item, SummaryPlace) else item for item in stored.items)
        view = View(tuple(items), stored.tail, stored.aside)
        try:
            check_partition(view)
        except ValueError as error:
            raise StoreDamaged(f"Cannot read view {number}: {error}") from error
        return view

    def stored_view(self, number: int) -> StoredView:
        """A view as it is stored, without its summaries. Raises StoreDamaged as `load` does."""
        if number == 0:
            return view_rows.FIRST
        row = self._access.row("SELECT body FROM views WHERE session = ? AND number = ?", number)
        if row is None:
            raise StoreDamaged(f"There is no view {number}")
        stored = decode(row[0], StoredView, f"view {number}")
        return stored if stored.left < number else msgspec.structs.replace(stored, left=CURRENT)

    def commit(
        self,
        view: View,
        record: CompactionRecord,
        *,
        expected_head: int | None = None,
        parent: int = CURRENT,
        files: int = 0,
        pins: tuple[int, ...] = (),
    ) -> CompactionRecord:
        """Put `view` in force with its summaries and the record, in one transaction. Returns the completed record.

        expected_head  the newest seq that the planner knew; messages appended since are in the view's tail
        parent         the view that it begins from
        files          the rewind of files that goes with it
        pins           messages that are pinned with it; unpinned, if the record's stage says so
        Raises StoreError, and changes nothing, if the view is not a partition of the log, reaches past its end, was
        planned on a longer log than this, or on a view that is no longer in force (`record.view_before`).
        """
        with self._access.transaction() as connection:
            if (expected_head or 0) > (head := log.head(connection, self._access.number)):
                raise StoreError(f"The compaction was not applied: it covers more than the {head} messages of the log")
            return self.put_in_force(connection, view, record, parent=parent, files=files, pins=pins)

    def put_in_force(
        self,
        connection: Transaction,
        view: View,
        record: CompactionRecord,
        *,
        parent: int = CURRENT,
        files: int = 0,
        pins: tuple[int, ...] = (),
    ) -> CompactionRecord:
        """The same inside the caller's transaction."""
        session = self._access.number
        try:
            check_partition(view)
        except ValueError as error:
            raise StoreError(f"The compaction was not applied: {error}") from error
        head = log.head(connection, session)
        current, number = connection.execute(
            "SELECT head_view, (SELECT max(number) + 1 FROM views WHERE session = ?1) FROM sessions WHERE number = ?1",
            (session,),
        ).get
        current = self.nearest(current)
        if view.tail > head + 1:
            raise StoreError(f"The compaction was not applied: it covers more than the {head} messages of the log")
        if any(not 1 <= seq <= head for seq in pins):
            raise StoreError("A pin is on a message that is not in this session")
        if record.view_before not in (CURRENT, current):
            raise StoreError("The compaction was not applied: the view has changed since it was planned")
        if record.trigger in PUTS_ASIDE:
            log.retitle(connection, session, self._access.database.said, self.stored_view(current).aside, view.aside)
        parent = current if parent == CURRENT else parent
        items = tuple(view_rows.stored_items(connection, session, view))
        left = CURRENT if parent == current else current
        body = encode(StoredView(items, view.tail, view.aside, since=head + 1, left=left, files=files, pins=pins))
        connection.execute("INSERT INTO views VALUES (?, ?, ?, ?)", (session, number, parent, body))
        at = record.at or time.time()
        view_rows.insert_record(connection, session, number, msgspec.structs.replace(record, at=at))
        view_rows.set_pins(connection, session, pins, is_pinned=UNPIN not in record.stages)
        view_rows.go_to(connection, session, number, is_use=view_rows.RESTORE not in record.stages)
        return msgspec.structs.replace(
            record, id=view_rows.record_id(number), at=at, view_before=parent, view_after=number, undone=False
        )

    def undo(self) -> CompactionRecord | None:
        """Go back to the view before the last compaction in effect, and its pins; None if there is none.

        Later messages stay, and what has been put aside since stays aside.
        """
        current = self.current_id
        if (number := self._made_by(current)) == 0:
            return None
        record = self.record(number)
        before = self.nearest(record.view_before)
        view = put_aside(self.load(before), self.load(current).aside)
        with self._access.transaction() as connection:
            if number == current:
                view_rows.go_to(connection, self._access.number, before)
            else:
                self.put_in_force(connection, view, CompactionRecord(trigger=UNDO, stages=(UNDO,)), parent=before)
            self._set_pins(connection, record, is_undone=True)
        return msgspec.structs.replace(record, undone=True)

    def _made_by(self, number: int) -> int:
        """The view of the compaction that a view comes from: messages were only put aside since. 0 if there is none."""
        while number and self.record(number).trigger in PUTS_ASIDE:
            number = self.nearest(self.record(number).view_before)
        return number

    def _set_pins(self, connection: Transaction, record: CompactionRecord, *, is_undone: bool) -> None:
        pins = self.stored_view(record.view_after).pins
        is_pinned = (UNPIN in record.stages) == is_undone
        view_rows.set_pins(connection, self._access.number, pins, is_pinned=is_pinned)

    def redo(self) -> CompactionRecord | None:
        """Apply the compaction undone last again; None if there is none, or a newer compaction replaced it."""
        number = self.redo_id
        if number is None:
            return None
        record = self.record(self._made_by(number))
        undone = self.load(number)
        view = put_aside(undone, self.current().aside)
        with self._access.transaction() as connection:
            if view == undone:
                view_rows.go_to(connection, self._access.number, number)
            else:
                self.put_in_force(connection, view, CompactionRecord(trigger=BESIDE, stages=(BESIDE,)), parent=number)
            self._set_pins(connection, record, is_undone=False)
        return record

    @property
    def redo_id(self) -> int | None:
        """The number of the view that `redo` would go to, whatever was only put aside since."""
        current = self.current_id
        while (number := self._undone_from(current)) == CURRENT:
            if not current or (record := self.record(current)).trigger not in (BESIDE, REDO):
                return None
            current = self.nearest(record.view_before)
        return number if self.is_sound(number) else None

    def _undone_from(self, number: int) -> int:
        """The view that was left last when one went back to this view; CURRENT for none."""
        if number and self.record(number).trigger == UNDO:
            return self.stored_view(number).left
        row = self._access.row(
            "SELECT max(number) FROM views LEFT JOIN compactions ON compactions.session = views.session"  # noqa: S608
            " AND view = number WHERE views.session = ? AND parent = ?"
            f" AND coalesce(trigger, '') NOT IN {_PUTS_ASIDE_SQL}",
            number,
        )
        return CURRENT if row is None or row[0] is None else int(row[0])

    def compactions(self) -> list[CompactionRecord]:
        """Every compaction, oldest first, undone ones too."""
        return [record for record in self.records() if record.trigger not in PUTS_ASIDE]

    def records(self) -> list[CompactionRecord]:
        """The origin of each view but the first: a compaction, or messages that were put aside."""
        rows = self._access.rows(f"{view_rows.RECORD} ORDER BY c.view")
        parents = {number: parent for *_, parent, number in rows}
        in_force, number = set(), self.current_id
        while number in parents:
            in_force.add(number)
            number = parents[number]
        return [view_rows.as_record(row, undone=row[-1] not in in_force) for row in rows]

    def totals_in_effect(self) -> tuple[int, float | None]:
        """The savings (tokens) and cost (US dollars; None: unknown) of the compactions behind the current view."""
        if self._access.lasting_row("SELECT 1 FROM sessions WHERE number = ?") is None:
            return 0, None
        current = self.current_id
        if self._in_effect is not None and self._in_effect[0] == current:
            return self._in_effect[1]
        row = self._access.row(
            "WITH RECURSIVE line (number) AS (VALUES (CAST(?2 AS INTEGER)) UNION"  # noqa: S608
            " SELECT parent FROM views JOIN line USING (number) WHERE session = ?1 AND parent IS NOT NULL)"
            " SELECT coalesce(sum(tokens_before - tokens_after), 0), sum(cost)"
            " FROM compactions JOIN line ON view = number WHERE session = ?1"
            f" AND trigger NOT IN {_PUTS_ASIDE_SQL}",
            current,
        )
        totals = (int(row[0]), row[1]) if row else (0, None)
        self._in_effect = current, totals
        return totals

    def summaries(self) -> list[Summary]:
        """Every summary, oldest first, those of undone compactions too."""
        return list(self.summaries_by_row().values())

    def summaries_by_row(self) -> dict[int, Summary]:
        """The same, by the numbers that stored views refer to; without those that are damaged."""
        found = {}
        for row, body in self._access.rows("SELECT number, body FROM summaries WHERE session = ? ORDER BY number"):
            with suppress(StoreDamaged):
                found[row] = decode(body, Summary, "a summary")
        return found

    def stored(self) -> list[tuple[int, int | None, StoredView]]:
        """Every view that can be read, with its number and the number of the view before it, oldest first."""
        rows = self._access.rows("SELECT number, parent FROM views WHERE session = ? ORDER BY number")
        return [
            (number, self.nearest(parent) if number else None, self._complete(number))
            for number, parent in rows
            if self.is_sound(number)
        ]

    def pins(self) -> frozenset[int]:
        """The seqs of the pinned messages."""
        return frozenset(seq for (seq,) in self._access.rows("SELECT seq FROM pins WHERE session = ?"))

    def same_as_current(self) -> list[int]:
        """The current view, and those before it that differ from it in pins alone, newest first."""
        same = [self.current_id]
        while {PIN, UNPIN}.intersection((record := self.record(same[-1])).stages):
            before = self.nearest(record.view_before)
            if self.load(before) != self.load(same[-1]):
                break
            same.append(before)
        return same

    def record(self, view: int) -> CompactionRecord:
        """The origin of a view other than the first."""
        if (row := self._access.row(f"{view_rows.RECORD} AND c.view = ?", view)) is not None:
            return view_rows.as_record(row, undone=False)
        # Its row is damaged. The view is not, so there is a way back from it.
        (parent,) = self._access.row("SELECT parent FROM views WHERE session = ? AND number = ?", view) or (0,)
        return CompactionRecord(
            trigger="unknown", id=view_rows.record_id(view), view_before=parent or 0, view_after=view
        )

    def is_sound(self, number: int) -> bool:
        """Whether a view is there and can be read."""
        return self.nearest(number) == number

    def _complete(self, number: int) -> StoredView:
        """A stored view; `left` is the nearest sound view to the one that it left."""
        stored = self.stored_view(number)
        left = CURRENT if stored.left == CURRENT else self.nearest(stored.left)
        return msgspec.structs.replace(stored, left=left)

    def _head_view(self) -> int:
        row = self._access.lasting_row("SELECT head_view FROM sessions WHERE number = ?")
        if row is None:
            raise StoreError("The session is no longer in the store")
        return int(row[0])

    def nearest(self, number: int) -> int:
        """This view, or if it is damaged the nearest before it that is not; the first one never is."""
        while number not in self._sound:
            try:
                if self.load(number).tail > self._access.integer(log.HEAD) + 1:
                    raise StoreDamaged(f"View {number} covers more than the log")
                self._sound.add(number)
            except StoreDamaged:
                row = self._access.row("SELECT parent FROM views WHERE session = ? AND number = ?", number)
                number = row[0] if row and 0 <= (row[0] or 0) < number else 0
        return number

    def _summary(self, number: int) -> Summary:
        row = self._access.row("SELECT body FROM summaries WHERE session = ? AND number = ?", number)
        if row is None:
            raise StoreDamaged(f"Summary {number} is missing")
        return decode(row[0], Summary, f"summary {number}")
