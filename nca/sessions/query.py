"""Turn a question into terms for the full-text index. Any text is valid: only its words are used.

A term is satisfied by any of its phrases: the word itself, its other forms, and, for less, its beginning and words
of about the same meaning. A path, an identifier or a number with punctuation inside is also searched as one phrase.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path

from nca.messages import clean_text
from nca.sessions.passages import BY, CAMEL, CAMEL_PART, CJK_RUN, pairs

_DEFAULT = "English"
_FEWEST_STOP_WORDS = 2
"""Needed to recognize a language: "war museum" is not German."""
_ENDINGS = (("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ing", ""), ("ing", "e"))
"""English endings, and what replaces them in the word's base form."""


def stop_words(words: Collection[str]) -> frozenset[str]:
    """The stop words of the language that a question is in, judged by its `words` in lower case."""
    lists = _stop_words()
    counts = {language: len(listed.intersection(words)) for language, listed in lists.items()}
    likeliest = max(counts, key=lambda language: (counts[language], language == _DEFAULT))
    return lists[likeliest if counts[likeliest] >= _FEWEST_STOP_WORDS else _DEFAULT]


@cache
def _stop_words() -> dict[str, frozenset[str]]:
    return {language: frozenset(text.split()) for language, text in _tables()["stop_words"].items()}


@cache
def stop_phrases() -> re.Pattern[str]:
    """Finds the stretches of a Chinese, Japanese or Korean question that carry no meaning."""
    phrases = " ".join(_tables()["stop_phrases"].values()).split()
    return re.compile("|".join(sorted(phrases, key=len, reverse=True)))


def irregular_forms(word: str) -> tuple[str, ...]:
    """Other forms of an English word in lower case, such as `went` for `goes`; usually none."""
    return _beside("irregular_forms", word)


def near_words(word: str) -> tuple[str, ...]:
    """English words of about the same meaning, such as `film` for `movies`; usually none."""
    return _beside("near_words", word)


def _beside(table: str, word: str) -> tuple[str, ...]:
    """The other words of the word's groups, looked up by the word with or without its ending."""
    groups = _groups(table)
    for ending, replacement in _ENDINGS:
        base = word[: len(word) - len(ending)] + replacement
        if word.endswith(ending) and base in groups:
            return tuple(other for other in groups[base] if other not in (word, base))
    return ()


@cache
def _groups(table: str) -> dict[str, list[str]]:
    """By word, the words of all groups that it is in."""
    groups: dict[str, list[str]] = {}
    for group in (one.split() for text in _tables()[table].values() for one in text.split(";")):
        for word in group:
            groups.setdefault(word, []).extend(group)
    return groups


@cache
def _tables() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))


MAX_CHARS = 2_000
"""Characters of a question that are read; a pasted file is not a question."""
FORM_WEIGHT = 0.9
PREFIX_WEIGHT = 0.7
BEGINNING_WEIGHT = 0.5
NEAR_WEIGHT = 0.35
PART_WEIGHT = 0.5
"""How much other phrases count compared with the word itself, and a part of a path compared with the path."""
PARTLY_STOP_WEIGHT = 0.3
"""Weight of a pair of CJK characters if one belongs to a stop phrase."""
QUOTED_WEIGHT = 1.5
NAME_WEIGHT = 1.0
NAMED_WEIGHT = 1.3
"""Weight of a name, a number, a path or an identifier in the question."""

_FEWEST_FOR_PREFIX = 4
FEWEST_FOR_BEGINNING = 6
_ENDING_CHARS, _SHORTEST_BEGINNING = 3, 5
_QUOTED = re.compile(r'["“”]([^"“”]{2,200})["“”]')
_RUN = re.compile(r"[^\s\"'`’‘“”,;()\[\]{}<>|]+")
_WORD = re.compile(r"[^\W_]+")
_LAST_WORD = re.compile(r"[^\W_]+\Z")
_FEWEST_TYPED = 2
_LEAST_BEGINNING_RATIO = 0.4
"""The least share of a typed word that a word of the index begins with: `token`, the stem of `tokenisation`."""
_CODE = re.compile(r"(?=.*\d)(?=.*[^\W\d_])[^\W_]+|[0-9a-f]{7,}")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must follow each other. The index splits `text` into them."""

    text: str
    weight: float = 1.0
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """What a passage may hold.

    beginnings  of words, from long to short: the first that the index has is taken instead of the phrases if nothing
                holds one of these
    may_go_on   and beside them, however many passages hold it
    """

    phrases: tuple[Phrase, ...]
    weight: float = 1.0
    beginnings: tuple[Phrase, ...] = ()
    may_go_on: bool = False


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A term with how many passages hold it (at most) and its weight."""

    term: Term
    rows: int
    idf: float


@dataclass(frozen=True, slots=True)
class Only:
    """The part of all sessions to search: these rows of sessions, with so many messages, from a time on.

    since   seconds since the epoch
    """

    sessions: tuple[int, ...]
    messages: int
    since: float = 0.0


