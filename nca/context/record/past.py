"""The log as the kinds of pieces see it: the messages that a record may cover, read from the ends as far as needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import chain, islice
from typing import NamedTuple, TypeVar

import msgspec

from nca.context.file_reads import (
    NOT_RUN,
    FileUse,
    arguments_of,
    file_use,
    is_cut_off,
    path_of,
    read_of,
    says_failed,
    says_no_more,
)
from nca.context.history import History
from nca.context.record.excerpt import RESULT, Style, excerpt, on_one_line, whole_parts
from nca.context.record.piece import Piece, Section, Subject
from nca.context.record.said import Said, prompts_in, said_in
from nca.context.record.script import STOPS, UNSPACED_STOPS
from nca.context.record.text import read_again
from nca.context.summary import is_summary
from nca.context.tokens import text_tokens
from nca.context.view import RECALL, Marker, Range, without_ranges
from nca.messages import Entry, Message, ToolCall

FAR = 4_000
"""The newest messages, the only ones searched for all kinds but words: recall finds older ones."""
ASKED_CHARS = 150
IDENTITY_CHARS = 800
"""Calls that ask for the same in so many characters are the same call."""
LONG_ARGUMENT_CHARS = 200
"""A longer argument is content: it says less about the call than the others do."""
_MAIN = ("command", "cmd", "script", "code", "input", "pattern", "query", "regex", "url", "question")
VERSION_CHARS, VERSION_PARTS, VERSION_SHARE = 24, 3, 0.5
"""Two texts that share so many lines or sentences of at least so many characters, and so large a share of them, are
versions of one. Two short answers to two questions may have a phrase in common."""
_ENDS = str.maketrans(dict.fromkeys(STOPS + UNSPACED_STOPS, "\n"))
SAME_CHARS = 200
"""A repeated result of at least so many characters is told once."""
CHARS_PER_TOKEN = 5
"""Characters of a call's request, and of the result's fields, for each token of a line's form."""
JSON_CHARS, RESULTS_REMEMBERED = 20_000, 1_024
T = TypeVar("T")


class Called(NamedTuple):
    """A call with its result, which is None while the call is open. `place` counts the calls of one message.

    is_repeated  it failed, and the same call was made again since
    """

    seq: int
    place: int
    call: ToolCall
    result: Message | None = None
    result_seq: int = 0
    is_repeated: bool = False

    @property
    def has_run(self) -> bool:
        """Whether it was made: it has a result, and nobody refused it."""
        return self.result is not None and not self.result.text.startswith(NOT_RUN)

    @property
    def is_cut_off(self) -> bool:
        """Whether it was stopped, or its process killed: nobody knows whether it failed, or what it changed."""
        return self.result is not None and self.result.is_error and is_cut_off(self.result.text)

    @property
    def has_failed(self) -> bool:
        return self.has_run and self.result is not None and self.result.is_error and not self.is_cut_off

    @property
    def has_worked(self) -> bool:
        """Whether nothing says that it failed: neither a mark nor the result itself, as many programs keep no mark."""
        if self.result is None or not self.has_run or self.has_failed:
            return False
        return not self.is_cut_off and not says_failed(self.result.text)

    @property
    def still_fails(self) -> bool:
        return self.has_failed and not self.is_repeated


class RecordLine(NamedTuple):
    """A line of an earlier record that came with the messages."""

    section: Section
    seq: int
    order: int
    text: str

    def subject(self, style: Style) -> Subject:
        form = partial(excerpt, self.text, style=style)
        key = ("stated", self.section, self.seq, self.order)
        return Subject(key, self.seq, form, text_tokens(self.text), self.order, is_from_record=True)

    def whole(self) -> Piece:
        """The line as it stood."""
        subject = self.subject(RESULT)
        return subject.piece(subject.size)


class Answer(NamedTuple):
    """An answer that ended a turn; `newer` is the message with the newest version of its text, 0 if this one is."""

    seq: int
    text: str
    newer: int = 0
    line: RecordLine | None = None
    """The line of an earlier record that says it."""


