"""What a passage says beside its words: a time, a number. A mark in the index's second column stands for each.

Every message that enters a log is looked through for them, so text of ASCII, which nearly all is, is asked by its words
first: the patterns alone would take more time than all the rest of storing a message.
"""

from __future__ import annotations

import re

SAYS_WHEN, SAYS_HOW_MANY = "nca9when", "nca9count"
"""Words that nobody writes."""

_TIME_WORDS = (
    "yesterday|today|tonight|tomorrow|ago|monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    "|january|february|march|april|june|july|august|september|october|november|december"
    "|since|until|recently|weekend"
)
_BEFORE_A_TIME = "last|next|this|past|coming"
_DATED = r"(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th)"
_OF_DAY = r"\d{1,2}(?::\d\d)? ?[ap]m"
_NUMBER_WORDS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|million|once|twice"
    "|second|third|several|couple|few|half"
)
_TIME = re.compile(rf"\b(?:{_TIME_WORDS}|(?:{_BEFORE_A_TIME}) \w+|{_DATED}|{_OF_DAY})\b", re.IGNORECASE)
_NUMBER = re.compile(rf"\d|\b(?:{_NUMBER_WORDS})\b", re.IGNORECASE)

_TIMES, _NUMBERS = frozenset(_TIME_WORDS.split("|")), frozenset(_NUMBER_WORDS.split("|"))
_PERHAPS = frozenset(_BEFORE_A_TIME.split("|")) | {"am", "pm"}
"""Words that make a time only together with others: the pattern decides."""
_WORD = re.compile(r"\w+")
_DIGIT_WORD = re.compile(rf"(?:{_DATED}|\d{{1,2}}[ap]m)\Z")


def marks(text: str) -> list[str]:
    """The marks of what is said."""
    if not text.isascii():
        says_when, says_how_many = bool(_TIME.search(text)), bool(_NUMBER.search(text))
    else:
        words = set(_WORD.findall(text.lower()))
        says_when, says_how_many = _says_when(text, words), _says_how_many(text, words)
    return [mark for mark, is_said in ((SAYS_WHEN, says_when), (SAYS_HOW_MANY, says_how_many)) if is_said]


def _says_when(text: str, words: set[str]) -> bool:
    """As `_TIME` finds it in ASCII text: there, what stands between two word boundaries is a word of this set."""
    if not words.isdisjoint(_TIMES) or any(_DIGIT_WORD.match(word) for word in words if word[0].isdigit()):
        return True
    return not words.isdisjoint(_PERHAPS) and _TIME.search(text) is not None


def _says_how_many(text: str, words: set[str]) -> bool:
    return not words.isdisjoint(_NUMBERS) or any(digit in text for digit in "0123456789")
