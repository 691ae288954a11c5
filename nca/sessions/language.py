"""Tables of words for search: stop words of ten languages, irregular forms and near words in English."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from functools import cache
from pathlib import Path

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
    """The other words of the word's groups, looked up by the word or by what it is without its ending."""
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
