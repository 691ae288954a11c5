"""Fold long pastes in the prompt to `[pasted 214 lines]`; they are sent in full.

In the text of the prompt a folded paste is one character of Unicode's last private plane; `nca.terminal.input.display`
draws its label. So each key treats it as one: Backspace deletes it, an arrow moves past it, and no edit splits it.
"""

from __future__ import annotations

import re
from collections import Counter

from nca.words import Span, Words, merged, part_of, text_of

FOLD_LINES = 12
FOLD_CHARS = 2_000

_FIRST, _LAST = 0x10F000, 0x10FFFD
_RESERVED = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_PIECES = re.compile(f"([{chr(_FIRST)}-{chr(_LAST)}])")
_NEWLINE = re.compile(r"\r\n?")


def paste_label(text: str) -> str:
    """The label of a long text: `[pasted 214 lines]`."""
    lines = text.removesuffix("\n").count("\n") + 1
    return f"[pasted {lines} lines]" if lines > 1 else f"[pasted {len(text):,} characters]"


def is_long(text: str) -> bool:
    return len(text) >= FOLD_CHARS or text.count("\n") + 1 >= FOLD_LINES


class FoldedPastes:
    """Keeps the text of each folded paste, with who said each part of it, while the program runs."""

    def __init__(self) -> None:
        self._said: dict[str, Words] = {}
        self._marks: dict[Words, str] = {}
        self._labels: dict[str, str] = {}
        self._label_of: dict[str, str] = {}
        self._alike: Counter[str] = Counter()

    def fold_pasted(self, pasted: str) -> Words:
        """What to insert for a paste: its text, or the character that represents it."""
        return self.fold((Span(_NEWLINE.sub("\n", pasted), "pasted"),))

    def fold(self, said: Words) -> Words:
        """The words as they are, or the character that represents them if they are long."""
        text = text_of(said)
        # A text with such a character is folded too, or the character would be taken for another paste.
        return self._mark(said) if is_long(text) or _RESERVED.search(text) else said

    def unfold(self, said: Words) -> Words:
        """The words with their pastes in full."""
        found: list[Span] = []
        for span in said:
            for piece in _PIECES.split(span.text):
                found += self._said.get(piece) or (span._replace(text=piece),)
        return merged(tuple(found))

    def refold(self, said: Words) -> Words:
        """Fold the pastes of a text that returns to the prompt, after a failure or from an editor."""
        text = text_of(said)
        known = sorted((one for one in self._label_of if one in text), key=len, reverse=True)
        if not known:
            return said
        found: Words = ()
        end = 0
        for match in re.finditer("|".join(map(re.escape, known)), text):
            found += (*part_of(said, end, match.start()), *self._mark(part_of(said, *match.span())))
            end = match.end()
        return merged((*found, *part_of(said, end)))

    def label(self, character: str) -> str | None:
        """The label of a character that represents a paste; None for any other."""
        return self._labels.get(character)

    def _mark(self, said: Words) -> Words:
        """The character for a text; the text itself once all characters are in use."""
        said = merged(said)
        mark = self._marks.get(said, "")
        if not mark and _FIRST + len(self._said) > _LAST:
            return said
        if not mark:
            mark = chr(_FIRST + len(self._said))
            self._said[mark], self._marks[said], self._labels[mark] = said, mark, self._label(text_of(said))
        return (Span(mark, "pasted"),)

    def _label(self, text: str) -> str:
        """One label for each text, numbered where two texts are of the same size."""
        if text not in self._label_of:
            label = paste_label(text)
            self._alike[label] += 1
            number = self._alike[label]
            self._label_of[text] = f"{label[:-1]} #{number}]" if number > 1 else label
        return self._label_of[text]
