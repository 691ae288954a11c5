"""The keys typed while there is no prompt, as the lines that they make: edited as the prompt would, sent or held back.

Knows the keys that people use to correct a line. A line with any other key waits for the prompt, which gets the keys as
they were typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import NamedTuple

from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from nca.terminal.input.keyboard import Keyboard
from nca.terminal.input.line_kind import line_kind
from nca.terminal.input.pastes import is_long, paste_label
from nca.words import Source, Span, Words, replaced, text_of

_WORD_BEFORE = re.compile(r"\S*\s*\Z")
_NEWLINE = re.compile(r"\r\n?")


class _Line:
    """A line being edited with emacs keys. `is_shown`: as the prompt shows it, with long pastes folded."""

    def __init__(self, *, is_shown: bool) -> None:
        self.is_shown = is_shown
        self.said: Words = ()
        self.place = 0
        self.leaves = False

    def press(self, key: KeyPress) -> bool:
        """Apply a key. False for one that is not known."""
        before, after = self.before, self.text[self.place :]
        line_start = before.rfind("\n") + 1
        line_end = self.place + (after.find("\n") if "\n" in after else len(after))
        match key.key:
            case Keys.ControlJ:
                self._put("\n", "typed")
            case Keys.BracketedPaste:
                text = _NEWLINE.sub("\n", key.data)
                self._put(paste_label(text) if self.is_shown and is_long(text) else text, "pasted")
            case Keys.ControlH:
                self._delete(max(self.place - 1, 0), self.place)
            case Keys.ControlD if not self.said:
                self.leaves = True
                return False
            case Keys.Delete:
                self._delete(self.place, self.place + 1)
            case Keys.ControlW:
                self._delete(len(_WORD_BEFORE.sub("", before)), self.place)
            case Keys.ControlU:
                self._delete(line_start, self.place)
            case Keys.ControlK:
                self._delete(self.place, line_end)
            case Keys.Left | Keys.ControlB:
                self.place = max(self.place - 1, 0)
            case Keys.Right | Keys.ControlF:
                self.place = min(self.place + 1, len(self.text))
            case Keys.Home | Keys.ControlA:
                self.place = line_start
            case Keys.End | Keys.ControlE:
                self.place = line_end
            case str() as character if not isinstance(character, Keys):
                self._put(character, "typed")
            case _:
                return False
        return True

    def break_line(self) -> None:
        """Start a new line, in place of the backslash that asked for it."""
        self._delete(len(self.before.removesuffix("\\")), self.place)
        self._put("\n", "typed")

    @property
    def before(self) -> str:
        return self.text[: self.place]

    @property
    def text(self) -> str:
        return text_of(self.said)

    def _put(self, text: str, source: Source) -> None:
        self.said = replaced(self.said, self.place, self.place, (Span(text, source),))
        self.place += len(text)

    def _delete(self, start: int, end: int) -> None:
        self.said = replaced(self.said, start, end, ())
        self.place = start


class TypedLine(NamedTuple):
    """A line of typed keys: its words, the keys that only the prompt knows, the cursor's place.

    start    the number of keys before it
    keys     its number of keys, with the Enter of one that `is_sent`; no Enter has ended the last one yet
    leaves   it held a Ctrl-D while it was empty, with which the prompt ends the chat
    """

    said: Words
    unknown: list[int]
    place: int
    start: int
    keys: int
    is_sent: bool
    leaves: bool

    @property
    def is_empty(self) -> bool:
        """The prompt would show nothing. Its action for an unknown key is not known here."""
        return not self.said and not self.unknown


class Typed(NamedTuple):
    """The text of typed keys: lines that ended with Enter, and the one being typed, with the cursor's place in it.

    leaves  the prompt will end the chat at one of these keys
    """

    sent: list[str]
    open: str
    place: int
    leaves: bool = False


def first_line(keys: Sequence[KeyPress]) -> TypedLine | None:
    """The first line that ends with Enter. None if there is none, or if it holds an unknown key."""
    line = next(_lines(keys, is_shown=False))
    return line if line.is_sent and not line.unknown else None


def open_line(keys: Sequence[KeyPress]) -> TypedLine:
    """The line that no Enter has ended yet."""
    *_, line = _lines(keys, is_shown=True)
    return line


def typed(keys: Sequence[KeyPress]) -> Typed:
    """Everything typed, as it is shown, without unknown keys."""
    lines = list(_lines(keys, is_shown=True))
    *sent, rest = lines
    leaves = any(line.leaves for line in lines)
    return Typed([text_of(line.said) for line in sent], text_of(rest.said), rest.place, leaves)


def unsent(keys: Sequence[KeyPress]) -> Words:
    """All words of keys that were not sent, with pastes in full and without unknown keys."""
    line = _Line(is_shown=False)
    for key in keys:
        if key.key == Keys.ControlM:
            line.break_line()
        else:
            line.press(key)
    return line.said


def separated(keys: Sequence[KeyPress]) -> list[list[KeyPress]]:
    """The same text in parts, without an Enter that sends it; the last part is still being typed.

    Messages in a row are one part, with a line break in place of each Enter; so is the line being typed after them.
    A key may do more behind another line than in its own (Up, a deletion at the beginning): what follows the first line
    is typed anew. Only a line with Escape, which vi's keys follow, is a part by itself.
    """
    parts: list[list[KeyPress]] = []
    is_open = False
    for shown, line in zip(_lines(keys, is_shown=True), _lines(keys, is_shown=False), strict=True):
        part = list(keys[line.start : line.start + line.keys - line.is_sent])
        is_message = line_kind(line.said) == "message"
        if is_open and is_message and all(keys[number].key != Keys.Escape for number in line.unknown):
            if line.said:
                behind = len(text_of(shown.said)) - shown.place
                parts[-1] += [KeyPress(Keys.ControlJ, "\n"), *_anew(line.said, behind)]
            elif not line.is_sent:
                parts.append([])
        elif part or not line.is_sent:
            parts.append(part)
        is_open = (is_open or bool(part)) and is_message
    return parts


def _anew(said: Words, behind: int) -> Iterator[KeyPress]:
    """The keys that type this, and leave the cursor before the last `behind` signs that the prompt shows."""
    for span in said:
        if span.source == "pasted":
            yield KeyPress(Keys.BracketedPaste, span.text)
        else:
            yield from (KeyPress(Keys.ControlJ if sign == "\n" else sign, sign) for sign in span.text)
    yield from repeat(KeyPress(Keys.Left, "\x1b[D"), behind)


def _lines(keys: Sequence[KeyPress], *, is_shown: bool) -> Iterator[TypedLine]:
    """The lines that ended with Enter, then the one that is being typed, which may be empty."""
    start, unknown, line = 0, list[int](), _Line(is_shown=is_shown)
    for number, key in enumerate(keys):
        if key.key == Keys.ControlM:
            before = line.before if line.place == len(line.text) else ""
            # After Escape (Alt-Enter) or a backslash it makes a new line.
            if before.endswith("\\") or (number > start and keys[number - 1].key == Keys.Escape):
                line.break_line()
                continue
            yield TypedLine(line.said, unknown, line.place, start, number + 1 - start, True, line.leaves)
            start, unknown, line = number + 1, [], _Line(is_shown=is_shown)
        elif key.key == Keys.Escape and number + 1 < len(keys) and keys[number + 1].key == Keys.ControlM:
            # Alt-Enter: the Enter that follows makes the new line.
            continue
        elif not line.press(key):
            unknown.append(number)
    yield TypedLine(line.said, unknown, line.place, start, len(keys) - start, False, line.leaves)


TakeLine = Callable[[Words, Callable[[], None]], bool]
"""Carries out a line that need not wait for the prompt. Until it calls the function that comes with the line, the line
counts as unsent. False: it waits."""
_SHOWN_KEYS = 2_000
"""The preview is made of this many of the newest keys, at every frame."""


class UnsentKeys:
    """What was typed for the next prompt: what is held back, then what the last prompt left, then what came since."""

    def __init__(self, keyboard: Keyboard) -> None:
        self._keyboard = keyboard
        self._keys: list[KeyPress] = []
        self._held: list[list[KeyPress]] = []
        self._taken: list[Words] = []
        """Lines that are being carried out, and are not in the log yet."""
        self.take_meanwhile: TakeLine = lambda *_: False

    def typed(self) -> Typed:
        """The text typed so far."""
        return typed(self._keys[-_SHOWN_KEYS:])

    def take_messages(self) -> list[Words]:
        """Remove and return the lines that ended with Enter, up to the first that is not a message."""
        lines: list[Words] = []
        while (line := first_line(self._keys)) is not None and line_kind(line.said) == "message":
            del self._keys[: line.keys]
            if text_of(line.said).strip():
                lines.append(line.said)
        return lines

    def hold(self) -> int:
        """After an interrupt or a failure, send none of what was typed: the next prompts offer it, a part each.

        Returns how many parts are held. A line that is being typed is not: the rest of it goes to the next prompt.
        """
        *done, being_typed = separated([*get_typeahead(self._keyboard), *self._keys])
        self._keys.clear()
        self._held += done
        store_typeahead(self._keyboard, being_typed)
        return len(self._held)

    def offer(self, *, is_filled: bool) -> Words | None:
        """The next prompt is about to read. Unless it `is_filled` already, it starts with what is held, returned."""
        if not self._held:
            return None
        self.hold()
        if is_filled or self.is_waiting:
            return None
        offered = self._held.pop(0)
        store_typeahead(self._keyboard, offered)
        return unsent(offered)

    def take_unsent(self) -> list[Words]:
        """Remove and return `unsent`."""
        said = self.unsent()
        get_typeahead(self._keyboard)
        for kept in (self._keys, self._held, self._taken):
            kept.clear()
        return said

    def offer_lines(self) -> None:
        """Enter was pressed, or work has begun: a line that ended may be carried out now."""
        left: list[KeyPress] = []
        for line in _lines(self._keys, is_shown=False):
            if line.is_sent and not line.unknown and self.take_meanwhile(line.said, partial(self._logged, line.said)):
                self._taken.append(line.said)
            else:
                left += self._keys[line.start : line.start + line.keys]
        self._keys[:] = left

    def _logged(self, said: Words) -> None:
        if said in self._taken:
            self._taken.remove(said)
            self.note(is_entered=True)

    def note(self, *, is_entered: bool) -> None:
        """What was typed has changed."""

    def unsent(self) -> list[Words]:
        """All that was typed and never sent, in the order in which it was typed."""
        parts = [*self._held, *separated(self._waiting())]
        return [*self._taken, *(said for said in map(unsent, parts) if text_of(said).strip())]

    def _waiting(self) -> list[KeyPress]:
        """The keys that wait for the next prompt."""
        keys = get_typeahead(self._keyboard)
        store_typeahead(self._keyboard, keys)
        return [*keys, *self._keys]

    @property
    def is_waiting(self) -> bool:
        """Whether keys wait for the next prompt."""
        return bool(self._waiting())

    @property
    def is_line_queued(self) -> bool:
        """Whether a line that was typed to its Enter waits for the next prompt."""
        return any(key.key == Keys.ControlM for key in self._waiting())

    def take_open(self) -> str:
        """Remove and return the line that is being typed, if nothing else was typed: a list that opens searches it."""
        line = open_line(self._keys)
        if line.unknown or self.is_line_queued:
            return ""
        self._keys.clear()
        return text_of(line.said)

    def take_back_queued(self) -> bool:
        """Up on an empty line: the last one that was queued is being typed again. False where there is none."""
        ends = [place for place, key in enumerate(self._keys) if key.key == Keys.ControlM]
        if not ends or not open_line(self._keys).is_empty:
            return False
        del self._keys[ends[-1] :]
        return True
