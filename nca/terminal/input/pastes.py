"""Fold long pastes in the prompt to `[pasted 214 lines]`; they are sent in full.

In the text of the prompt a folded paste is one character of Unicode's last private plane; `nca.terminal.input.display`
draws its label. So each key treats it as one: Backspace deletes it, an arrow moves past it, and no edit splits it.
"""

from __future__ import annotations

import re
from collections import Counter

FOLD_LINES = 12
FOLD_CHARS = 2_000

_FIRST, _LAST = 0x10F000, 0x10FFFD
_RESERVED = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_NEWLINE = re.compile(r"\r\n?")


def paste_label(text: str) -> str:
    """The label of a long text: `[pasted 214 lines]`."""
    lines = text.removesuffix("\n").count("\n") + 1
    return f"[pasted {lines} lines]" if lines > 1 else f"[pasted {len(text):,} characters]"


def is_long(text: str) -> bool:
    return len(text) >= FOLD_CHARS or text.count("\n") + 1 >= FOLD_LINES


class FoldedPastes:
    """Keeps the text of each folded paste while the program runs."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._marks: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._alike: Counter[str] = Counter()

    def fold(self, pasted: str) -> str:
        """The text to insert for a paste: itself, or the character that represents it."""
        text = _NEWLINE.sub("\n", pasted)
        # A text with such a character is folded too, or the character would be taken for another paste.
        return self._mark(text) if is_long(text) or _RESERVED.search(text) else text

    def unfold(self, text: str) -> str:
        """The text with its pastes in full."""
        return _RESERVED.sub(lambda found: self._texts.get(found[0], found[0]), text)

    def refold(self, text: str) -> str:
        """Fold the pastes of a text that returns to the prompt, after a failure or from an editor."""
        known = sorted((one for one in self._marks if one in text), key=len, reverse=True)
        if not known:
            return text
        return re.sub("|".join(map(re.escape, known)), lambda found: self._marks[found[0]], text)

    def label(self, character: str) -> str | None:
        """The label of a character that represents a paste; None for any other."""
        return self._labels.get(character)

    def has_folded(self, text: str) -> bool:
        return _RESERVED.search(text) is not None

    def _mark(self, text: str) -> str:
        """The character for a text; the text itself once all characters are in use."""
        if text in self._marks:
            return self._marks[text]
        if _FIRST + len(self._texts) > _LAST:
            return text
        mark = chr(_FIRST + len(self._texts))
        label = paste_label(text)
        self._alike[label] += 1
        if (number := self._alike[label]) > 1:
            label = f"{label[:-1]} #{number}]"
        self._texts[mark], self._marks[text], self._labels[mark] = text, mark, label
        return mark
