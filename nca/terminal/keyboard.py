"""The keyboard of a Unix terminal: prompt_toolkit's, with two faults mended.

- A paste whose end never arrives (a lost connection, a terminal that crashed) would swallow every key from then on,
  Ctrl-C included. After PASTE_SECONDS without another byte what has come counts as the paste.
- Keys typed while nca works would be lost or echoed into the answer. `TypeAhead` collects them for the next prompt.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

assert sys.platform != "win32"

import termios  # noqa: E402  # the module does not exist on Windows

PASTE_SECONDS = 1.0
"""Claude Code and others settled on a second; a paste over a slow line pauses less than that."""

_PASTE_END = "\x1b[201~"
_PASTES_ON, _PASTES_OFF = "\x1b[?2004h", "\x1b[?2004l"
"""Bracketed paste: without it, every line pasted while nca works would be sent by itself."""
_READ_BYTES = 65_536
_ESCAPE_SECONDS = 0.1
"""What begins like Escape may be an arrow key, whose other bytes come at once."""
PAUSE_SECONDS = 1.0
"""Somebody in the middle of a line is not asked before they pause so long: the next key would be the answer."""


class PasteTimeoutParser(Vt100Parser):
    """A parser whose open paste can be ended from outside."""

    _expects_late_end = False

    @property
    def is_pasting(self) -> bool:
        return self._in_bracketed_paste

    def end_paste(self) -> None:
        """What has come of an open paste is the paste."""
        content, self._paste_buffer = self._paste_buffer, ""
        self._in_bracketed_paste = False
        self._expects_late_end = True
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, content))

    def feed(self, data: str) -> None:
        """The rest of a paste that was given up is still a paste when its end arrives after all."""
        if self._expects_late_end and not self._in_bracketed_paste and _PASTE_END in data:
            content, _, data = data.partition(_PASTE_END)
            self._expects_late_end = False
            if content:
                self.feed_key_callback(KeyPress(Keys.BracketedPaste, content))
        super().feed(data)


class Keyboard(Vt100Input):
    """The input of the prompt."""

    def __init__(self) -> None:
        super().__init__(sys.stdin)
        self._parser = PasteTimeoutParser(self.vt100_parser.feed_key_callback)
        self.vt100_parser = self._parser
        self._timer: asyncio.TimerHandle | None = None

    def attach(self, input_ready_callback: Callable[[], None]) -> AbstractContextManager[None]:
        def on_input() -> None:
            input_ready_callback()
            self._watch_paste(input_ready_callback)

        return super().attach(on_input)

    def _watch_paste(self, deliver: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._parser.is_pasting:
            self._timer = asyncio.get_running_loop().call_later(PASTE_SECONDS, self._expire, deliver)

    def _expire(self, deliver: Callable[[], None]) -> None:
        if self._parser.is_pasting:
            self._parser.end_paste()
            deliver()


class TypeAhead:
    """Keys typed while there is no prompt: kept, not echoed, and given to the next prompt in order.

    Ctrl-C still arrives as a signal. Lines that were typed to their Enter are sent one after the other.
    """

    def __init__(self, keyboard: Keyboard) -> None:
        self._keyboard = keyboard
        self._keys: list[KeyPress] = []
        self._parser = PasteTimeoutParser(self._keys.append)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._mode_before: list[Any] | None = None
        self._is_collecting = False
        self._last_key = 0.0
        self._question: PasteTimeoutParser | None = None
        self._answer: Callable[[KeyPress | None], None] = lambda key: None

    def preview(self) -> str:
        """The text typed so far."""
        return "".join(_shown(key) for key in self._keys).strip()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """For the whole chat: no key is echoed or changed by the terminal between one reader and the next.

        What was typed before is taken over; there the terminal was in line mode, so Enter came as a newline.
        """
        descriptor = self._keyboard.fileno()
        try:
            before = termios.tcgetattr(descriptor)
            _be_quiet(descriptor, waits=False)
            early = os.read(descriptor, _READ_BYTES)
            _be_quiet(descriptor)
        except (OSError, termios.error):
            yield
            return
        self._mode_before = before
        self._parser.feed(early.decode("utf-8", "replace").replace("\n", "\r"))
        self._hand_over()
        try:
            yield
        finally:
            self._mode_before = None
            with contextlib.suppress(termios.error):
                termios.tcsetattr(descriptor, termios.TCSANOW, before)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """While nca works: collect; on leaving, the keys wait for the next prompt."""
        loop, descriptor = asyncio.get_running_loop(), self._keyboard.fileno()
        try:
            loop.add_reader(descriptor, self._read, descriptor)
        except OSError:
            yield
            return
        _write(_PASTES_ON)
        self._is_collecting = True
        try:
            yield
        finally:
            self._is_collecting = False
            loop.remove_reader(descriptor)
            _write(_PASTES_OFF)
            self._hand_over()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """While another program has the terminal: nothing is read, and its modes are as nca found them."""
        loop, descriptor = asyncio.get_running_loop(), self._keyboard.fileno()
        if self._is_collecting:
            loop.remove_reader(descriptor)
            _write(_PASTES_OFF)
        with contextlib.suppress(termios.error):
            if self._mode_before is not None:
                termios.tcsetattr(descriptor, termios.TCSADRAIN, self._mode_before)
        try:
            yield
        finally:
            with contextlib.suppress(OSError, termios.error):
                _be_quiet(descriptor)
            if self._is_collecting:
                loop.add_reader(descriptor, self._read, descriptor)
                _write(_PASTES_ON)

    def take_lines(self, is_message: Callable[[str], bool]) -> list[str]:
        """The lines that were typed to their Enter, as far as they are plain messages; the rest stays."""
        lines: list[str] = []
        while (line := _first_line(self._keys)) is not None and is_message(line.text):
            del self._keys[: line.keys]
            if line.text.strip():
                lines.append(line.text)
        return lines

    async def pause(self) -> None:
        """Wait until nobody is in the middle of a line."""
        loop = asyncio.get_running_loop()
        while self._keys and self._keys[-1].key != Keys.ControlM:
            waited = loop.time() - self._last_key
            if waited >= PAUSE_SECONDS:
                return
            await asyncio.sleep(PAUSE_SECONDS - waited)

    @contextmanager
    def asking(self, answer: Callable[[KeyPress | None], None]) -> Iterator[None]:
        """While a question stands: keys go to `answer`; None at the end of the input.

        What was typed before, also what still lies in the terminal's queue, goes where it was meant to: to the prompt.
        """
        if not self._is_collecting:
            answer(None)
            yield
            return
        descriptor = self._keyboard.fileno()
        while select.select([descriptor], [], [], 0)[0] and self._read(descriptor):
            pass
        self._question = PasteTimeoutParser(answer)
        self._answer = answer
        try:
            yield
        finally:
            self._question = None

    def forget_enters(self) -> None:
        """After an interrupt nothing is sent by itself: what was typed stands in the prompt."""
        self._keys[:] = [key for key in self._keys if key.key != Keys.ControlM]

    def _read(self, descriptor: int) -> bool:
        """Take what has come; False at the end of the input."""
        try:
            data = os.read(descriptor, _READ_BYTES)
        except OSError:
            data = b""
        if not data:
            # End of input: the next prompt meets it and ends the loop.
            asyncio.get_running_loop().remove_reader(descriptor)
            if self._question is not None:
                self._answer(None)
            return False
        text = self._decoder.decode(data)
        if self._question is not None:
            self._question.feed(text)
            asyncio.get_running_loop().call_later(_ESCAPE_SECONDS, self._question.flush)
        else:
            self._last_key = asyncio.get_running_loop().time()
            self._parser.feed(text)
        return True

    def _hand_over(self) -> None:
        if self._parser.is_pasting:
            self._parser.end_paste()
        self._parser.flush()
        store_typeahead(self._keyboard, list(self._keys))
        self._keys.clear()


class _Line(NamedTuple):
    """A line of keys: its text, and how many keys it is, with its Enter."""

    text: str
    keys: int


def _first_line(keys: list[KeyPress]) -> _Line | None:
    """The first line that ends in Enter; None where there is none, or it holds keys that only an editor understands."""
    text = ""
    for number, key in enumerate(keys, 1):
        match key.key:
            case Keys.ControlM:
                return _Line(text, number)
            case Keys.ControlH:
                text = text[:-1]
            case Keys.ControlJ:
                text += "\n"
            case Keys.BracketedPaste:
                text += key.data.replace("\r\n", "\n").replace("\r", "\n")
            case str() as character if not isinstance(character, Keys):
                text += character
            case _:
                return None
    return None


def _be_quiet(descriptor: int, *, waits: bool = True) -> None:
    """No echo, no line editing, Enter as it is typed; signals stay. Without `waits` a read returns at once."""
    mode = termios.tcgetattr(descriptor)
    mode[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
    mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
    mode[6][termios.VMIN] = 1 if waits else 0
    mode[6][termios.VTIME] = 0
    termios.tcsetattr(descriptor, termios.TCSANOW, mode)


def _write(code: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(code)
        sys.stdout.flush()


def _shown(key: KeyPress) -> str:
    match key.key:
        case Keys.ControlM | Keys.ControlJ:
            return " ⏎ "
        case Keys.BracketedPaste:
            return key.data
        case str() as character if not isinstance(character, Keys):
            return character
        case _:
            return ""
