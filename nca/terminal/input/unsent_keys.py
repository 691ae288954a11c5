"""The keys typed while there is no prompt, as the lines that they make: which are sent, held back, or still typed."""

from __future__ import annotations

from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from nca.terminal.input.keyboard import Keyboard
from nca.terminal.input.line_editor import Typed, first_line, open_line, separated, typed, unsent
from nca.terminal.input.line_kind import line_kind
from nca.words import Words, text_of

_SHOWN_KEYS = 2_000
"""The preview is made of this many of the newest keys, at every frame."""


class UnsentKeys:
    """What was typed for the next prompt: what is held back, then what the last prompt left, then what came since."""

    def __init__(self, keyboard: Keyboard) -> None:
        self._keyboard = keyboard
        self._keys: list[KeyPress] = []
        self._held: list[list[KeyPress]] = []

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
        self._keys.clear()
        self._held.clear()
        return said

    def unsent(self) -> list[Words]:
        """All that was typed and never sent, in the order in which it was typed."""
        parts = [*self._held, *separated(self._waiting())]
        return [said for said in map(unsent, parts) if text_of(said).strip()]

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
