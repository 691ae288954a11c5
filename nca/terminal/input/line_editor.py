"""The lines typed while there is no prompt: edited as in the prompt, queued, and handed on as words.

Each key acts at once, on the line that is shown as being typed. So the next prompt gets what was shown, and no key is
left that could act on another text. A key that only the prompt knows does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import NamedTuple

from prompt_toolkit.completion import CompleteEvent, Completer, DummyCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from nca.humanize import clean_text
from nca.terminal.input.edited_line import Line
from nca.terminal.input.keyboard import Keyboard
from nca.terminal.input.line_kind import line_kind
from nca.terminal.input.pastes import FoldedPastes
from nca.words import Span, Words, text_of


class Typed(NamedTuple):
    """The typed lines as they are shown.

    soon    lines that ended with Enter: the model gets them at its next step
    later   lines that wait for the prompt: a command, and all behind it
    open    the one that is being typed, with the cursor's place in it
    behind  lines behind that one, if it was queued before
    leaves  the chat ends when all is done
    held    lines that wait for the person's Enter, before all others
    """

    soon: list[str]
    later: list[str]
    open: str
    place: int
    behind: list[str]
    leaves: bool = False
    held: Sequence[str] = ()


TakeLine = Callable[[Words, Callable[[], None]], bool]
"""Carries out a line that need not wait for the prompt. Until it calls the function that comes with the line, the line
counts as unsent. False: it waits."""


class UnsentLines:
    """What was typed for the next prompt: what is held back, then the queued lines, then the one being typed.

    With Up the person goes back to a queued line, and with Down on. Until its Enter, neither that line nor one behind
    it is sent.
    """

    def __init__(
        self, keyboard: Keyboard, pastes: FoldedPastes, pasted: Callable[[str, str], str] | None = None
    ) -> None:
        """`pasted`: what the prompt puts behind a text for a paste."""
        self._keyboard = keyboard
        self._pastes = pastes
        self._pasted = pasted or (lambda _, text: text_of(pastes.fold_pasted(text)))
        self._lines = [Line()]
        """Queued ones, and the newest."""
        self._at = 0
        """Which of them is being typed."""
        self._leaves = False
        self._is_alt = False
        self._held: list[Words] = []
        self._taken: list[Words] = []
        """Lines that are being carried out, and are not in the log yet."""
        self.take_meanwhile: TakeLine = lambda *_: False
        self.own: Callable[[], Container[str]] = tuple
        """The names of the person's own commands."""
        self.completer: Completer = DummyCompleter()
        self._choices: Iterator[tuple[int, str]] | None = None
        """What each Tab in a row puts in, and where it begins."""
        self._has_blank = False
        """The last key has put in a completion that ends in a blank."""

    @property
    def _line(self) -> Line:
        return self._lines[self._at]

    def press(self, key: KeyPress) -> bool:
        """Apply a key. False: only the prompt knows it."""
        # The parser gives Alt with a key as Escape and the key.
        is_alt, self._is_alt = self._is_alt, key.key == Keys.Escape
        line = self._line
        has_blank, self._has_blank = self._has_blank, False
        if key.key != Keys.ControlI:
            self._choices = None
        match key.key:
            case Keys.Escape:
                pass
            case " " if has_blank:
                pass
            case Keys.ControlI if not is_alt:
                self._complete(line)
            case Keys.ControlM if is_alt or line.continues:
                line.break_row()
            case Keys.ControlM:
                self._enter()
            case Keys.BracketedPaste:
                line.put(self._pasted(line.before, key.data), "pasted")
            case Keys.ControlD if not line.said:
                self._leaves = True
            case Keys.Up | Keys.ControlP:
                self._at -= not line.up() and self._at > 0
            case Keys.Down | Keys.ControlN:
                self._at += not line.down() and self._at < len(self._lines) - 1
            case _:
                return line.press(key, is_alt=is_alt)
        return True

    def press_all(self, keys: Iterable[KeyPress]) -> None:
        """Apply keys that were read before."""
        for key in keys:
            self.press(key)
        self._is_alt = False

    def _complete(self, line: Line) -> None:
        """As Tab in the prompt: the only completion, or one after the other. There is no menu."""
        if self._choices is None:
            document, asked = Document(line.text, line.place), CompleteEvent(completion_requested=True)
            found = [
                (line.place + one.start_position, one.text) for one in self.completer.get_completions(document, asked)
            ]
            if len(found) == 1:
                line.replace(*found[0])
            self._choices = cycle(found) if len(found) > 1 else None
            self._has_blank = len(found) == 1 and line.before.endswith(" ")
        if self._choices is not None:
            line.replace(*next(self._choices))
            self._has_blank = line.before.endswith(" ")

    def _enter(self) -> None:
        """The line is queued where it stands; an empty one goes. Then the newest is being typed."""
        is_newest = self._at == len(self._lines) - 1
        if self._line.is_blank:
            del self._lines[self._at]
        if is_newest:
            self._lines.append(Line())
        self._at = len(self._lines) - 1

    def typed(self) -> Typed:
        """What is typed, as it is shown."""
        queued = [self._pastes.shown(line.text) for line in self._lines]
        soon = self._at - len(self._waiting)
        line, behind = self._line, [text for text in queued[self._at + 1 :] if text.strip()]
        place = len(self._pastes.shown(line.before))
        return Typed(queued[:soon], queued[soon : self._at], queued[self._at], place, behind, self._leaves, self.held)

    @property
    def _waiting(self) -> list[Line]:
        """Of the queued lines the first that is no message, and all behind it."""
        queued = self._lines[: self._at]
        kinds = [line_kind(self._full(line.said), self.own) for line in queued]
        return next((queued[number:] for number, kind in enumerate(kinds) if kind != "message"), [])

    def _full(self, said: Words) -> Words:
        return tuple(Span(clean_text(span.text), span.source) for span in self._pastes.unfold(said))

    def take_messages(self) -> list[Words]:
        """Remove and return the queued lines, up to the first that is not a message."""
        return [self._take_first() for _ in range(self._at - len(self._waiting))]

    def _take_first(self) -> Words:
        self._at -= 1
        return self._full(self._lines.pop(0).said)

    def take_line(self) -> Words | None:
        """Remove and return the queued line that is sent next, if nothing is held. Raises EOFError to leave."""
        if self._held:
            return None
        if self._at:
            return self._take_first()
        if self._leaves and len(self._lines) == 1:
            self._leaves = False
            raise EOFError
        return None

    def take_open(self) -> Line:
        """Remove and return the line that is being typed, as the prompt has it. Lines behind it follow it."""
        line = self._lines.pop(self._at)
        if not self._lines:
            self._lines.append(Line())
        self._at = len(self._lines) - 1
        return line

    def delete_open(self) -> None:
        """The line that is being typed is gone."""
        self._lines[self._at] = Line()
        self._enter()

    def take_searched(self) -> str:
        """Remove and return the line that is being typed, if nothing else was typed: a list that opens searches it."""
        return "" if self.is_line_queued else text_of(self._full(self.take_open().said))

    @property
    def held(self) -> list[str]:
        """The lines that are held, as they are shown."""
        return [self._pastes.shown(text_of(said)) for said in self._held]

    def hold(self) -> int:
        """After an interrupt or a failure, send none of what was typed: the next prompts offer it, one line each.

        Returns how many lines are held; 0 if none came to those of before. The line that is being typed is not: the
        next prompt goes on with it.
        """
        self.press_all(get_typeahead(self._keyboard))
        before, line = len(self._held), self._line
        self._held += [one.said for one in self._lines if one is not line and not one.is_blank]
        self._lines, self._at = [Line() if line.is_blank else line], 0
        self._leaves = self._leaves and not (self._held or self._line.said)
        return len(self._held) if len(self._held) > before else 0

    def offer(self, default: Words = ()) -> Words | None:
        """The next prompt is about to read, and to start with `default`. What it starts with if something is held."""
        if not self._held:
            return None
        self.hold()
        return None if default or self.is_waiting else self._held.pop(0)

    def drop_held(self) -> list[Words]:
        """Remove and return the lines that are held."""
        dropped, self._held = self._held, []
        return dropped

    def _is_message(self, said: Words) -> bool:
        return line_kind(self._full(said), self.own) == "message"

    def offer_lines(self) -> None:
        """Enter was pressed, or work has begun: a queued line may be carried out now."""
        for line in self._lines[: self._at]:
            said = self._full(line.said)
            if self.take_meanwhile(said, partial(self._logged, said)):
                self._taken.append(said)
                self._lines.remove(line)
                self._at -= 1
            elif not self._is_message(line.said):
                return  # what is behind it was typed to come after it

    def _logged(self, said: Words) -> None:
        if said in self._taken:
            self._taken.remove(said)
            self.note(is_entered=True)

    def note(self, *, is_entered: bool) -> None:
        """What was typed has changed."""

    def take_unsent(self) -> list[Words]:
        """Remove and return what was never sent. The log has what is being carried out, once that has ended."""
        self.press_all(get_typeahead(self._keyboard))
        self._taken.clear()
        said = self.unsent()
        self._lines, self._at, self._leaves = [Line()], 0, False
        self._held.clear()
        return said

    def unsent(self) -> list[Words]:
        """All that was typed and never sent, in the order in which it was typed."""
        lines = [*self._held, *(line.said for line in self._lines if not line.is_blank)]
        return [*self._taken, *map(self._full, lines)]

    @property
    def is_waiting(self) -> bool:
        """Whether something is typed for the next prompt."""
        is_typing = bool(self._line.said) or self._keyboard.parser.is_pasting
        return self.is_line_queued or is_typing or self._leaves or bool(self._left_keys())

    @property
    def is_line_queued(self) -> bool:
        """Whether a line that was typed to its Enter waits for the next prompt."""
        return len(self._lines) > 1 or any(key.key == Keys.ControlM for key in self._left_keys())

    def _left_keys(self) -> list[KeyPress]:
        """The keys that the last prompt has left for the next one."""
        keys = get_typeahead(self._keyboard)
        store_typeahead(self._keyboard, keys)
        return keys