@dataclass
class Past:
    """`spans` are the messages of the conversation; `numbered`: the record's reader can look up a number."""

    history: History
    spans: tuple[Range, ...]
    numbered: bool = True
    changed: Sequence[tuple[int, str]] = ()
    """Files that the record of files knows to have changed, with the message before the change."""
    important: frozenset[int] = frozenset()
    """Messages that a model has named as ones to keep."""
    readable: set[str] = field(default_factory=set)
    """Names that can be read in the pieces taken so far."""
    _newer: dict[int, int] = field(default_factory=dict)
    _copies: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, history: History) -> Past:
        """The whole conversation: without messages that are aside, or that a person has cleared or replaced."""
        items = history.view.items
        gone = [span for one in items if isinstance(one, Marker) and not one.text for span in one.ranges]
        return cls(history, without_ranges([(1, history.head)], [*history.view.aside, *gone]))

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

    def said(self, message: Message) -> Said | None:
        """The person's part of a message; None for one that is not theirs.

        A file that a later message has attached too is only named.
        """
        said = said_in(message, self.prompts)
        if said is None or not said.files:
            return said
        return said._replace(
            files=tuple(file._replace(newer=self._newer_file(file.path, message)) for file in said.files)
        )

    def repeats_file(self, message: Message) -> bool:
        """Whether a later message has attached a file of this one."""
        files = (part.path for part in message.attachments if part.source == "attached")
        return any(self._newer_file(path, message) for path in files)

    def _newer_file(self, path: str, message: Message) -> str:
        """The later message that attached a file again; its content is not compared."""
        newest = self.attached.get(path)
        if newest is None or newest.message is message:
            return ""
        return f"newest text at ({newest.seq})" if self.numbered else "and again later"

    @cached_property
    def attached(self) -> dict[str, Entry]:
        """The newest message that has attached a file, by its path."""
        found: dict[str, Entry] = {}
        for entry in self.near():
            for part in entry.message.attachments:
                if part.source == "attached":
                    found.setdefault(part.path, entry)
        return found

    @cached_property
    def prompts(self) -> frozenset[str]:
        """The last lines of texts that a program writes in the person's name."""
        return prompts_in(entry.message for entry in self.near() if entry.message.role == "user")

    @cached_property
    def calls(self) -> Iterable[Called]:
        """Calls with their results, newest first; everybody who asks reads on in one list."""
        return Shared(self._called())

    @cached_property
    def records(self) -> tuple[list[str], dict[Section, list[RecordLine]]]:
        """The prose (oldest first) and the lines (newest first) of the records that came with the messages."""
        prose: list[str] = []
        lines: dict[Section, list[RecordLine]] = {}
        for entry in self.near():
            if is_record(entry.message):
                text, sections = read_again(entry.message.text)
                prose += [text] if text else []
                for section, texts in sections.items():
                    found = [RecordLine(section, entry.seq, order, text) for order, text in enumerate(texts)]
                    lines.setdefault(section, []).extend(reversed(found))
        return prose[::-1], lines

    def record_lines(self, section: Section) -> list[RecordLine]:
        return self.records[1].get(section, [])

    @cached_property
    def named(self) -> list[int]:
        """The messages that a model has named, newest first."""
        return [seq for seq in sorted(self.important, reverse=True) if seq <= self.history.head]

    @cached_property
    def answers(self) -> Iterable[Answer]:
        """The answers that ended a turn, newest first, each with the newest version of its text."""
        return Shared(self._answers())

    def newer(self, seq: int) -> int:
        """The message with a newer version of this message's text; 0: there is none.

        Of an answer one that says most of it, of a result the same again, of a file a later read of as much of it.
        """
        if seq not in self._newer:
            message = self.history.message(seq)
            if is_answer(message):
                next((one for one in self.answers if one.seq <= seq), None)
            elif message.role == "tool":
                calling = next((one for one in range(seq - 1, 0, -1) if self.history.message(one).role != "tool"), 0)
                next((one for one in self._results if one.seq < calling), None)
        return self._newer.get(seq, 0)

    def is_copy(self, seq: int) -> bool:
        """Whether a later result says all that this one says."""
        return bool(self.newer(seq)) and seq in self._copies

    @cached_property
    def _results(self) -> Iterator[Called]:
        """The calls, newest first, as it is found of each whether its result came again in a later step."""
        same: dict[str, Called] = {}
        reads: dict[str, list[tuple[Called, FileUse]]] = {}
        for called in self.calls:
            result, seq = called.result, called.result_seq
            if result is not None:
                use = read_of(called.call, result, seq)
                later = reads.setdefault(use.path, []) if use is not None else []
                again = next((one for one, shown in later if use is not None and shown.covers(use)), None)
                if use is not None:
                    later.append((called, use))
                if len(result.text) >= SAME_CHARS:
                    again = again or same.get(result.text)
                    same.setdefault(result.text, called)
                self._newer[seq] = 0
                if again is not None and again.result is not None and again.seq > called.seq:
                    self._newer[seq] = again.result_seq
                    self._copies |= {seq} if says_no_more(result.text, again.result.text) else set()
            yield called

    def _answers(self) -> Iterator[Answer]:
        newest: dict[str, int] = {}
        said = ((entry.seq, entry.message.text.strip(), None) for entry in self.near() if is_answer(entry.message))
        recorded = ((one.seq, one.text, one) for one in self.record_lines(Section.ANSWERS))
        for seq, text, line in chain(said, recorded):
            parts = {
                part
                for one in text.translate(_ENDS).splitlines()
                if len(part := " ".join(one.split())) >= VERSION_CHARS
            }
            same = Counter(newest[part] for part in parts if part in newest)
            is_version = same.total() >= max(VERSION_PARTS, VERSION_SHARE * len(parts))
            newer = max(same, key=lambda one: (same[one], one)) if is_version else 0
            newest.update(dict.fromkeys(parts - newest.keys(), newer or seq))
            if line is None:
                self._newer[seq] = newer
            yield Answer(seq, text, newer, line)

    def _called(self) -> Iterator[Called]:
        results: dict[str, tuple[Message, int]] = {}
        made: set[str] = set()
        newer: list[ToolCall] = []
        for entry in self.near():
            message = entry.message
            if message.role == "tool":
                results[message.tool_call_id] = message, entry.seq
            for place, call in reversed(list(enumerate(message.tool_calls))):
                # The messages that `recall` showed are told elsewhere.
                if call.name != RECALL:
                    result, seq = results.pop(call.id, (None, 0))
                    called = Called(entry.seq, place, call, result, seq)
                    if called.has_failed:
                        # Most logs have few failures: requests are compared only for them.
                        made.update(asked(one, IDENTITY_CHARS) for one in newer)
                        newer.clear()
                        called = called._replace(is_repeated=asked(call, IDENTITY_CHARS) in made)
                    yield called
                    newer += [call] if called.has_run else []


