"""Going back in a session, and forward again: which messages of its log are not part of the conversation.

The log keeps everything. Going back to before a message activates a view that shows what was shown when that
message came, with the message and all that followed it aside. The messages left are another branch; going forward is a
view that shows that branch again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nca.context.view import View, is_in, put_aside
from nca.errors import StoreError
from nca.messages import Entry, Message
from nca.sessions.access import SessionAccess
from nca.sessions.log import SessionLog
from nca.sessions.view_rows import BESIDE, CURRENT, REDO, REWIND, CompactionRecord, StoredView
from nca.sessions.views import SessionViews

Target = tuple[int, View]
"""The view that another one begins from, and that other view."""


class SessionRewinds:
    """Reads and writes the views of one session."""

    def __init__(self, access: SessionAccess, log: SessionLog, views: SessionViews) -> None:
        self._access = access
        self._log = log
        self._views = views

    def before(self, seq: int) -> Target:
        """The view that shows what was shown when message `seq` came, without it and what followed.

        A compaction that was undone or redone since counts as it does now. Raises StoreError for no such message.
        """
        head = self._log.head
        if not 1 <= seq <= head:
            raise StoreError(f"There is no message {seq} in this session")
        base = self._in_force_at(seq)
        return base, put_aside(self._views.load(base), [(seq, head)])

    def end_of(self, rewind: int) -> Target:
        """The view that shows the branch which this rewind left, up to its end."""
        stored, parent = self._node(rewind)
        left, head = self._left(stored, parent), self._log.head
        view = self._views.load(left)
        return left, put_aside(view, [(stored.since, head)]) if stored.since <= head else view

    def files_since(self, rewind: int) -> tuple[int, int]:
        """The first rewind of files that went with a rewind, or came after it before anything was said; 0 for none.

        Also the first message that came after the rewind.
        """
        since = self._views.stored_view(rewind).since
        number_in = self._access.database.number_in
        files = self._access.integer(
            f"SELECT min({number_in('files')}) FROM views WHERE session = ? AND number >= ?"  # noqa: S608
            f" AND {number_in('since')} = ? AND {number_in('files')} > 0",
            rewind,
            since,
        )
        return files, since

    @property
    def newest_files(self) -> int:
        """The newest rewind of files that went with one of this session; 0 for none."""
        files = self._access.database.number_in("files")
        return self._access.integer(f"SELECT max({files}) FROM views WHERE session = ?")  # noqa: S608

    @property
    def newest(self) -> int | None:
        """The rewind that can be taken back now: nothing was said in the conversation since."""
        newest = self._last_shown(self._views.current_id, self._log.head)
        number = next((one for one in self._in_force() if self._views.record(one).trigger == REWIND), 0)
        return number if number and newest < self._views.stored_view(number).since else None

    def ends(self) -> dict[int, int]:
        """The rewinds that left a branch which is aside now, and the last message of each branch.

        Also those that took files alone back, once more was said: `newest` has them until then.
        """
        current = self._views.current()
        in_force = set(self._in_force())
        said = self._last_shown(self._views.current_id, self._log.head)
        found = {}
        for record in self._views.records():
            number = record.view_after
            if record.trigger != REWIND or not self._views.is_sound(number):
                continue
            stored, parent = self._node(number)
            left = self._left(stored, parent)
            last = self._last_shown(left, stored.since - 1)
            if stored.files and stored.aside == self._views.stored_view(left).aside:
                is_offered = number in in_force and stored.since <= said
            else:
                is_offered = is_in(last, current.aside) and not self._only_moved(left, stored.since)
            if is_offered:
                found[number] = last
        return found

    def append_beside(self, messages: Sequence[Message]) -> list[Entry]:
        """Append messages that are not part of the conversation."""
        with self._access.transaction() as connection:
            entries = self._log.append_in(connection, messages)
            current = self._views.current()
            view = put_aside(current, [(entries[0].seq, entries[-1].seq)])
            self._views.put_in_force(connection, view, CompactionRecord(trigger=BESIDE, stages=(BESIDE,)))
        return entries

    def _in_force(self) -> Iterator[int]:
        """The current view and those that it came from, newest first; not the first view of all."""
        number = self._views.current_id
        while number:
            yield number
            number = self._node(number)[1]

    def _in_force_at(self, seq: int) -> int:
        """The view in force when a message was appended."""
        number = self._views.current_id
        while number:
            stored, parent = self._node(number)
            if is_in(seq, stored.aside):
                is_new = not is_in(seq, self._node(parent)[0].aside)
                number = self._left(stored, parent) if is_new else parent
            elif stored.since > seq:
                number = parent
            else:
                break
        return number

    def _only_moved(self, number: int, since: int) -> bool:
        """Whether a view shows what another rewind left or came to: nothing was said since."""
        while number and (node := self._node(number))[0].since == since:
            if self._views.record(number).trigger in (REWIND, REDO):
                return True
            number = node[1]
        return False

    def _last_shown(self, number: int, last: int) -> int:
        """The newest message of the conversation up to `last`, with this view; 0 for none."""
        aside = self._views.stored_view(number).aside
        return next((first - 1 for first, end in aside if first <= last <= end), last)

    def _left(self, stored: StoredView, parent: int) -> int:
        """The view that was current before one."""
        return parent if stored.left == CURRENT else self._views.nearest(stored.left)

    def _node(self, number: int) -> tuple[StoredView, int]:
        """A view as it is stored, and the one that it begins from."""
        parent = self._views.nearest(self._views.record(number).view_before) if number else 0
        return self._views.stored_view(number), parent
