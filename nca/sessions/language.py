"""Tables of words for search: stop words of ten languages, and irregular forms in English (`languages.toml`)."""

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
    lists = {language: frozenset(text.split()) for language, text in _tables()["stop_words"].items()}
    counts = {language: len(listed.intersection(words)) for language, listed in lists.items()}
    likeliest = max(counts, key=lambda language: (counts[language], language == _DEFAULT))
    return lists[likeliest if counts[likeliest] >= _FEWEST_STOP_WORDS else _DEFAULT]


@cache
def stop_phrases() -> re.Pattern[str]:
    """Finds the stretches of a Chinese, Japanese or Korean question that carry no meaning."""
    phrases = " ".join(_tables()["stop_phrases"].values()).split()
    return re.compile("|".join(sorted(phrases, key=len, reverse=True)))


def irregular_forms(word: str) -> tuple[str, ...]:
    """Other forms of an English word in lower case, such as `went` for `goes`; usually none."""
    groups = _groups()
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and (group := groups.get(word[: len(word) - len(ending)] + replacement)):
            return tuple(form for form in group if form != word)
    return ()


@cache
def _groups() -> dict[str, tuple[str, ...]]:
    groups = [tuple(group.split()) for text in _tables()["irregular_forms"].values() for group in text.split(";")]
    return {word: group for group in groups for word in group}


@cache
def _tables() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))
