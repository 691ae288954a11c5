"""A person's or a model's question as a query of the index. No text can be a syntax error: only words are taken of it.

A question becomes *terms*. Each has phrases that count as it: the word itself, its other forms, near words for less. A
path, an identifier or a number with a sign inside is a phrase of its words, beside them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nca.messages import clean_text
from nca.sessions.language import STOP_WORDS, forms_of, near_words
from nca.sessions.marks import SAYS_HOW_MANY, SAYS_WHEN
from nca.sessions.passages import BY, CAMEL, CAMEL_PART, CJK_RUN, pairs

MAX_CHARS = 2_000
"""More of a question is left out: a pasted file is no question."""
FORM_WEIGHT = 0.9
NEAR_WEIGHT = 0.35
PREFIX_WEIGHT = 0.7
PART_WEIGHT = 0.5
"""What a phrase counts beside the word itself; a word that is part of a path, beside the path."""
NAME_WEIGHT = 1.0
ASKED_WEIGHT = 0.4
"""Who speaks, and that a time or a number is said where one is asked for, beside what is said."""

_FEWEST_FOR_PREFIX = 4
_QUOTED = re.compile(r'["“”]([^"“”]{2,200})["“”]')
_RUN = re.compile(r"[^\s\"'`’‘“”,;()\[\]{}<>|]+")
_WORD = re.compile(r"[^\W_]+")
_ASKED = (
    (
        SAYS_WHEN,
        re.compile(r"\b(?:when|(?:what|which) (?:day|date|month|year|time)|how (?:long ago|recently))\b", re.I),
    ),
    (SAYS_HOW_MANY, re.compile(r"\bhow (?:many|much|long|old|often|far|tall|big)\b", re.I)),
)
_CODE = re.compile(r"(?=.*\d)(?=.*[^\W\d_])[^\W_]+|[0-9a-f]{7,}")


@dataclass(frozen=True, slots=True)
class Phrase:
    """`text` is what FTS5 splits into words; all of them must follow each other."""

    text: str
    weight: float = 1.0
    is_prefix: bool = False

    @property
    def sql(self) -> str:
        return '"' + self.text.replace('"', " ") + '"' + ("*" if self.is_prefix else "")


@dataclass(frozen=True, slots=True)
class Term:
    phrases: tuple[Phrase, ...]
    weight: float = 1.0


def terms_of(question: str) -> list[Term]:
    """The terms of any text at all; none where it holds no word."""
    text = unicodedata.normalize("NFKC", clean_text(question[:MAX_CHARS])).replace("\0", " ")
    found: dict[str, Term] = {}
    for key, term in (*_quoted(text), *_wide(text), *_words(CJK_RUN.sub(" ", text))):
        known = found.get(key)
        if known is None or known.weight < term.weight:
            found[key] = term
    meant = [term for key, term in found.items() if key not in STOP_WORDS]
    if meant:
        return [*meant, *(Term((Phrase(mark),), ASKED_WEIGHT) for mark, asked in _ASKED if asked.search(text))]
    return list(found.values())


def _quoted(text: str) -> Iterator[tuple[str, Term]]:
    for quoted in _QUOTED.findall(text):
        if len(_WORD.findall(quoted)) > 1 and not CJK_RUN.search(quoted):
            yield f'"{quoted.lower()}"', Term((Phrase(quoted),), 1.5)


def _wide(text: str) -> Iterator[tuple[str, Term]]:
    """Runs of CJK characters: their pairs, and the whole run."""
    for run in CJK_RUN.findall(text):
        if len(run) == 1:
            yield run, Term((Phrase(run, is_prefix=True),))
            continue
        two = list(pairs(run))[:-1]
        for pair in two:
            yield pair, Term((Phrase(pair),))
        if len(two) > 1:
            yield run, Term((Phrase(" ".join(two)),))


def _words(text: str) -> Iterator[tuple[str, Term]]:
    for run in _RUN.findall(text):
        words = _WORD.findall(run)
        is_compound = len(words) > 1
        if is_compound:
            yield run.lower(), Term((Phrase(run),), 1.0)
        for word in words:
            weight = PART_WEIGHT if is_compound else 1.0
            yield word.lower(), Term(tuple(_phrases(word)), weight)
            if word.lower() not in STOP_WORDS:
                yield BY + word.lower(), Term((Phrase(BY + word.lower()),), NAME_WEIGHT * weight)


def _phrases(word: str) -> Iterable[Phrase]:
    """The word, and what counts as it."""
    lower = word.lower()
    yield Phrase(lower)
    if CAMEL.fullmatch(word):
        yield Phrase(" ".join(CAMEL_PART.findall(word)))
    if len(lower) >= _FEWEST_FOR_PREFIX and _CODE.fullmatch(lower):
        yield Phrase(lower, PREFIX_WEIGHT, is_prefix=True)
    for form in forms_of(lower):
        yield Phrase(form, FORM_WEIGHT)
    for near in near_words(lower):
        yield Phrase(near, NEAR_WEIGHT)
