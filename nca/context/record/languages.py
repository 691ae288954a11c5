"""Which words mark rules, corrections, decisions, findings and negations, in ten languages (`languages.toml`).

They only order what is kept: a person's words stay as words whether or not a pattern knows them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Mark = Literal["rules", "corrections", "decisions", "findings", "negations"]
LONGEST_FILLER_CHARS = 60
_SENTENCE_END = re.compile(r"(?m)(?<=[.!?…])(?<!\s\d\.)(?<!\s\d\d\.)(?<!^\d\.)(?<!^\d\d\.)\s+|(?<=[。！？])\s*|\n+")
"""Not after an ordinal ("am 4. Februar") or the number of an item in a list."""
_LETTER = re.compile(r"[^\W\d_](?![?*+{])")
"""How a word begins that is an expression, where that is one letter."""


@cache
def languages() -> tuple[dict[str, Any], ...]:
    """The table, one entry a language; package data, read once."""
    text = files(__package__).joinpath("languages.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["language"])


@cache
def _pattern(wanted: tuple[Mark, ...], *, is_ascii: bool) -> re.Pattern[str]:
    """All languages' words for these things. A word of a language without spaces may stand anywhere."""
    spaced, others = (
        _any_of(
            word
            for one in languages()
            if one.get("has_spaces", True) is has_spaces
            for mark in wanted
            for word in one[mark]
            if word[0].isascii() or not is_ascii
        )
        for has_spaces in (True, False)
    )
    return re.compile(rf"(?<!\w)(?:{spaced})(?!\w)" + (f"|{others}" if others else ""))


def _any_of(words: Iterable[str]) -> str:
    """An expression for any of these, by their first letters: most places in a text begin none of them."""
    by_letter: dict[str, list[str]] = {}
    for word in words:
        begins = _LETTER.match(word)
        letter = begins[0] if begins else ""
        by_letter.setdefault(letter, []).append(word.removeprefix(letter))
    return "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items())


def marks(text: str, *wanted: Mark) -> bool:
    """Whether a text has a word that marks one of these."""
    return _pattern(wanted, is_ascii=text.isascii()).search(text.lower()) is not None


def says_nothing(text: str) -> bool:
    """Whether a whole message is a filler such as "ok", "weiter" or "continue"."""
    return len(text) <= LONGEST_FILLER_CHARS and _filler().fullmatch(text.strip()) is not None


@cache
def _filler() -> re.Pattern[str]:
    words = "|".join(word for one in languages() for word in one["fillers"])
    return re.compile(rf"(?i)(?:(?:{words})[\s.,!?…。！、]*)+")


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, stripped, none empty."""
    return [one for part in _SENTENCE_END.split(text) if (one := part.strip())]
