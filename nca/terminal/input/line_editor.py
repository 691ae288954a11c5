"""Apply the keys typed while nca works to a line, as the prompt would.

Knows the keys that people use to correct a line. A line with any other key waits for the prompt, which gets the keys as
they were typed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from nca.terminal.input.line_kind import line_kind
from nca.terminal.input.pastes import is_long, paste_label

_WORD_BEFORE = re.compile(r"\S*\s*\Z")
_NEWLINE = re.compile(r"\r\n?")


@dataclass(slots=True)
class _Line:
    """A line being edited with emacs keys. `is_shown`: as the prompt shows it, with long pastes folded."""

    is_shown: bool
    before: str = ""
    after: str = ""

    def press(self, key: KeyPress) -> bool:
        """Apply a key. False for one that is not known."""
        line_start = self.before.rfind("\n") + 1
        line_end = self.after.find("\n") if "\n" in self.after else len(self.after)
        match key.key:
            case Keys.ControlJ:
                self.before += "\n"
            case Keys.BracketedPaste:
                text = _NEWLINE.sub("\n", key.data)
                self.before += paste_label(text) if self.is_shown and is_long(text) else text
            case Keys.ControlH:
                self.before = self.before[:-1]
            case Keys.Delete:
                self.after = self.after[1:]
            case Keys.ControlW:
                self.before = _WORD_BEFORE.sub("", self.before)
            case Keys.ControlU:
                self.before = self.before[:line_start]
            case Keys.ControlK:
                self.after = self.after[line_end:]
            case Keys.Left | Keys.ControlB:
                self._move(len(self.before) - 1)
            case Keys.Right | Keys.ControlF:
                self._move(len(self.before) + 1)
            case Keys.Home | Keys.ControlA:
                self._move(line_start)
            case Keys.End | Keys.ControlE:
                self._move(len(self.before) + line_end)
            case str() as character if not isinstance(character, Keys):
                self.before += character
            case _:
                return False
        return True

    def break_line(self) -> None:
        """Start a new line, in place of the backslash that asked for it."""
        self.before = self.before.removesuffix("\\") + "\n"

    @property
    def text(self) -> str:
        return self.before + self.after

    def _move(self, position: int) -> None:
        text = self.text
        position = max(position, 0)
        self.before, self.after = text[:position], text[position:]


class SentLine(NamedTuple):
    """A line that ended with Enter: its text, and its number of keys including Enter."""

    text: str
    keys: int


class Typed(NamedTuple):
    """The text of typed keys: the lines that ended with Enter, and the one being typed."""

    sent: list[str]
    open: str


def first_line(keys: Sequence[KeyPress]) -> SentLine | None:
    """The first line that ends with Enter. None if there is none, or if it holds an unknown key."""
    return _line_from(keys, 0, is_shown=False)[0]


def typed(keys: Sequence[KeyPress]) -> Typed:
    """Everything typed, as it is shown, without unknown keys."""
    sent: list[str] = []
    start = 0
    while True:
        line, rest = _line_from(keys, start, is_shown=True)
        if line is None:
            return Typed(sent, rest)
        sent.append(line.text)
        start += line.keys


def unsent(keys: Sequence[KeyPress]) -> str:
    """The whole text of keys that were not sent, with pastes in full and without unknown keys."""
    line = _Line(is_shown=False)
    for key in keys:
        if key.key == Keys.ControlM:
            line.break_line()
        else:
            line.press(key)
    return line.text


def separated(keys: Sequence[KeyPress]) -> list[list[KeyPress]]:
    """The same text in parts, without an Enter that sends it; the last part is what is still being typed.

    Messages in a row are one part, with a line break in place of each Enter; so is the line being typed after them.
    """
    parts: list[list[KeyPress]] = []
    is_open = False
    start = 0
    while True:
        line, text = _line_from(keys, start, is_shown=True)
        end = start + line.keys if line else len(keys)
        part = list(keys[start : end - 1] if line else keys[start:])
        is_message = line_kind(text) == "message"
        if part and is_open and is_message:
            parts[-1] += [KeyPress(Keys.ControlJ, "\n"), *part]
        elif part:
            parts.append(part)
        is_open = (is_open or bool(part)) and is_message
        if line is None:
            return parts if part else [*parts, []]
        start = end


def _line_from(keys: Sequence[KeyPress], start: int, *, is_shown: bool) -> tuple[SentLine | None, str]:
    """The line from `start` on that ends with Enter, or None; and the text so far."""
    line = _Line(is_shown)
    for number in range(start, len(keys)):
        key = keys[number]
        if key.key == Keys.ControlM:
            if not _is_new_line(keys, number, line.before if not line.after else ""):
                return SentLine(line.text, number - start + 1), line.text
            line.break_line()
        elif key.key == Keys.Escape and number + 1 < len(keys) and keys[number + 1].key == Keys.ControlM:
            # Alt-Enter: the Enter that follows makes the new line.
            continue
        elif not line.press(key) and not is_shown:
            return None, line.text
    return None, line.text


def _is_new_line(keys: Sequence[KeyPress], number: int, before: str) -> bool:
    """Whether an Enter makes a new line: after Escape (Alt-Enter) or a backslash."""
    return before.endswith("\\") or (number > 0 and keys[number - 1].key == Keys.Escape)
