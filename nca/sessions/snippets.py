"""Cut the snippet out of a text that holds most of a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from nca.sessions.passages import CJK_RUN

_WORD = re.compile(r"[^\W_]+")
_ENDING = r"[^\W_]{0,8}"
_FEWEST = 2
_GAP_CHARS = 24
"""How far a cut may move to fall between two words."""
_LEAD_RATIO = 0.25
"""Share of a snippet before the first matching word."""


class SnippetFinder:
    """Finds the words of a question in a text, in any form."""

    def __init__(self, weights: Mapping[str, float], stem: Callable[[str], str]) -> None:
        """`weights`: by word in lower case. `stem`: stems a word as the index does."""
        self._weights: dict[str, float] = {}
        for word, weight in weights.items():
            beginning = _common(word, stem(word))
            key = beginning if len(beginning) >= min(_FEWEST, len(word)) else word
            self._weights[key] = max(weight, self._weights.get(key, 0.0))
        longest = sorted(self._weights, key=len, reverse=True)
        wide = [re.escape(key) for key in longest if CJK_RUN.fullmatch(key)]
        narrow = [re.escape(key) for key in longest if not CJK_RUN.fullmatch(key)]
        choices = [f"({'|'.join(wide)})"] if wide else []
        choices += [rf"(?<![^\W_])({'|'.join(narrow)}){_ENDING}"] if narrow else []
        self._pattern = re.compile("|".join(choices), re.IGNORECASE) if choices else None

    def snippet(self, text: str, chars: int) -> str:
        """The best `chars` characters of `text`, or its beginning if no word matches."""
        hits = self._hits(text)
        best, first = 0.0, 0
        for number, (start, _) in enumerate(hits):
            held: dict[str, float] = {}
            for at, key in hits[number:]:
                if at - start > chars * (1 - _LEAD_RATIO) - _GAP_CHARS:
                    break
                held[key] = self._weights.get(key, 0.0)
            if sum(held.values()) > best:
                best, first = sum(held.values()), start
        return cut(text, first - int(chars * _LEAD_RATIO) if hits else 0, chars)

    def _hits(self, text: str) -> list[tuple[int, str]]:
        if self._pattern is None:
            return []
        return [(match.start(), (match[match.lastindex or 0]).lower()) for match in self._pattern.finditer(text)]


def _common(one: str, other: str) -> str:
    """The common prefix."""
    length = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]


def cut(text: str, first: int, chars: int) -> str:
    """`chars` characters from `first` on, as one line cut between words, with an ellipsis for omitted text."""
    first = max(0, min(first, len(text) - chars))
    if first > 0:
        gap = text.find(" ", first, first + _GAP_CHARS)
        first = gap + 1 if gap >= 0 else first
    last = min(len(text), first + chars)
    if last < len(text):
        gap = text.rfind(" ", last - _GAP_CHARS, last)
        last = gap if gap > first else last
    line = " ".join(text[first:last].split())
    return ("…" if first > 0 else "") + line + ("…" if last < len(text) else "")