class Shared(Iterable[T]):
    """An iterator that many read, each from its beginning."""

    def __init__(self, source: Iterator[T]) -> None:
        self._source, self._read = source, list[T]()

    def __iter__(self) -> Iterator[T]:
        place = 0
        while True:
            if place == len(self._read):
                self._read += islice(self._source, 1)
            if place == len(self._read):
                return
            yield self._read[place]
            place += 1


def is_record(message: Message) -> bool:
    """Whether a message is a record of an earlier compaction, nca's or another program's."""
    return message.is_synthetic and is_summary(message)


def is_answer(message: Message) -> bool:
    return message.role == "assistant" and not message.tool_calls and bool(message.text.strip())


def asked(call: ToolCall, chars: int = ASKED_CHARS, *, has_content: bool = False) -> str:
    """A call's request: its tool, the argument that says most, and the other short ones.

    has_content  its long arguments are shown beside this
    """
    arguments = arguments_of(call)
    main = next((str(arguments[key]) for key in _MAIN if arguments.get(key)), "") or path_of(arguments)
    if has_content and len(main) > LONG_ARGUMENT_CHARS:
        main = ""
    rest = [
        f"{key}={_flat(value)}"
        for key, value in arguments.items()
        if value not in (None, "", main) and len(str(value)) <= LONG_ARGUMENT_CHARS
    ]
    parts = [main, *rest] if arguments else [call.arguments]
    return f"{call.name} {whole_parts([one for one in parts if one], chars)}".strip()


def long_arguments(call: ToolCall) -> str:
    """The content in a call's arguments, which `asked` leaves out. Of a change only what is there now: tools name what
    was there before it."""
    values = [value for value in map(str, arguments_of(call).values()) if len(value) > LONG_ARGUMENT_CHARS]
    return "\n".join(values[-1:] if changes_file(call) else values)


def came_of(called: Called, tokens: int) -> str:
    """A call's result, in a line: for a JSON object those whole fields that are not in the call."""
    text = called.result.text.strip() if called.result is not None else ""
    given = arguments_of(called.call)
    new = [said for key, value, said in _fields(text) if given.get(key) != value]
    return whole_parts(new, CHARS_PER_TOKEN * tokens) if new else on_one_line(excerpt(text, tokens)) or "nothing"


@lru_cache(maxsize=RESULTS_REMEMBERED)
def _fields(text: str) -> list[tuple[str, object, str]]:
    """Of a JSON object each field that holds something: its name, its value, and both in words."""
    if not text.startswith("{") or len(text) > JSON_CHARS:
        return []
    try:
        fields = msgspec.json.decode(text, type=dict[str, object])
        return [(key, value, f"{key}:{_flat(value)}") for key, value in fields.items() if value not in (None, "")]
    except (msgspec.DecodeError, RecursionError):
        return []


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}:{_flat(one)}" for key, one in value.items())
    return ",".join(map(_flat, value)) if isinstance(value, list) else str(value)


def changes_file(call: ToolCall) -> str:
    """The file that a call writes, by its arguments; "" for another call."""
    use = file_use(call)
    return use.path if use is not None and use.is_write else ""
