"""The log of a stored session, read a page at a time when it is asked for, and counted as it is read.

A view shows a few hundred messages, however long its log is. So opening a session, checking it and asking with it cost
what is shown. Hidden messages are read only for undo, expand and a summary's originals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Protocol, overload

from nca.context.tokens import entry_tokens, log_tokens
from nca.context.view import Range
from nca.errors import StoreDamaged
from nca.messages import Entry

PAGE = 256
"""Messages that are read at once."""
KEPT_PAGES = 32
"""Pages that stay in memory without being shown; above that, all of those go with the next view."""
_READ_THROUGH = 16
"""Pages that are read at once by who goes through the whole log."""


class Stored(Protocol):
    """The store of a log. Nothing in it changes; it may only grow."""

    @property
    def head(self) -> int:
        """The newest seq; 0 for an empty log."""

    def entries(self, first: int = 1, last: int | None = None) -> list[Entry]:
        """The messages first … last; without a last one, all from `first` on."""

    def said(self, last: int) -> tuple[int, int]:
        """How many of the messages 1 … last a person wrote, and the seq of the newest of them; 0 for none."""

    def todo_results(self) -> Iterable[int]:
        """The seqs of possible results of the todo tool, newest first."""


class _Page:
    """Up to PAGE messages, with running counts: raw tokens and calls before each, and after the last."""

    __slots__ = ("calls", "entries", "tokens")

    def __init__(self, entries: list[Entry], tokens: Iterable[int]) -> None:
        self.entries = entries
        self.tokens = list(accumulate(tokens, initial=0))
        self.calls = list(accumulate((len(entry.message.tool_calls) for entry in entries), initial=0))

    def append(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.tokens.append(self.tokens[-1] + entry_tokens(entry))
        self.calls.append(self.calls[-1] + len(entry.message.tool_calls))


class Log(Sequence[Entry]):
    """A sequence as any other: `log[i]` has seq i + 1."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self._length = stored.head
        self._pages: list[_Page | None] = [None] * -(-self._length // PAGE)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            places = range(*index.indices(self._length))
            return self._stretch(places.start, places.stop) if places.step == 1 else [self[place] for place in places]
        place = index + self._length if index < 0 else index
        if not 0 <= place < self._length:
            raise IndexError(f"the log has no message {index + 1}")
        return self._page(place // PAGE).entries[place % PAGE]

    def __iter__(self) -> Iterator[Entry]:
        """All of it, oldest first. Entries that are not in memory are read and released again."""
        number = 0
        while number < len(self._pages):
            page = self._pages[number]
            if page is not None:
                yield from page.entries
                number += 1
                continue
            end = number + 1
            while end < min(number + _READ_THROUGH, len(self._pages)) and self._pages[end] is None:
                end += 1
            yield from self._read(number, end)
            number = end

    def append(self, entry: Entry) -> None:
        """Add an entry that is already stored. It reads nothing, so it cannot fail: the entry is durable and counts."""
        if self._length % PAGE:
            # A newest page that is not in memory has the entry in it when it is read.
            if (page := self._pages[-1]) is not None:
                page.append(entry)
        else:
            self._pages.append(_Page([entry], [entry_tokens(entry)]))
        self._length += 1

    def run(self, first: int, last: int) -> tuple[int, int]:
        """Raw tokens of the messages first … last without what each call adds, and their calls."""
        if last < first:
            return 0, 0
        self.need(first, last)
        tokens = calls = 0
        for number in range((first - 1) // PAGE, (last - 1) // PAGE + 1):
            page, before = self._page(number), number * PAGE
            start, stop = max(0, first - 1 - before), min(PAGE, last - before)
            tokens += page.tokens[stop] - page.tokens[start]
            calls += page.calls[stop] - page.calls[start]
        return tokens, calls

    def need(self, first: int, last: int) -> None:
        """Read those of the messages first … last that are not in memory, each stretch at once."""
        number, end = max(0, first - 1) // PAGE, -(-min(last, self._length) // PAGE)
        while number < end:
            if self._pages[number] is not None:
                number += 1
                continue
            behind = number + 1
            while behind < end and self._pages[behind] is None:
                behind += 1
            read = self._read(number, behind)
            tokens = log_tokens(read)
            for place in range(number, behind):
                start = (place - number) * PAGE
                self._pages[place] = _Page(read[start : start + PAGE], tokens[start : start + PAGE])
            number = behind

    def release(self, shown: Iterable[Range]) -> bool:
        """Let go of pages that none of these ranges is on, if there are many; whether any went."""
        loaded = {number for number, page in enumerate(self._pages) if page is not None}
        kept = {number for first, last in shown for number in range((first - 1) // PAGE, (last - 1) // PAGE + 1)}
        kept.add(len(self._pages) - 1)
        if len(loaded - kept) <= KEPT_PAGES:
            return False
        for number in loaded - kept:
            self._pages[number] = None
        return True

    def in_memory(self) -> Iterator[Entry]:
        for page in self._pages:
            if page is not None:
                yield from page.entries

    def _page(self, number: int) -> _Page:
        page = self._pages[number]
        if page is None:
            self.need(number * PAGE + 1, number * PAGE + 1)
            page = self._pages[number]
            if page is None:
                raise LookupError(f"page {number} of the log was not read")
        return page

    def _read(self, number: int, end: int) -> list[Entry]:
        """The messages of the pages number … end - 1."""
        first, last = number * PAGE + 1, min(end * PAGE, self._length)
        read = self.stored.entries(first, last)
        if [entry.seq for entry in read] != list(range(first, last + 1)):
            raise StoreDamaged(
                f"The log has a gap between messages {first} and {last}",
                advice="`nca doctor` looks at the whole store.",
            )
        return read

    def _stretch(self, start: int, stop: int) -> list[Entry]:
        if stop <= start:
            return []
        self.need(start + 1, stop)
        found: list[Entry] = []
        for number in range(start // PAGE, -(-stop // PAGE)):
            first = number * PAGE
            found += self._page(number).entries[max(0, start - first) : stop - first]
        return found


class LogSoFar(Sequence[Entry]):
    """A log as it is now: entries appended later are not part of it."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._length = len(entries)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            # A stop before the beginning, as of a reversed slice, is not a place: -1 would be the last one.
            return self._entries[start : None if stop < 0 else stop : step]
        return self._entries[range(self._length)[index]]

    def __iter__(self) -> Iterator[Entry]:
        for place, entry in enumerate(self._entries):
            if place == self._length:
                return
            yield entry

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
