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
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+|\n+")


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
        """The sentences of `text` that hold most, at most `chars` characters; its beginning if no word matches."""
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
        return cut(text, _sentence_start(text, first, int(chars * _LEAD_RATIO)) if hits else 0, chars)

    def _hits(self, text: str) -> list[tuple[int, str]]:
        if self._pattern is None:
            return []
        return [(match.start(), (match[match.lastindex or 0]).lower()) for match in self._pattern.finditer(text)]


def _common(one: str, other: str) -> str:
    """The common prefix."""
    length = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]


def _sentence_start(text: str, place: int, most: int) -> int:
    """Where the sentence around `place` begins, or `most` characters before it in a longer sentence."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text, max(0, place - most), place)]
    return ends[-1] if ends else place - most


def cut(text: str, first: int, chars: int) -> str:
    """At most `chars` characters from `first` on, as one line, with an ellipsis for omitted text.

    It ends with a sentence if one ends in its second half, else between two words.
    """
    earliest = max(0, len(text) - chars)
    if first > earliest:
        # There is room for sentences before it.
        ends = [match.end() for match in _SENTENCE_END.finditer(text, earliest, first)]
        first = 0 if not earliest else min(ends, default=first)
    first = max(0, first)
    if first > 0 and not text[first - 1].isspace() and not _SENTENCE_END.match(text[first - 1]):
        gap = text.find(" ", first, first + _GAP_CHARS)
        first = gap + 1 if gap >= 0 else first
    last = min(len(text), first + chars)
    if last < len(text):
        ends = [match.end() for match in _SENTENCE_END.finditer(text, first + chars // 2, last + 1)]
        gap = ends[-1] if ends else text.rfind(" ", last - _GAP_CHARS, last)
        last = min(last, gap) if gap > first else last
    line = " ".join(text[first:last].split())
    return ("…" if text[:first].strip() else "") + line + ("…" if text[last:].strip() else "")
