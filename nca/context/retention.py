"""The share of the whole log that can be read in a view: counted by code, whoever wrote the record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from itertools import chain, islice

from nca.context.history import History
from nca.context.record.past import Past
from nca.context.request import resolve
from nca.context.view import View

MOST_COUNTED, OLDEST_COUNTED = 4_000, 1_000
"""Messages that are looked at, from the newest on and from the oldest on: a log may have a million, and a view has
words of both ends."""
READ_CHARS, ANSWER_CHARS = 80, 24
"""A message counts as readable if its beginning is; whole messages are counted apart. A cut answer may have no more of
its first line."""
WORDS, LOOKED_AT, WHOLE, FILES = "words", "looked_at", "whole", "files"
ANSWERS, CUT = "answers", "answers_cut"
_IN_WORDS = {
    WORDS: "{0:,} of {1:,} of your messages",
    LOOKED_AT: "{0:,} of {1:,} looked at",
    WHOLE: "{0:,} of them whole",
    FILES: "{0:,} of {1:,} changed files",
    ANSWERS: "{0:,} of {1:,} answers whole",
    CUT: "{0:,} cut",
}


def kept_in_words(by_kind: Mapping[str, tuple[int, int]], kept: int = 0, total: int = 0) -> str:
    """`12 of 14 of your messages, 9 of them whole, 3 of 3 changed files`: the readable part of the log's facts.

    Without kinds, as of an older session, the sum.
    """
    if not by_kind:
        return f"{kept:,} of {total:,} facts"
    shown = (_IN_WORDS.get(kind, "{0:,} of {1:,} {2}").format(*pair, kind) for kind, pair in by_kind.items())
    return ", ".join(shown)


class KeptFacts:
    """Counted on first access, for the log as it was. The model's words are not facts, and are counted beside them."""

    def __init__(self, history: History, view: View, changed_files: Iterable[tuple[int, str, str]] = ()) -> None:
        self._history = history.so_far()
        self._view = view
        self._changed = {path for _, path, _ in changed_files}
        self._coming = 0
        self._counted: dict[str, tuple[int, int]] | None = None

    def as_of(self, history: History, coming: int) -> KeptFacts:
        """The same for a log that has grown since, and gets so many messages of the person next."""
        later = copy(self)
        later._history, later._coming, later._counted = history.so_far(), coming, None
        return later

    def count(self) -> tuple[int, int]:
        """(readable in the view, all in the log)."""
        counted = [pair for kind, pair in self.by_kind().items() if kind in (WORDS, FILES)]
        return sum(kept for kept, _ in counted), sum(total for _, total in counted)

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """The same by kind. Left out are empty kinds, WHOLE if all kept are whole, LOOKED_AT if all messages are."""
        if self._counted is None:
            text = _squeezed("\n".join(_texts(self._history, self._view)))
            said = list(_words(self._history))
            begun = [first[:READ_CHARS].rstrip() in text for first, *_ in said]
            whole = sum(begins and all(one in text for one in of) for begins, of in zip(begun, said, strict=True))
            files = [path in text for path in self._changed.union(_files(self._history))]
            head = self._history.head
            total = len(said) if head <= MOST_COUNTED + OLDEST_COUNTED else self._history.turns
            coming = self._coming
            self._counted = {WORDS: (sum(begun) + coming, total + coming)} if said or coming else {}
            self._counted |= {LOOKED_AT: (len(said), total)} if len(said) < total else {}
            self._counted |= {WHOLE: (whole + coming, sum(begun) + coming)} if whole < sum(begun) else {}
            self._counted |= {FILES: (sum(files), len(files))} if files else {}
            # Nobody knows how many answers a longer log has.
            self._counted |= _answers_in(text, self._history) if head <= MOST_COUNTED else {}
        return self._counted


def _answers_in(text: str, history: History) -> dict[str, tuple[int, int]]:
    """How many of the model's answers are in a text: whole, and by their beginning alone if there are any."""
    answers = [_squeezed(one.text) for one in Past.of(history).answers if one.line is None]
    whole = sum(answer in text for answer in answers)
    cut = sum(answer[:ANSWER_CHARS].rstrip() in text for answer in answers) - whole
    counted = {ANSWERS: (whole, len(answers))} if answers else {}
    return counted | ({CUT: (cut, len(answers))} if cut else {})


def _texts(history: History, view: View) -> Iterator[str]:
    for message in resolve(history, view):
        yield message.told
        yield from (part.text for part in message.attachments)
        yield from (call.arguments for call in message.tool_calls)


def _words(history: History) -> Iterator[list[str]]:
    """The typed and the pasted text of each message of the person, and the marks of its pictures.

    A reason for refusing a call stands in its result, and is no message of its own.
    """
    past = Past.of(history)
    oldest = islice(past.forwards(), OLDEST_COUNTED if history.head > MOST_COUNTED else 0)
    newest = islice(past.backwards(), MOST_COUNTED)
    for entry in {entry.seq: entry for entry in chain(newest, oldest)}.values():
        said = past.said(entry.message) if entry.message.role == "user" else None
        if said is not None:
            parts = [said.typed, *(text for source, text in said.beside if source == "pasted"), *said.marks]
            if words := [_squeezed(part) for part in parts if part.strip()]:
                yield words


def _files(history: History) -> Iterator[str]:
    past = Past.of(history)
    yield from (path for one in past.calls if one.has_worked and (path := one.changed_file))


def _squeezed(text: str) -> str:
    return " ".join(text.split())
