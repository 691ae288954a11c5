"""Long pastes are folded in the prompt to `[pasted 214 lines]` and sent whole."""

from __future__ import annotations

import re

FOLD_LINES = 12
FOLD_CHARS = 2_000

_NEWLINE = re.compile(r"\r\n?")


class FoldedPastes:
    """Remembers what each placeholder stands for while the program runs."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._folded = ""

    def fold(self, pasted: str) -> str:
        """What to put into the prompt for a pasted text."""
        text = _NEWLINE.sub("\n", pasted)
        lines = text.count("\n") + 1
        if lines < FOLD_LINES and len(text) < FOLD_CHARS:
            return text
        size = f"{lines} lines" if lines > 1 else f"{len(text):,} characters"
        placeholder = f"[pasted {size}]"
        number = 2
        while self._texts.get(placeholder, text) != text:
            placeholder = f"[pasted {size} #{number}]"
            number += 1
        self._texts[placeholder] = text
        return placeholder

    def unfold(self, text: str) -> str:
        """The text with every placeholder replaced by what was pasted."""
        self._folded = text
        if not self._texts or "[pasted " not in text:
            return text
        pattern = "|".join(re.escape(placeholder) for placeholder in self._texts)
        return re.sub(pattern, lambda found: self._texts[found[0]], text)

    def refold(self, text: str) -> str:
        """For a text that was sent and comes back into the prompt: how it stood there."""
        return self._folded if text and self.unfold(self._folded) == text else text
