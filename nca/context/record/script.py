"""What divides a text in any script: words, numbers and sentences.

What a character is comes from Unicode's own categories, not from a list of languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from unicodedata import category

STOPS = ".!?…؟۔।॥։።"
"""What ends a sentence (Unicode's Sentence_Terminal) in scripts with blanks between words."""
PAUSES = ":;؛"
"""Where a part of a sentence ends."""
UNSPACED_STOPS = "。！？"
"""The same where no blank follows."""
_UNSPACED = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts that put no blanks between words: Thai, Lao, Japanese, Chinese."""
_WORD = re.compile(rf"(?:(?![{_UNSPACED}])[^\W_])+|(?=([{_UNSPACED}]{{2}}))[{_UNSPACED}]")
_DIGITS = str.maketrans("123456789", "0" * 9)
_PLAIN = {place: one.lower() if (one := chr(place)).isalnum() else " " for place in range(128)} | _DIGITS
"""Of an ASCII text: words in small letters, with blanks between them, and each digit as 0."""


class _Folded(dict[int, int | None]):
    """Digits of all scripts as 0, and no marks: with another mark a word is still the same, and more so without any."""

    def __missing__(self, char: int) -> int | None:
        kind = category(chr(char))
        self[char] = folded = ord("0") if kind == "Nd" else None if kind[0] == "M" else char
        return folded


_folded = _Folded()


def words_in(text: str, letters: int = 1) -> Iterator[str]:
    """The words of so many letters and more, to be counted or compared: in lower case, without marks, each digit as 0.

    In a script without blanks each pair of characters counts as one.
    """
    if text.isascii():
        found: Iterable[str] = text.translate(_PLAIN).split()
    else:
        found = (one[1] or one[0] for one in _WORD.finditer(text.lower().translate(_folded)))
    return (word for word in found if len(word) >= letters)


def is_inside(text: str, place: int) -> bool:
    """Whether a word with its marks, or what a sign joins, goes on here: a number, a path, a name with a dot."""
    before, after = text[place - 1], text[place]
    if _is_mark(after) or (after.isalnum() and (before.isalnum() or _is_mark(before))):
        return True
    sign, sides = (after, (place - 1, place + 1)) if before.isalnum() else (before, (place - 2, place))
    beside = "".join(text[at : at + 1] for at in sides if at >= 0)
    joins = beside.isdigit() if sign.isspace() or not sign.isascii() else beside.isalnum()
    return sign != "\n" and not sign.isalnum() and len(beside) == len(sides) and joins


def _is_mark(char: str) -> bool:
    return not char.isascii() and category(char)[0] == "M"
