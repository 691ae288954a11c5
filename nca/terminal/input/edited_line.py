"""One line, or several rows, edited with emacs keys."""

from __future__ import annotations

import re

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from nca.words import Source, Span, Words, replaced, text_of

_WORD_BEFORE = re.compile(r"\S*\s*\Z")
_WORD_BACK, _WORD_ON = re.compile(r"\w*\W*\Z"), re.compile(r"\W*\w*")


class Line:
    """A line being edited with emacs keys. `said` is as in the prompt: a folded paste is one character."""

    def __init__(self, said: Words = (), place: int | None = None) -> None:
        self.said = said
        self.place = len(self.text) if place is None else place
        """The cursor's."""

    @property
    def text(self) -> str:
        return text_of(self.said)

    @property
    def before(self) -> str:
        return self.text[: self.place]

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()

    @property
    def continues(self) -> bool:
        """Enter makes a new line: a backslash at the end asks for one."""
        return self.place == len(self.text) and self.before.endswith("\\")

    def press(self, key: KeyPress, *, is_alt: bool = False) -> bool:
        """Apply a key. False for one that is not known."""
        match key.key:
            case "b" if is_alt:
                self.place = self._word_back
            case "f" if is_alt:
                self.place = self._word_on
            case "d" if is_alt:
                self._delete(self.place, self._word_on)
            case _ if is_alt:
                return False
            case Keys.ControlJ:
                self.put("\n")
            case str() as character if not isinstance(character, Keys):
                self.put(character)
            case _:
                return self._delete_by(key) or self._move_by(key)
        return True

    def _delete_by(self, key: KeyPress) -> bool:
        match key.key:
            case Keys.ControlH:
                self._delete(max(self.place - 1, 0), self.place)
            case Keys.Delete | Keys.ControlD:
                self._delete(self.place, self.place + 1)
            case Keys.ControlW:
                self._delete(len(_WORD_BEFORE.sub("", self.before)), self.place)
            case Keys.ControlU:
                self._delete(self._row_start, self.place)
            case Keys.ControlK:
                self._delete(self.place, self._row_end)
            case _:
                return False
        return True

    def _move_by(self, key: KeyPress) -> bool:
        match key.key:
            case Keys.Left | Keys.ControlB:
                self.place = max(self.place - 1, 0)
            case Keys.Right | Keys.ControlF:
                self.place = min(self.place + 1, len(self.text))
            case Keys.ControlLeft:
                self.place = self._word_back
            case Keys.ControlRight:
                self.place = self._word_on
            case Keys.Home | Keys.ControlA:
                self.place = self._row_start
            case Keys.End | Keys.ControlE:
                self.place = self._row_end
            case _:
                return False
        return True

    def up(self) -> bool:
        """To the row above. False on the first one."""
        start = self._row_start
        if not start:
            return False
        above = self.text.rfind("\n", 0, start - 1) + 1
        self.place = min(above + self.place - start, start - 1)
        return True

    def down(self) -> bool:
        """To the row below. False on the last one."""
        column, end = self.place - self._row_start, self._row_end
        if end == len(self.text):
            return False
        self.place = end + 1
        self.place = min(self.place + column, self._row_end)
        return True

    def break_row(self) -> None:
        """Start a new row, in place of the backslash that asked for it."""
        self._delete(len(self.before.removesuffix("\\")), self.place)
        self.put("\n")

    def put(self, text: str, source: Source = "typed") -> None:
        self.said = replaced(self.said, self.place, self.place, (Span(text, source),))
        self.place += len(text)

    def replace(self, start: int, text: str) -> None:
        """Put a text in the place of what stands between `start` and the cursor."""
        self._delete(start, self.place)
        self.put(text)

    @property
    def _row_start(self) -> int:
        return self.before.rfind("\n") + 1

    @property
    def _row_end(self) -> int:
        end = self.text.find("\n", self.place)
        return len(self.text) if end < 0 else end

    @property
    def _word_back(self) -> int:
        return len(_WORD_BACK.sub("", self.before))

    @property
    def _word_on(self) -> int:
        found = _WORD_ON.match(self.text, self.place)
        return found.end() if found else self.place

    def _delete(self, start: int, end: int) -> None:
        self.said = replaced(self.said, start, end, ())
        self.place = start
