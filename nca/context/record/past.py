"""The log as the kinds of pieces see it: what a record may stand for, read from its ends as far as somebody looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

from nca.context.file_reads import arguments_of, file_use, path_of
from nca.context.history import History
from nca.context.record.excerpt import both_ends
from nca.context.record.text import Section, read_again
from nca.context.summary import is_summary
from nca.context.view import Range, without_ranges
from nca.messages import Entry, Message, ToolCall

RECALL = "recall"
FAR = 4_000
"""Messages that calls, effects and names are looked for in, from the newest on: what is older is found by recall."""
ASKED_CHARS, CAME_CHARS = 150, 150
LONG_ARGUMENT_CHARS = 200
"""A longer argument is content: it says less of what a call is about than the others do."""
_COMMAND = ("command", "cmd", "script", "code", "input")
_WANTED = ("pattern", "query", "regex", "url", "question")
T = TypeVar("T")


class Called(NamedTuple):
    """A call with what came of it; `result` is None while it is open. `place` counts the calls of one message."""

    seq: int
    place: int
    call: ToolCall
    result: Message | None

    @property
    def has_failed(self) -> bool:
        return self.result is not None and self.result.is_error

    @property
    def key(self) -> tuple[object, ...]:
        return ("call", self.seq, self.place)


class Stated(NamedTuple):
    """A line of an earlier record that came with the messages."""

    seq: int
    order: int
    text: str


@dataclass(slots=True)
class Past:
    """`spans` are the messages of the conversation; `numbered`: whoever reads the record can look a number up."""

    history: History
    spans: tuple[Range, ...]
    numbered: bool = True
    changed: Sequence[tuple[int, str]] = ()
    """Files that the record of files knows to have changed, with the message behind which they did."""
    important: frozenset[int] = frozenset()
    """Messages that a model has named as ones to keep."""
    stated: dict[Section, list[Stated]] = field(default_factory=dict)
    _calls: _Shared[Called] | None = None

    @classmethod
    def of(cls, history: History, gone: Iterable[Range] = (), **options: object) -> Past:
        """The whole conversation without what is aside or gone."""
        return cls(history, without_ranges([(1, history.head)], [*history.view.aside, *gone]), **options)  # type: ignore[arg-type]

    @property
    def newest_user(self) -> int:
        return self.history.newest_user or 0

    def backwards(self) -> Iterator[Entry]:
        for first, last in reversed(self.spans):
            for seq in range(last, first - 1, -1):
                yield self.history.entries[seq - 1]

    def forwards(self) -> Iterator[Entry]:
        for first, last in self.spans:
            for seq in range(first, last + 1):
                yield self.history.entries[seq - 1]

    def near(self) -> Iterator[Entry]:
        """The newest messages, newest first: as far back as anything but words is looked for."""
        return islice(self.backwards(), FAR)

    def calls(self) -> Iterator[Called]:
        """Calls with their results, newest first; everybody who asks reads on in one list."""
        if self._calls is None:
            self._calls = _Shared(self._called())
        return iter(self._calls)

    def section(self, section: Section) -> list[Stated]:
        """The lines of earlier records, newest first. What is near has been read for them."""
        return sorted(self.stated.get(section, ()), key=lambda one: (one.seq, one.order), reverse=True)

    def read_records(self) -> list[str]:
        """Read the records that came with the messages; gives their prose, oldest first."""
        prose: list[tuple[int, str]] = []
        for entry in self.near():
            if is_record(entry.message):
                text, sections = read_again(entry.message.text)
                if text:
                    prose.append((entry.seq, text))
                for section, lines in sections.items():
                    found = self.stated.setdefault(section, [])
                    found += [Stated(entry.seq, order, line) for order, line in enumerate(lines)]
        return [text for _, text in sorted(prose)]

    def _called(self) -> Iterator[Called]:
        results: dict[str, Message] = {}
        for entry in self.near():
            message = entry.message
            if message.role == "tool":
                results[message.tool_call_id] = message
            for place, call in reversed(list(enumerate(message.tool_calls))):
                if call.name == RECALL:
                    # What it showed is said elsewhere.
                    continue
                yield Called(entry.seq, place, call, results.pop(call.id, None))


def is_record(message: Message) -> bool:
    """Whether a message is a record of an earlier compaction, nca's or another program's."""
    return message.is_synthetic and is_summary(message)


class _Shared(Iterable[T]):
    """An iterator that many read, each from its beginning."""

    def __init__(self, source: Iterator[T]) -> None:
        self._source, self._read = source, list[T]()

    def __iter__(self) -> Iterator[T]:
        place = 0
        while True:
            if place == len(self._read):
                new = next(self._source, None)
                if new is None:
                    return
                self._read.append(new)
            yield self._read[place]
            place += 1


def asked(call: ToolCall, chars: int = ASKED_CHARS) -> str:
    """What a call asks for: its tool, the argument that says most, and the other short ones."""
    arguments = arguments_of(call)
    main = next((str(arguments[key]) for key in (*_COMMAND, *_WANTED) if arguments.get(key)), "") or path_of(arguments)
    rest = [
        f"{key}={value}" if isinstance(value, str | int | float | bool) else f"{key}={_flat(value)}"
        for key, value in arguments.items()
        if value not in (None, "", main) and len(str(value)) <= LONG_ARGUMENT_CHARS
    ]
    said = " ".join([main, *rest]) if arguments else call.arguments
    return f"{call.name} {both_ends(said, chars)}".strip()


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}:{_flat(one)}" for key, one in value.items())
    return ",".join(map(_flat, value)) if isinstance(value, list) else str(value)


def came_of(called: Called, chars: int = CAME_CHARS) -> str:
    """How a call ended: the first and the last line of its result, and whether it is marked as failed."""
    if called.result is None:
        return "no result yet"
    lines = [line for line in map(str.strip, called.result.text.splitlines()) if line]
    ends = " | ".join(dict.fromkeys([*lines[:1], *lines[-1:]]))
    return f"{'failed: ' if called.has_failed else ''}{both_ends(ends, chars) or 'nothing'}"


def told(called: Called) -> str:
    """One line of a call."""
    return f"{asked(called.call)} → {came_of(called)}"


def changes_file(call: ToolCall) -> str:
    """The file that a call writes, by its arguments; "" for another call."""
    use = file_use(call)
    return use.path if use is not None and use.is_write else ""
