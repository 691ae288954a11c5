"""Which words mark rules, corrections, decisions, findings and negations, in ten languages (`languages.toml`).

They only order what is kept: a person's words stay as words whether or not a pattern knows them.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Mark = Literal["rules", "corrections", "decisions", "findings", "negations"]
LONGEST_FILLER_CHARS = 60
_SENTENCE_END = re.compile(r"(?m)(?<=[.!?…])(?<!\s\d\.)(?<!\s\d\d\.)(?<!^\d\.)(?<!^\d\d\.)\s+|(?<=[。！？])\s*|\n+")
"""Not after an ordinal ("am 4. Februar") or the number of an item in a list."""


@cache
def languages() -> tuple[dict[str, Any], ...]:
    """The table, one entry a language; package data, read once."""
    text = files(__package__).joinpath("languages.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["language"])


@cache
def _pattern(mark: Mark) -> re.Pattern[str]:
    """All languages' words for one thing. A word of a language without spaces may stand anywhere."""
    spaced = "|".join(word for one in languages() if one.get("has_spaces", True) for word in one[mark])
    others = "|".join(word for one in languages() if not one.get("has_spaces", True) for word in one[mark])
    return re.compile(rf"(?i)(?<!\w)(?:{spaced})(?!\w)|{others}")


def marks(text: str, *wanted: Mark) -> bool:
    """Whether a sentence has a word that marks one of these."""
    return any(_pattern(mark).search(text) for mark in wanted)


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
