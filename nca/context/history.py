"""A log and its view in memory, with running counts: a check costs what was added, not what is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from nca.context.ledger import Known
from nca.context.tokens import message_tokens
from nca.context.view import Marker, Stub, Summary, Verbatim, View
from nca.messages import Entry, Message


class History:
    """`entries[i]` has seq i+1. Counts are raw tokens (see `nca.context.calibration`)."""

    def __init__(self, entries: Iterable[Entry] = (), view: View | None = None, pins: Iterable[int] = ()) -> None:
        self.entries: list[Entry] = []
        self.pins = frozenset(pins)
        self.found: Known = {}
        """What the ledger found in each message, by identity: looked for once in a session."""
        self._sums = [0]
        for entry in entries:
            self.append(entry)
        self._view = View()
        self._items_tokens = 0
        if view is not None:
            self.view = view

    def append(self, entry: Entry) -> None:
        """Raises ValueError where the log would have a gap."""
        if entry.seq != len(self.entries) + 1:
            raise ValueError(f"message {entry.seq} does not follow message {len(self.entries)}")
        self.entries.append(entry)
        self._sums.append(self._sums[-1] + message_tokens(entry.message))

    @property
    def head(self) -> int:
        """The newest seq; 0 for an empty log."""
        return len(self.entries)

    @property
    def view(self) -> View:
        return self._view

    @view.setter
    def view(self, view: View) -> None:
        self._items_tokens = self._tokens_of(view)
        self._view = view

    def message(self, seq: int) -> Message:
        return self.entries[seq - 1].message

    def run_tokens(self, first: int, last: int) -> int:
        """Raw tokens of the messages first … last as they are."""
        return self._sums[last] - self._sums[first - 1]

    def item_tokens(self, item: Verbatim | Stub | Summary | Marker) -> int:
        if isinstance(item, Verbatim):
            return self.run_tokens(item.first, item.last)
        shown = self.shown(item)
        return message_tokens(shown) if shown is not None else 0

    @property
    def view_tokens(self) -> int:
        """Raw tokens of all that the view shows."""
        return self._items_tokens + self._sums[-1] - self._sums[self._view.tail - 1]

    def tokens_of(self, view: View) -> int:
        """Raw tokens of all that another view would show."""
        return self._tokens_of(view) + self._sums[-1] - self._sums[view.tail - 1]

    def _tokens_of(self, view: View) -> int:
        return sum(self.item_tokens(item) for item in view.items)

    def shown(self, item: Stub | Summary | Marker) -> Message | None:
        """The message that an item shows; None for one that shows nothing."""
        match item:
            case Stub(seq, text):
                return msgspec.structs.replace(self.message(seq), content=text)
            case Summary():
                return Message(item.role, item.text, is_synthetic=True)
            case Marker(_, _, text):
                return Message("user", text, is_synthetic=True) if text else None

    def visible(self) -> Iterator[Entry]:
        """The messages that are shown as they are or as stubs, in the order of the log."""
        for item in self._view.items:
            if isinstance(item, Verbatim):
                yield from self.entries[item.first - 1 : item.last]
            elif isinstance(item, Stub):
                yield self.entries[item.seq - 1]
        yield from self.entries[self._view.tail - 1 :]
