"""Running answers about a conversation: how many turns, and the newest user message and todo list."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from nca.context.log import Log
from nca.context.todo import NAME, newest_list
from nca.context.view import Range, is_in, without_ranges
from nca.messages import Entry

_NEAR = 64
"""The distance before a result within which its call is looked for first."""

TodoList = tuple[int, dict[str, Any]]


class LogIndex:
    """Looks at each message once, when it is first asked after it; in a stored log, only at messages appended later.

    Messages that are aside are not part of the conversation.
    """

    def __init__(self, entries: Sequence[Entry], aside: tuple[Range, ...] = ()) -> None:
        self._entries = entries
        self.aside = aside
        self._begun = len(entries) if isinstance(entries, Log) else 0
        self._seen = 0
        self._said: tuple[int, int] | None = None if self._begun else (0, 0)
        self._list: TodoList | None = None
        self._list_seen: int | None = None
        """The place up to which the newest list is known; None: it was never looked for."""

    def so_far(self, entries: Sequence[Entry]) -> LogIndex:
        """The answers about `entries`, the log as it is now."""
        self._counted()
        now = copy(self)
        now._entries, now._list, now._list_seen = entries, self.newest_list, len(entries)
        return now

    @property
    def turns(self) -> int:
        return self._counted()[0]

    @property
    def newest_user(self) -> int | None:
        return self._counted()[1] or None

    @property
    def newest_list(self) -> TodoList | None:
        head = len(self._entries)
        if self._list_seen is None:
            self._list = self._looked_up()
            self._list_seen = self._begun
        if self._list_seen < head:
            # A result may have come later than its call was looked at.
            start = self._list_seen
            while start > 0 and self._entries[start - 1].message.role == "tool":
                start -= 1
            self._list = newest_list(self._kept(max(0, start - 1), head)) or self._list
            self._list_seen = head
        return self._list

    def _counted(self) -> tuple[int, int]:
        head = len(self._entries)
        if self._said is None:
            self._said = self._said_until(self._entries, head) if isinstance(self._entries, Log) else (0, 0)
            self._seen = head
        if self._seen < head:
            turns, newest = self._said
            for entry in self._kept(self._seen, head):
                if entry.message.role == "user" and not entry.message.is_synthetic:
                    turns, newest = turns + 1, entry.seq
            self._seen, self._said = head, (turns, newest)
        return self._said

    def _said_until(self, log: Log, last: int) -> tuple[int, int]:
        """How many of the messages 1 … last a person wrote, and the newest of them, as the store counts."""
        turns, newest = log.stored.said(last)
        for first, end in reversed(self.aside):
            turns -= log.stored.said(min(end, last))[0] - log.stored.said(min(first - 1, last))[0]
            if first <= newest <= end:
                newest = log.stored.said(first - 1)[1]
        return turns, newest

    def _kept(self, start: int, end: int) -> Sequence[Entry]:
        """The entries in the places start … end - 1, without those that are aside."""
        if not self.aside:
            return self._entries[start:end]
        spans = without_ranges([(start + 1, end)], self.aside)
        return [entry for first, last in spans for entry in self._entries[first - 1 : last]]

    def _looked_up(self) -> TodoList | None:
        """The newest list in the log as it was when opened."""
        if not isinstance(self._entries, Log):
            return None
        for seq in self._entries.stored.todo_results():
            if seq > self._begun or is_in(seq, self.aside) or self._entries[seq - 1].message.name != NAME:
                continue
            # The call comes right before its results, unless the log came broken from elsewhere.
            reach = _NEAR
            while True:
                found = newest_list(self._kept(max(0, seq - reach), seq))
                if found is not None:
                    return found
                if reach >= seq or self._entries[max(0, seq - reach)].message.role != "tool":
                    break
                reach *= 4
        return None
