"""The log as the kinds of pieces see it: the messages that a record may cover, read from the ends as far as needed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import chain, count, islice
from typing import Any, NamedTuple, TypeVar

from nca.context.file_reads import FileUse, read_of, says_no_more
from nca.context.history import History
from nca.context.record.called import IDENTITY_CHARS, Called, Others, asked, others_of
from nca.context.record.excerpt import RESULT, Style, excerpt
from nca.context.record.piece import Piece, Section, Subject
from nca.context.record.said import Said, prompts_in, said_in
from nca.context.record.script import STOPS, UNSPACED_STOPS
from nca.context.record.text import GAPS, read_again
from nca.context.summary import is_summary
from nca.context.tokens import text_tokens
from nca.context.view import RECALL, Marker, Range, is_in, without_ranges
from nca.messages import Entry, Message, ToolCall

FAR = 4_000
"""The newest messages, the only ones searched for all kinds but words: recall finds older ones."""
COMPARED = 500
"""Results of a tool that are compared with each other."""
AT_ONCE = 64
"""Messages that are read at once."""
VERSION_CHARS, VERSION_PARTS, VERSION_SHARE, VERSION_LENGTH = 24, 3, 0.5, 0.75
"""Two texts that share so many lines or sentences of at least so many characters, and so large a share of the older
one's, are versions of one. Two short answers to two questions may have a phrase in common. A text of fewer parts than
such a share of the older one's is a part of that, not a new version of it: what it leaves out nobody took back."""
_ENDS = str.maketrans(dict.fromkeys(STOPS + UNSPACED_STOPS, "\n"))
SAME_CHARS = 200
"""A repeated result of at least so many characters is told once."""
T = TypeVar("T")


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
    changed: Sequence[tuple[int, str, str]] = ()
    """What the record of files knows: the message before a change, the path, and whether it is changed or deleted."""
    important: frozenset[int] = frozenset()
    """Messages that a model has named as ones to keep."""
    readable: set[str] = field(default_factory=set)
    """Names that can be read in the pieces taken so far."""
    _newer: dict[int, int] = field(default_factory=dict)
    _before: dict[int, int] = field(default_factory=dict)
    _others: dict[str, Others] = field(default_factory=dict)
    _found: dict[Callable[[Past], Iterator[Any]], Shared[Any]] = field(default_factory=dict)

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
            for end in range(last, first - 1, -AT_ONCE):
                yield from reversed(self.history.entries[max(first, end - AT_ONCE + 1) - 1 : end])

    def forwards(self) -> Iterator[Entry]:
        for first, last in self.spans:
            for begin in range(first, last + 1, AT_ONCE):
                yield from self.history.entries[begin - 1 : min(last, begin + AT_ONCE - 1)]

    def near(self) -> Iterator[Entry]:
        """The newest messages, newest first: as far back as anything but words is looked for."""
        return islice(self.backwards(), FAR)

    def once(self, source: Callable[[Past], Iterator[T]]) -> Iterable[T]:
        """What a source finds in this log; it looks once for all who ask."""
        if source not in self._found:
            self._found[source] = Shared(source(self))
        return self._found[source]

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

    def others(self, name: str) -> Others:
        """The newest results of a tool that may have changed something elsewhere."""
        if name not in self._others:
            effects = (called for called in self.calls if called.is_effect and called.call.name == name)
            self._others[name] = others_of(islice(effects, COMPARED))
        return self._others[name]

    @cached_property
    def records(self) -> tuple[list[str], dict[Section, list[RecordLine]]]:
        """The prose (oldest first) and the lines (newest first) of the records that came with the messages."""
        prose: list[str] = []
        lines: dict[Section, list[RecordLine]] = {}
        for entry in self._records:
            text, sections = read_again(entry.message.text)
            prose += [text] if text else []
            for section, texts in sections.items():
                found = [RecordLine(section, entry.seq, order, text) for order, text in enumerate(texts)]
                lines.setdefault(section, []).extend(reversed(found))
        return prose[::-1], lines

    @cached_property
    def has_gaps(self) -> bool:
        """Whether a record that came with the messages says that some of the person's words are nowhere."""
        return any(GAPS in entry.message.text for entry in self._records)

    @cached_property
    def _records(self) -> list[Entry]:
        return [entry for entry in self.near() if is_record(entry.message)]

    def record_lines(self, section: Section) -> list[RecordLine]:
        return self.records[1].get(section, [])

    @cached_property
    def named(self) -> list[int]:
        """The messages that a model has named, newest first: those that belong to the conversation."""
        return [seq for seq in sorted(self.important, reverse=True) if is_in(seq, self.spans)]

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
                calling = self._before_results(seq)
                next((one for one in self._results if one.seq < calling), None)
        return self._newer.get(seq, 0)

    def _before_results(self, seq: int) -> int:
        """The message before the results among which this one is; 0: none."""
        place = seq
        while place and place not in self._before and self.history.message(place).role == "tool":
            place -= 1
        found = self._before.get(place, place)
        self._before.update(dict.fromkeys(range(place + 1, seq + 1), found))
        return found

    def is_copy(self, seq: int) -> bool:
        """Whether a later result says all that this one says."""
        newer, message = self.newer(seq), self.history.message
        return bool(newer) and message(seq).role == "tool" and says_no_more(message(seq).text, message(newer).text)

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
                if again is not None and again.seq > called.seq:
                    self._newer[seq] = again.result_seq
            yield called

    def _answers(self) -> Iterator[Answer]:
        newest: dict[str, int] = {}
        lengths: dict[int, int] = {}
        said = ((entry.seq, entry.message.told.strip(), None) for entry in self.near() if is_answer(entry.message))
        recorded = ((one.seq, one.text, one) for one in self.record_lines(Section.ANSWERS))
        for seq, text, line in chain(said, recorded):
            parts = _parts(text)
            same = Counter(newest[part] for part in parts if part in newest)
            newer = max(same, key=lambda one: (same[one], one), default=0)
            is_version = same.total() >= max(VERSION_PARTS, VERSION_SHARE * len(parts))
            if not is_version or lengths[newer] < VERSION_LENGTH * len(parts):
                newer = 0
            lengths[seq] = len(parts)
            newest.update(dict.fromkeys(parts - newest.keys(), newer or seq))
            if line is None:
                self._newer[seq] = newer
            yield Answer(seq, text, newer, line)

    def _called(self) -> Iterator[Called]:
        results: dict[str, tuple[Message, int]] = {}
        made: defaultdict[str, set[str]] = defaultdict(set)
        newer: defaultdict[str, list[ToolCall]] = defaultdict(list)
        for entry in self.near():
            message = entry.message
            if message.role == "tool":
                results[message.tool_call_id] = message, entry.seq
            for place, call in reversed(list(enumerate(message.tool_calls))):
                # The messages that `recall` showed are told elsewhere.
                if call.name != RECALL:
                    result, seq = results.pop(call.id, (None, 0))
                    is_left = result is None and entry.seq < self.newest_user
                    called = Called(entry.seq, place, call, result, seq, is_left=is_left)
                    if called.has_failed:
                        # Most logs have few failures: requests are compared only for them, with those of one tool.
                        made[call.name].update(asked(one, IDENTITY_CHARS) for one in newer.pop(call.name, ()))
                        called = replace(called, is_repeated=asked(call, IDENTITY_CHARS) in made[call.name])
                    yield called
                    if called.has_run:
                        newer[call.name].append(call)


class Shared(Iterable[T]):
    """An iterator that many read, each from its beginning."""

    def __init__(self, source: Iterator[T]) -> None:
        self._source, self._read = source, list[T]()

    def __iter__(self) -> Iterator[T]:
        read = self._read
        for place in count():
            if place == len(read):
                read += islice(self._source, 1)
                if place == len(read):
                    return
            yield read[place]


def is_record(message: Message) -> bool:
    """Whether a message is a record of an earlier compaction, nca's or another program's."""
    return message.is_synthetic and is_summary(message)


@lru_cache(maxsize=2_048)
def _parts(text: str) -> frozenset[str]:
    """The sentences and lines of an answer that may tell a version of it; each compaction asks for those of all."""
    flat = (" ".join(one.split()) for one in text.translate(_ENDS).splitlines())
    return frozenset(part for part in flat if len(part) >= VERSION_CHARS)


def is_answer(message: Message) -> bool:
    return message.role == "assistant" and not message.tool_calls and bool(message.told.strip())
