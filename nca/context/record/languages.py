"""Which words mark rules, corrections, decisions, findings and negations, in ten languages (`languages.toml`).

They also stand where nothing is ordered ("it must be late", "I don't know"), so `orders` looks closer at a sentence.
They only order what is kept: a person's words stay as words whether or not a pattern knows them.
"""

from __future__ import annotations

import pkgutil
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import Any, Literal

Mark = Literal["rules", "corrections", "decisions", "findings", "negations"]
LONGEST_FILLER_CHARS = 60
# Python's `re` skips quickly to where an expression may begin only if that begins with a character or a set of them. So
# these begin with what stands before a word or between two sentences.
_SENTENCE_END = re.compile(
    r"(?m)\s(?:(?<=[.!?…]\s)(?<!\s\d\.\s)(?<!\s\d\d\.\s)(?<!^\d\.\s)(?<!^\d\d\.\s)\s*|(?<=\n)\n*)"
)
"""Not after an ordinal ("am 4. Februar") or the number of an item in a list."""
_WIDE_SENTENCE_END = re.compile(r"(?<=[。！？])\s*")
_CLOSING = " \t\n\"'”»)*_"
"""What may stand behind the mark at the end of a sentence."""
_LETTER = re.compile(r"[^\W\d_](?![?*+{])")
"""How a word begins that is an expression, where that is one letter."""
_CHOICE = re.compile(r"\(\?:([^()]*)\)(?![?*+{])(.*)")
"""An expression that begins with a choice of words."""


@cache
def languages() -> tuple[dict[str, Any], ...]:
    """The table, one entry a language; package data, read once."""
    # Not `importlib.resources`: that loads zip files and threads first, which takes longer than all words to be read.
    text = pkgutil.get_data(__package__, "languages.toml") or b""
    return tuple(tomllib.loads(text.decode())["language"])


@cache
def _pattern(wanted: tuple[Mark, ...], *, is_ascii: bool) -> re.Pattern[str]:
    """All languages' words for these things, to be searched for in a text with a space before it."""
    return re.compile(rf"\W(?:{_words(wanted, has_spaces=True, is_ascii=is_ascii)})(?!\w)")


@cache
def _unspaced(wanted: tuple[Mark, ...]) -> re.Pattern[str]:
    """The words of the languages without spaces, which may stand anywhere."""
    return re.compile(_words(wanted, has_spaces=False, is_ascii=False))


def _words(wanted: tuple[Mark, ...], *, has_spaces: bool, is_ascii: bool) -> str:
    return _any_of(
        word
        for one in languages()
        if one.get("has_spaces", True) is has_spaces
        for mark in wanted
        for word in one[mark]
        if word[0].isascii() or not is_ascii
    )


def _any_of(words: Iterable[str]) -> str:
    """An expression for any of these, by their first letters: most places in a text begin none of them."""
    by_letter: dict[str, list[str]] = {}
    for word in chain.from_iterable(map(_each_beginning, words)):
        begins = _LETTER.match(word)
        letter = begins[0] if begins else ""
        by_letter.setdefault(letter, []).append(word.removeprefix(letter))
    return "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items())


def _each_beginning(word: str) -> list[str]:
    choice = _CHOICE.fullmatch(word)
    return [f"{begins}{choice[2]}" for begins in choice[1].split("|")] if choice else [word]


def marks(text: str, *wanted: Mark) -> bool:
    """Whether a text has a word that marks one of these."""
    lowered, is_ascii = text.lower(), text.isascii()
    if _pattern(wanted, is_ascii=is_ascii).search(f" {lowered}") is not None:
        return True
    return not is_ascii and _unspaced(wanted).search(lowered) is not None


def orders(sentence: str) -> bool:
    """Whether a sentence orders or corrects something: no question that is no request, no idle use of these words."""
    if not marks(sentence, "rules", "corrections"):
        return False
    lowered = f" {sentence}".lower().replace("’", "'")
    # "Never push, ok?" asks nothing.
    is_question = lowered.rstrip(_CLOSING).endswith(("?", "？")) and not says_nothing(lowered.rpartition(",")[2])
    if is_question and not _uses("requests").search(lowered):
        return False
    return marks(_uses("idle").sub(" ", lowered), "rules", "corrections")


@cache
def _uses(kind: Literal["idle", "requests"]) -> re.Pattern[str]:
    """All languages' words of this kind; those of a language without spaces may stand anywhere.

    Few sentences are looked through, so they are not sorted by their letters: that takes longer to compile.
    """
    spaced, unspaced = (
        "|".join(word for one in languages() if one.get("has_spaces", True) is has_spaces for word in one[kind])
        for has_spaces in (True, False)
    )
    return re.compile(rf"\W(?:{spaced})(?!\w)|{unspaced}")


def says_nothing(text: str) -> bool:
    """Whether a whole message is a filler such as "ok", "weiter" or "continue"."""
    return len(text) <= LONGEST_FILLER_CHARS and _filler().fullmatch(text.strip()) is not None


@cache
def _filler() -> re.Pattern[str]:
    words = "|".join(word for one in languages() for word in one["fillers"])
    return re.compile(rf"(?i)(?:(?:{words})[\s.,!?…。！、]*)+")


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, stripped, none empty."""
    parts = _SENTENCE_END.split(text)
    if not text.isascii():
        parts = [one for part in parts for one in _WIDE_SENTENCE_END.split(part)]
    return [one for part in parts if (one := part.strip())]