def terms_of(question: str, *, is_typed: bool = False) -> list[Term]:
    """The terms of any text; none if it holds no word. Stop words count only if there is nothing else.

    is_typed  a person may have typed beginnings of words: a word that nothing holds counts as one, and so does the word
              that the text ends with, which may be typed further. Where no word begins with it, ever less of it counts.
    """
    text = unicodedata.normalize("NFKC", clean_text(question[:MAX_CHARS])).replace("\0", " ")
    terms = _terms(text, ignores_stop_words=True) or _terms(text, ignores_stop_words=False)
    if not is_typed:
        return terms
    last = _LAST_WORD.search(text)
    return [_begun(term, last[0].lower() if last else "") for term in terms]


def _begun(term: Term, last: str) -> Term:
    """The term of a word that may be the beginning of one; any other as it is. `last`: the word that may go on."""
    word = term.phrases[0].text
    if not _WORD.fullmatch(word) or word.startswith(BY) or len(word) < _FEWEST_TYPED or CJK_RUN.search(word):
        return term
    # Ever shorter: the index holds stems, and `compact` does not begin with `compactio`.
    least = max(_FEWEST_TYPED, ceil(_LEAST_BEGINNING_RATIO * len(word)))
    lengths = range(len(word), least - 1, -1)
    beginnings = tuple(Phrase(word[:length], PREFIX_WEIGHT, is_prefix=True) for length in lengths)
    return Term(term.phrases, term.weight, beginnings, may_go_on=word == last)


def _terms(text: str, *, ignores_stop_words: bool) -> list[Term]:
    ignored = stop_words(_WORD.findall(text.lower())) if ignores_stop_words else frozenset()
    found: dict[str, Term] = {}
    for key, term in (
        *_quoted(text),
        *_cjk(text, ignores_stop_phrases=ignores_stop_words),
        *_words(CJK_RUN.sub(" ", text), ignored),
    ):
        known = found.get(key)
        if known is None or known.weight < term.weight:
            found[key] = term
    return list(found.values())


def _quoted(text: str) -> Iterator[tuple[str, Term]]:
    for quoted in _QUOTED.findall(text):
        if len(_WORD.findall(quoted)) > 1 and not CJK_RUN.search(quoted):
            yield f'"{quoted.lower()}"', Term((Phrase(quoted),), QUOTED_WEIGHT)


def _cjk(text: str, *, ignores_stop_phrases: bool) -> Iterator[tuple[str, Term]]:
    """Pairs of neighbouring CJK characters, and each whole run of them."""
    for run in CJK_RUN.findall(text):
        is_stop = [False] * len(run)
        for match in stop_phrases().finditer(run) if ignores_stop_phrases else ():
            is_stop[slice(*match.span())] = [True] * len(match[0])
        if all(is_stop):
            continue
        if len(run) == 1:
            yield run, Term((Phrase(run, is_prefix=True),))
            continue
        run_pairs = list(pairs(run))[:-1]
        for place, pair in enumerate(run_pairs):
            match is_stop[place] + is_stop[place + 1]:
                case 0:
                    yield pair, Term((Phrase(pair),))
                case 1:
                    yield pair, Term((Phrase(pair),), PARTLY_STOP_WEIGHT)
        if len(run_pairs) > 1:
            yield run, Term((Phrase(" ".join(run_pairs)),))


def _words(text: str, ignored: Collection[str]) -> Iterator[tuple[str, Term]]:
    is_not_first = False
    for run in _RUN.findall(text):
        words = _WORD.findall(run)
        is_compound = len(words) > 1
        if is_compound:
            yield run.lower(), Term((Phrase(run),), NAMED_WEIGHT)
        for word in words:
            lower, weight = word.lower(), PART_WEIGHT if is_compound else 1.0
            if any(map(str.isdigit, word)) or (is_not_first and word[0].isupper()):
                weight *= NAMED_WEIGHT
            is_not_first = True
            if lower not in ignored:
                yield lower, Term(tuple(_phrases(word)), weight)
                yield BY + lower, Term((Phrase(BY + lower),), NAME_WEIGHT * weight)


def _phrases(word: str) -> Iterator[Phrase]:
    """The word, and what counts as it."""
    lower = word.lower()
    yield Phrase(lower)
    if CAMEL.fullmatch(word):
        yield Phrase(" ".join(CAMEL_PART.findall(word)))
    if len(lower) >= _FEWEST_FOR_PREFIX and _CODE.fullmatch(lower):
        yield Phrase(lower, PREFIX_WEIGHT, is_prefix=True)
    elif len(lower) >= FEWEST_FOR_BEGINNING and lower.isalpha():
        # The index stems English only. In every language, words of one stem begin alike.
        yield Phrase(lower[: max(_SHORTEST_BEGINNING, len(lower) - _ENDING_CHARS)], BEGINNING_WEIGHT, is_prefix=True)
    for form in irregular_forms(lower):
        yield Phrase(form, FORM_WEIGHT)
    for near in near_words(lower):
        yield Phrase(near, NEAR_WEIGHT)
