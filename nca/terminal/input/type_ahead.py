"""Keep the keys typed while nca works, for the next prompt. They would be lost or echoed otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import math
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from nca.terminal.input.keyboard import (
    ESCAPE_SECONDS,
    FLOW_SECONDS,
    PAUSE_SECONDS,
    AskedQuestion,
    Keyboard,
    KeyQuestion,
    meaning,
)
from nca.terminal.input.line_editor import UnsentLines
from nca.terminal.input.pastes import FoldedPastes
from nca.terminal.input.terminal_modes import (
    TerminalModes,
    begin_row,
    mark_pastes,
    stop_process,
    stop_signal_handled,
)
from nca.terminal.interrupts import Interrupts
from nca.words import Words

_INTERRUPTS = (Keys.ControlC, Keys.SIGINT)
_BACK_TAB = "\x1b[Z"
_FROM_LINE_MODE = str.maketrans({"\n": "\r", "\0": "\x04"})
"""How a terminal in line mode stores Enter and Ctrl-D."""


class TypeAhead(UnsentLines):
    """Keeps what is typed while there is no prompt, without echo, for the next prompt.

    Ctrl-C and Ctrl-Z still arrive as signals, and Escape stops the work. Lines that were typed to their Enter are sent
    one after the other.
    """

    def __init__(
        self,
        keyboard: Keyboard,
        interrupts: Interrupts,
        edits_with_escape: Callable[[], bool],
        *,
        pastes: FoldedPastes | None = None,
        pasted: Callable[[str, str], str] | None = None,
        note: Callable[[Callable[[], list[Words]], bool], None] = lambda *_: None,
        on_unknown: Callable[[], None] = lambda: None,
    ) -> None:
        """`edits_with_escape`: in a line that is being typed Escape is a key of the editor, as in vi.

        `note` is told of each key: `unsent`, and whether it is Enter; `on_unknown` of one that only the prompt knows.
        """
        super().__init__(keyboard, pastes or FoldedPastes(), pasted)
        self._note = note
        self._on_unknown = on_unknown
        self.next_mode: Callable[[], None] = lambda: None
        """The action of Shift-Tab, done at once: it is not part of the typed text."""
        self._interrupts = interrupts
        self._edits_with_escape = edits_with_escape
        self._escape: asyncio.TimerHandle | None = None
        """Runs while an Escape may still be the beginning of another key."""
        self._modes = TerminalModes(keyboard.fileno())
        self._parser = keyboard.parser
        self._is_collecting = False
        self.is_lent = False
        self._last_key = -math.inf
        self._last_of_line = -math.inf
        """When a key was typed that belongs to the line, where `_last_key` may have answered a question."""
        self._question: AskedQuestion | None = None

    @contextmanager
    def quiet(self, suspend: Callable[[], None], *, is_alone: bool) -> Iterator[None]:
        """For the whole chat: the terminal neither echoes nor changes a key between two readers.

        Earlier input is taken over; `is_alone` as in `TerminalModes.take`. `suspend` is called for Ctrl-Z while
        nca works, and for a SIGTSTP.
        """
        early = self._modes.take(is_alone=is_alone)
        if early is None:
            yield
            return
        self._take_typed(early)
        mark_pastes(on=True)
        try:
            with stop_signal_handled(suspend):
                yield
        finally:
            mark_pastes(on=False)
            self._modes.give_back()

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect keys while nca works. Afterwards they wait for the next prompt, which goes on with an open paste."""
        loop, descriptor = asyncio.get_running_loop(), self._keyboard.fileno()
        try:
            loop.add_reader(descriptor, self._read, descriptor)
        except OSError:
            yield
            return
        self._is_collecting = True
        with self._parser.delivering(self._keep):
            self._take_over()
            loop.call_soon(self.offer_lines)  # behind the beginning of the work
            try:
                yield
            finally:
                self._is_collecting = False
                loop.remove_reader(descriptor)
                self._parser.feed(self._take_escape())

    @contextmanager
    def lent(self, *, is_quiet: bool, is_typed_kept: bool = False) -> Iterator[None]:
        """While something else reads the terminal, read nothing.

        Another program gets the modes that nca found. A list of nca's own (`is_quiet`) sets its modes itself; what is
        typed until then is not echoed. `is_typed_kept`: nothing else may have read, so what was typed is for nca, and
        Enter sends it.
        """
        loop, descriptor = asyncio.get_running_loop(), self._keyboard.fileno()
        if self._is_collecting:
            loop.remove_reader(descriptor)
        if not is_quiet:
            mark_pastes(on=False)
            self._modes.be_as_found()
        self.is_lent = True
        try:
            yield
        finally:
            self.is_lent = False
            if is_typed_kept:
                with contextlib.suppress(OSError):
                    self._take_typed(self._modes.read_typed())
            self._modes.be_quiet()
            if not is_quiet:
                begin_row()
                mark_pastes(on=True)
            if self._is_collecting:
                loop.add_reader(descriptor, self._read, descriptor)
                self._take_over()

    def suspend(self) -> None:
        """Suspend the program, with the terminal as nca found it. Returns when it is continued."""
        if self.is_lent:
            # The other program has the terminal's modes in its care, and got the signal too.
            stop_process(group=False)
            return
        if self._is_collecting:
            self._read_all()  # else the shell would run it
        mark_pastes(on=False)
        self._modes.be_as_found()
        stop_process(group=True)
        self._modes.be_quiet()
        mark_pastes(on=True)

    async def pause(self) -> None:
        """Wait until nobody is in the middle of a line."""
        loop = asyncio.get_running_loop()
        while self._has_open_line():
            if (left := self._last_key + PAUSE_SECONDS - loop.time()) <= 0:
                return
            await asyncio.sleep(left)

    @property
    def is_line_open(self) -> bool:
        """While a question is asked: something was typed and not sent, so no key answers."""
        return self._question is not None and self._question.is_line_open

    @property
    def is_refused(self) -> bool:
        """While a question is asked: the last key did nothing."""
        return self._question is not None and self._question.is_refused

    @contextmanager
    def asking(self, question: KeyQuestion[Any], press: Callable[[KeyPress | None], None]) -> Iterator[None]:
        """While a question is on the screen, pass the keys that answer it to `press`; None at the end of the input.

        Every other key goes to the prompt, and so does what was typed before, also what still lies in the terminal's
        queue, and the text of an answer if the question goes. A question whose answer is typed from the start follows
        another one: what lies there is its answer.
        """
        if not self._is_collecting:
            press(None)
            yield
            return
        if not question.is_typed:
            self._read_all()
        self._question = AskedQuestion(question, press)
        self._question.is_line_open = self._has_open_line()
        self._give_way(self._question)
        try:
            yield
        finally:
            unfinished = self._question.take_unfinished()
            self._type(self._question.take_held())
            self._question = None
            if question.unsent:
                self._line.put(question.unsent)
                self.note(is_entered=False)
            self._type(unfinished)

    def _read_all(self) -> None:
        descriptor = self._keyboard.fileno()
        while select.select([descriptor], [], [], 0)[0] and self._read(descriptor):
            pass

    def _read(self, descriptor: int) -> bool:
        """Read what has arrived. False at the end of the input."""
        loop = asyncio.get_running_loop()
        data = self._keyboard.read_text()
        if data is None:
            # End of input: the next prompt meets it and ends the loop.
            loop.remove_reader(descriptor)
            if self._question is not None:
                self._question.press(None)
            return False
        if not data:
            return True
        text = self._take_escape() + data
        now = loop.time()
        since_key, self._last_key = now - self._last_key, now
        if self._question is None:
            self._type(text)
        else:
            self._read_while_asked(self._question.take_held() + text, self._question, since_key)
        return True

    def _read_while_asked(self, text: str, asked: AskedQuestion, since_key: float) -> None:
        asked.is_refused = False
        question, now = asked.question, self._last_key
        if question.is_typed and not self._parser.is_pasting:
            goes_on = since_key < FLOW_SECONDS and text.isprintable()
            asked.feed(question.take_back() + text if goes_on else text)
            return
        if text == _BACK_TAB:
            self.next_mode()
            return
        match meaning(
            text,
            question.offered(),
            is_line_empty=not asked.is_line_open,
            since_key_seconds=since_key,
            since_line_seconds=now - self._last_of_line,
            since_asked_seconds=now - asked.asked_at,
        ):
            case "answer":
                asked.answer(text)
            case "nothing":
                asked.is_refused = True
            case "line" if text.strip("\x1b"):
                # A choice that other keys follow is taken back. If they follow at once, it began a line.
                first = question.take_back()
                self._type(first + text if since_key < PAUSE_SECONDS or question.gives_way else text)
                is_open = self._has_open_line()
                asked.is_refused = not (is_open or asked.is_line_open)
                if asked.is_line_open and not is_open:
                    # Deleted, as the question says, to answer it.
                    self._last_of_line = -math.inf
                asked.is_line_open = is_open
                self._give_way(asked)
            case "line":
                self._type(text)

    def _give_way(self, asked: AskedQuestion) -> None:
        if asked.question.gives_way and not self._parser.is_pasting and (asked.is_line_open or self.is_line_queued):
            asked.press(None)

    def _has_open_line(self) -> bool:
        """Whether something is typed that was not sent."""
        return self._parser.is_pasting or bool(self._line.said)

    def _type(self, text: str) -> None:
        """Keep the typed text, and stop the work if it ends with an Escape that begins no other key."""
        if text:
            self._last_of_line = self._last_key
        self._parser.feed(keys := text.rstrip("\x1b"))
        if self._parser.is_pasting:
            self._parser.feed(text[len(keys) :])
        elif keys != text:
            self._escape = asyncio.get_running_loop().call_later(ESCAPE_SECONDS, self._on_escape)
        self._parser.await_rest()

    def _take_escape(self) -> str:
        """Remove and return the Escape that waits for the rest of a key; "" if there is none."""
        waiting, self._escape = self._escape, None
        if waiting is None:
            return ""
        waiting.cancel()
        return "\x1b"

    def _on_escape(self) -> None:
        escape = self._take_escape()
        if self._question is not None and self._question.is_line_open:
            self.delete_open()
            self._question.is_line_open, self._last_of_line = self._has_open_line(), -math.inf
        elif self._question is not None:
            self._question.press(KeyPress(Keys.Escape, escape))
        elif self._edits_with_escape() and self._line.said:
            self._on_unknown()
        else:
            self._interrupts.stop_once()

    def _keep(self, key: KeyPress) -> None:
        if key.key in _INTERRUPTS:
            # Typed while the prompt that had just taken Enter still had the terminal.
            self._interrupts.interrupt()
        elif key.key == Keys.BackTab:
            self.next_mode()
        elif not self.press(key):
            self._on_unknown()
        elif key.key == Keys.ControlM:
            self.offer_lines()
        self.note(is_entered=key.key == Keys.ControlM)

    def note(self, *, is_entered: bool) -> None:
        self._note(self.unsent, is_entered)

    def _take_over(self) -> None:
        """Take the keys that the last reader read and did not use. A Ctrl-C is for the work that begins."""
        keys = [*get_typeahead(self._keyboard), *self._keyboard.take_unread()]
        typed = [key for key in keys if key.key not in _INTERRUPTS]
        self.press_all(typed)
        self._parser.await_rest()
        if len(typed) < len(keys):
            asyncio.get_running_loop().call_soon(self._interrupts.interrupt)

    def take_unsent(self) -> list[Words]:
        if self._parser.is_pasting:
            with self._parser.delivering(self._keep):
                self._parser.end_paste()
        return super().take_unsent()

    def _take_typed(self, typed: bytes) -> None:
        """Pass on text typed in line mode to the next prompt."""
        keys: list[KeyPress] = []
        with self._parser.delivering(keys.append):
            self._parser.feed(typed.decode("utf-8", "replace").translate(_FROM_LINE_MODE))
        store_typeahead(self._keyboard, keys)
