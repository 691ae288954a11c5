"""A log and its view, with running counts: the cost of a check depends on what was added, not on the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from copy import copy
from itertools import accumulate, chain
from typing import Any

import msgspec

from nca.context.log import Log, LogSoFar
from nca.context.log_index import LogIndex
from nca.context.named import Named
from nca.context.tokens import entry_tokens, log_tokens, message_tokens
from nca.context.view import Marker, Stub, Summary, Verbatim, View, is_in, ranges_of
from nca.messages import Entry, Message, ToolCall


class History:
    """`entries[i]` has seq i+1. Counts are raw tokens (see `nca.context.calibration`).

    entries  all in memory, or a `Log`, which reads the requested ones
    """

    def __init__(self, entries: Iterable[Entry] | Log = (), view: View | None = None, pins: Iterable[int] = ()) -> None:
        self._log = entries if isinstance(entries, Log) else None
        self._list: list[Entry] = []
        self._pins = frozenset(pins)
        self.named = Named()
        """The names in each message: looked for once in a session."""
        self.call_raw = 0
        """Raw tokens of each tool call beside its text, learned from the model's reports."""
        self._sums = [0]
        self._calls = [0]
        if self._log is None:
            self._load(entries)
        self.entries: Sequence[Entry] = self._list if self._log is None else self._log
        self._index = LogIndex(self.entries)
        self._view = View()
        self._items = (0, 0)
        if view is not None:
            self.view = view

    def _load(self, entries: Iterable[Entry]) -> None:
        """Load many messages at once: there may be a hundred thousand."""
        self._list = loaded = list(entries)
        for position, entry in enumerate(loaded, 1):
            if entry.seq != position:
                raise ValueError(f"message {entry.seq} does not follow message {position - 1}")
        self._sums = list(accumulate(log_tokens(loaded), initial=0))
        self._calls = list(accumulate([len(entry.message.tool_calls) for entry in loaded], initial=0))

    def append(self, entry: Entry) -> None:
        """Raises ValueError if the log would have a gap."""
        if entry.seq != len(self.entries) + 1:
            raise ValueError(f"message {entry.seq} does not follow message {len(self.entries)}")
        if self._log is not None:
            self._log.append(entry)
            return
        self._list.append(entry)
        self._sums.append(self._sums[-1] + entry_tokens(entry))
        self._calls.append(self._calls[-1] + len(entry.message.tool_calls))

    def so_far(self) -> History:
        """The log and the view as they are now, read-only: entries appended later are not part of it."""
        now = copy(self)
        now.entries = LogSoFar(self.entries)
        now._index = self._index.so_far(now.entries)
        return now

    def seen_as(self, view: View) -> History:
        """The same log with another view, to be read only."""
        now = copy(self)
        now._items, now._view = self._count(view), view
        return now

    @property
    def head(self) -> int:
        """The newest seq; 0 for an empty log."""
        return len(self.entries)

    @property
    def view(self) -> View:
        return self._view

    @view.setter
    def view(self, view: View) -> None:
        self._items = self._count(view)
        self._view = view
        if view.aside != self._index.aside:
            self._index = LogIndex(self.entries, view.aside)
        if self._log is not None and self._log.release(self._shown_ranges()):
            # Findings go with their messages; they are found again when these are read again.
            self.named.keep(entry.message for entry in self._log.in_memory())

    @property
    def pins(self) -> frozenset[int]:
        """The pinned messages of the conversation."""
        aside = self._view.aside
        return frozenset(seq for seq in self._pins if not is_in(seq, aside)) if aside else self._pins

    @pins.setter
    def pins(self, pins: frozenset[int]) -> None:
        self._pins = pins

    @property
    def turns(self) -> int:
        """How many messages of the conversation a person wrote."""
        return self._index.turns

    @property
    def newest_user(self) -> int | None:
        """The seq of the newest message of the conversation that a person wrote."""
        return self._index.newest_user

    @property
    def last_answer(self) -> int:
        """The seq of the agent's last whole answer before `newest_user`; 0 if there is none.

        The person's later requests may still wait, even those added while the agent worked.
        """
        for seq in range((self.newest_user or 1) - 1, 0, -1):
            message = self.message(seq)
            is_answer = message.role == "assistant" and not message.tool_calls and not message.is_interrupted
            if is_answer and not is_in(seq, self.view.aside):
                return seq
        return 0

    @property
    def newest_list(self) -> tuple[int, dict[str, Any]] | None:
        """The newest todo list, as `nca.context.todo.newest_list` finds it in the conversation."""
        return self._index.newest_list

    def backwards(self) -> Iterator[Entry]:
        """The whole conversation, newest first: the log without messages that are aside."""
        end = self.head
        for first, last in reversed(((0, 0), *self.view.aside)):
            for place in range(end - 1, last - 1, -1):
                yield self.entries[place]
            end = first - 1

    def message(self, seq: int) -> Message:
        return self.entries[seq - 1].message

    def run_tokens(self, first: int, last: int) -> int:
        """Raw tokens of the messages first … last as they are."""
        return self._with_calls(self._run(first, last))

    def message_tokens(self, message: Message) -> int:
        """Raw tokens of any message, as this history counts."""
        return message_tokens(message) + self.call_raw * len(message.tool_calls)

    def item_tokens(self, item: Verbatim | Stub | Summary | Marker) -> int:
        return self._with_calls(self._count_item(item))

    @property
    def view_tokens(self) -> int:
        """Raw tokens of all that the view shows."""
        return self._with_calls(self._until(self._items, self._view.tail, self.head))

    @property
    def view_calls(self) -> int:
        """How many tool calls the view shows."""
        return self._until(self._items, self._view.tail, self.head)[1]

    def tokens_of(self, view: View) -> int:
        """Raw tokens of all that another view would show."""
        return self._with_calls(self._until(self._count(view), view.tail, self.head))

    def counts_until(self, view: View, seqs: Iterable[int]) -> list[tuple[int, int]]:
        """The size of a view when the log ended at each of `seqs`: raw tokens without the calls' own, and calls."""
        items = self._count(view)
        return [self._until(items, view.tail, seq) for seq in seqs]

    def _until(self, items: tuple[int, int], tail: int, seq: int) -> tuple[int, int]:
        """Counts of a view with these of its items, when the log ended at `seq`."""
        later, later_calls = self._run(tail, seq)
        return items[0] + later, items[1] + later_calls

    def _with_calls(self, counts: tuple[int, int]) -> int:
        return counts[0] + self.call_raw * counts[1]

    def _run(self, first: int, last: int) -> tuple[int, int]:
        """Raw tokens of the messages first … last without what each call adds, and their calls."""
        if self._log is not None:
            return self._log.run(first, last)
        before, last = first - 1, max(first - 1, last)
        return self._sums[last] - self._sums[before], self._calls[last] - self._calls[before]

    def _count(self, view: View) -> tuple[int, int]:
        """Raw tokens of a view's items without what each call adds, and their calls."""
        counts = [self._count_item(item) for item in view.items]
        return sum(text for text, _ in counts), sum(calls for _, calls in counts)

    def _count_item(self, item: Verbatim | Stub | Summary | Marker) -> tuple[int, int]:
        if isinstance(item, Verbatim):
            return self._run(item.first, item.last)
        shown = self.shown(item)
        return (message_tokens(shown), len(shown.tool_calls)) if shown is not None else (0, 0)

    def shown(self, item: Stub | Summary | Marker) -> Message | None:
        """The message that an item shows; None for one that shows nothing."""
        match item:
            case Stub(seq, text):
                return msgspec.structs.replace(self.message(seq), content=text)
            case Summary():
                extra = {"provider_specific_fields": {"compaction_blocks": [item.block]}} if item.block else {}
                maker = item.made_by if item.block else ""
                return Message(item.role, item.text, source="nca", extra=extra, made_by=maker)
            case Marker(_, _, text):
                return Message("user", text, source="nca") if text else None

    def open_calls(self) -> list[ToolCall]:
        """The calls of the newest answer that have no result yet."""
        answered = set[str]()
        for entry in reversed(self.entries):
            message = entry.message
            if message.role == "assistant":
                return [call for call in message.tool_calls if call.id not in answered]
            answered.add(message.tool_call_id)
        return []

    def visible(self) -> Iterator[Entry]:
        """The messages that are shown as they are or as stubs, in the order of the log."""
        return chain.from_iterable(self.entries[first - 1 : last] for first, last in self._shown_ranges())

    def _shown_ranges(self) -> Iterator[tuple[int, int]]:
        for item in self._view.items:
            if isinstance(item, Verbatim | Stub):
                yield from ranges_of(item)
        if self._view.tail <= self.head:
            yield self._view.tail, self.head


def complete_turns(shown: Iterable[Entry], pins: Set[int] = frozenset()) -> list[int]:
    """The seqs of the person's messages that begin complete turns, oldest first.

    The newest turn is complete once the agent has answered; every other one is. A turn that begins with a pin cannot
    leave, so it is not counted.
    """
    begun: list[int] = []
    last: Message | None = None
    for entry in shown:
        last = entry.message
        if last.role == "user" and not last.is_synthetic:
            begun.append(entry.seq)
    if begun and last is not None and (last.role != "assistant" or last.tool_calls):
        begun.pop()
    return [seq for seq in begun if seq not in pins]
