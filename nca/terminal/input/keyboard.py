"""Read keys from a Unix terminal, with fixes for prompt_toolkit's handling of pastes and Escape.

- A paste without an end (a lost connection, a terminal that crashed) would swallow every key from then on,
  Ctrl-C included. After PASTE_SECONDS without another byte, what has arrived counts as the paste.
- If a pasted text contains the mark that ends a paste, its rest would count as typed, Enters included. Here a paste
  ends with the last such mark before a pause.
- A paste, a key or a character may be read in pieces, by one reader after the other. All readers of a terminal share
  one parser, so what has begun goes on with the next reader.
- A lone Escape can be told from Alt with a key, and the codes for Shift-Enter make a new line.
- A key that is pressed while a question waits answers it, or belongs to the line that the person types.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import select
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from nca.terminal.input.terminal_modes import is_open

if TYPE_CHECKING:
    from rich.text import Text


PASTE_SECONDS = 1.0
"""The value of Claude Code and others. A paste over a slow line pauses less than that."""
SETTLE_SECONDS = 0.03
"""After the end of a paste: a terminal writes a whole paste at once, and no hand is as quick."""
ESCAPE_SECONDS = 0.1
"""An Escape may begin an arrow key; its other bytes then follow at once."""

_PASTE_START, _PASTE_END = "\x1b[200~", "\x1b[201~"
_PASTE_MARK = re.compile(r"\x1b\[20[01]~")
_SHIFT_ENTER = re.compile(r"\x1b\[(?:13;[2-8]u|27;[2-8];13~)")
"""Enter with a modifier, in kitty's protocol and xterm's modifyOtherKeys."""
_ALT_ENTER = "\x1b\r"
_UNFINISHED = re.compile(r"\x1b{1,2}(?:O|\[[0-?]*)?\Z")
"""The beginning of a key's code, or of the mark of a paste, at the end of what was read."""
_CODE = re.compile(r"\x1b{1,2}\[[0-?]+")
"""Nobody types this much of a code, as Alt-[ is typed: its rest is on the way."""
_READ_BYTES = 65_536


class PasteTimeoutParser(Vt100Parser):
    """A parser that ends an open paste after a pause, if the caller says `await_rest` whenever bytes have come."""

    def __init__(self, feed_key_callback: Callable[[KeyPress], None]) -> None:
        super().__init__(feed_key_callback)
        self._pasted: list[str] = []
        self._last_pasted = ""
        self._has_end = False
        self._expects_late_end = False
        self._timer: asyncio.TimerHandle | None = None
        self._unfinished = ""
        self._is_unfinished_left = False
        """The beginning of that key was meant for the reader before."""
        self.was_flushed = False
        """The newest keys came from a flush, so an Escape among them was pressed alone."""

    @property
    def is_pasting(self) -> bool:
        return self._in_bracketed_paste

    @property
    def patience_seconds(self) -> float:
        """How long to wait for more of an open paste, or of a key."""
        if self.is_pasting:
            return SETTLE_SECONDS if self._has_end else PASTE_SECONDS
        return PASTE_SECONDS if _CODE.match(self._unfinished) else ESCAPE_SECONDS

    def await_rest(self, deliver: Callable[[], None] = lambda: None) -> None:
        """After a pause, end an open paste or a key whose rest has not come, and then call `deliver`."""
        self._stop_waiting()
        if self.is_pasting or self._unfinished:
            self._timer = asyncio.get_running_loop().call_later(self.patience_seconds, self._expire, deliver)

    def end_paste(self) -> None:
        """End the open paste at the last mark of an end, or at the end of the input. Text after the mark was typed."""
        whole = "".join(self._pasted)
        content, mark, typed = whole.rpartition(_PASTE_END) if self._has_end else (whole, "", "")
        self._expects_late_end = not mark
        self._close()
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, _PASTE_MARK.sub("", content)))
        if typed:
            self.feed(typed)

    def take_unfinished(self) -> str:
        """Remove and return what has arrived of an open paste or of a key, for another parser. "" if nothing has."""
        self._stop_waiting()
        whole, self._unfinished = self._unfinished, ""
        if self.is_pasting:
            whole = _PASTE_START + "".join(self._pasted)
            self._close()
        return whole

    @contextmanager
    def delivering(self, take: Callable[[KeyPress], None]) -> Iterator[None]:
        """Give one reader the keys. A paste that is open goes on, and its pause begins anew."""
        self._stop_waiting()
        self._is_unfinished_left = True
        before, self.feed_key_callback = self.feed_key_callback, take
        try:
            yield
        finally:
            self._stop_waiting()
            self._is_unfinished_left = True
            self.feed_key_callback = before

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self, deliver: Callable[[], None]) -> None:
        if self.is_pasting:
            self.end_paste()
        else:
            self._flush()
        deliver()

    def _close(self) -> None:
        self._pasted.clear()
        self._last_pasted, self._has_end, self._in_bracketed_paste = "", False, False

    def feed(self, data: str) -> None:
        if not data:
            return
        self.was_flushed = self._is_unfinished_left = False
        if self._in_bracketed_paste:
            self._pasted.append(data)
            # A read may have cut the mark in two.
            newest = self._last_pasted + data
            self._has_end = self._has_end or _PASTE_END in newest
            self._last_pasted = newest[-len(_PASTE_END) + 1 :]
            return
        data, self._unfinished = self._unfinished + data, ""
        if self._expects_late_end and _PASTE_END in data:
            # The rest of a paste that was given up is still a paste when its end arrives after all.
            content, _, data = data.partition(_PASTE_END)
            self._expects_late_end = False
            if content:
                self.feed_key_callback(KeyPress(Keys.BracketedPaste, content))
        keys, mark, rest = data.partition(_PASTE_START)
        if not mark and (unfinished := _UNFINISHED.search(keys)) is not None:
            keys, self._unfinished = keys[: unfinished.start()], unfinished[0]
        super().feed(_SHIFT_ENTER.sub(_ALT_ENTER, keys) + mark + rest)

    def flush(self) -> None:
        if self._in_bracketed_paste and self._has_end:
            self.end_paste()
        if not _CODE.match(self._unfinished):
            self._flush()

    def _flush(self) -> None:
        unfinished, self._unfinished = self._unfinished, ""
        if not self._is_unfinished_left:
            super().feed(unfinished)
        super().flush()
        self.was_flushed = True


class Keyboard(Vt100Input):
    """The terminal's input. All that read from it share what has been read in part: a paste, a key, a character."""

    _first: ClassVar[Keyboard | None] = None

    def __init__(self) -> None:
        super().__init__(sys.stdin)
        first = Keyboard._first
        if first is None or first.stdin is not self.stdin:
            first = Keyboard._first = self
            self.parser = PasteTimeoutParser(self.vt100_parser.feed_key_callback)
            self._decoder = codecs.getincrementaldecoder(self.stdin.encoding or "utf-8")("replace")
        self.vt100_parser = self.parser = first.parser
        self._decoder, self.stdin_reader = first._decoder, first.stdin_reader

    def cooked_mode(self) -> AbstractContextManager[None]:
        """Nothing: text written above the prompt needs no line mode, in which an Enter typed meanwhile is Ctrl-J."""
        return nullcontext()

    def in_line_mode(self, work: Callable[[], None]) -> None:
        """Do work for which the terminal is as other programs expect it."""
        with self.line_mode():
            work()

    def line_mode(self) -> AbstractContextManager[None]:
        return super().cooked_mode()

    def take_unread(self) -> list[KeyPress]:
        """Remove and return the keys that no prompt has read: such as a paste that ended just after the prompt."""
        keys, self._buffer = self._buffer, []
        return keys

    def _keep_unread(self, key: KeyPress) -> None:
        self._buffer.append(key)

    def read_text(self) -> str | None:
        """What has arrived; None at the end of the input."""
        try:
            data = os.read(self._fileno, _READ_BYTES)
            # Somebody else may have taken what there was to read.
            has_ended = not data and not is_open(self._fileno)
        except OSError:
            has_ended = True
        return None if has_ended else self._decoder.decode(data)

    def read_keys(self) -> list[KeyPress]:
        if select.select([self._fileno], [], [], 0)[0]:
            text = self.read_text()
            self.stdin_reader.closed = text is None
            self.parser.feed(text or "")
        return self.take_unread()

    @contextmanager
    def attach(self, input_ready_callback: Callable[[], None]) -> Iterator[None]:
        def on_input() -> None:
            input_ready_callback()
            self.parser.await_rest(input_ready_callback)

        with self.parser.delivering(self._keep_unread), super().attach(on_input):
            self.parser.await_rest(input_ready_callback)
            yield


T = TypeVar("T")

PAUSE_SECONDS = 1.0
"""A key this soon after one of a line belongs to the line."""
QUIET_SECONDS = 0.4
"""A key this soon after another one may be the same press, and one this soon after a question may begin a line."""
FLOW_SECONDS = 0.25
"""Who types a line has pressed its next key by then."""
ENTER = "\r"

Meaning = Literal["answer", "line", "nothing"]
"""The destination of a key: the question, the line for the next prompt, or none."""


class Offered(NamedTuple):
    """The keys that mean something to a question now, in lower case.

    keys  answer it after a pause
    next  continue with the key that was pressed last, as Enter does after a choice; they need no long pause
    """

    keys: str
    next: str = ""


class KeyQuestion(ABC, Generic[T]):
    """A question that keys answer.

    heading   the text before the keys
    escape    what Escape does
    is_typed  the answer was given, and its text is typed now: each key belongs to the text, up to Enter
    unsent    this text, as long as it was not handed on: it is the person's draft if the question goes
    gives_way  a line that is typed ends the question: it is for the next prompt
    """

    heading = ""
    escape = "cancel"
    is_typed = False
    unsent = ""
    gives_way = False

    @abstractmethod
    def offered(self) -> Offered:
        """The keys that can be pressed now."""

    @abstractmethod
    def line(self) -> Text:
        """The same keys, and what each does, for the screen."""

    @abstractmethod
    def take(self, key: KeyPress | None) -> T | None:
        """Take a key that was offered, Escape, or None at the end of the input. Returns the answer once it is whole."""

    def take_back(self) -> str:
        """Forget a key that was only the first part of an answer, and return it; "" if there is none."""
        return ""


def meaning(
    typed: str,
    offered: Offered,
    *,
    is_line_empty: bool,
    since_key_seconds: float,
    since_line_seconds: float,
    since_asked_seconds: float,
) -> Meaning:
    """The meaning of one read's characters while a question is on the screen.

    A key answers only if it came alone, it is offered, the line that is being typed is empty, and it belongs to no flow
    of keys that began before. Everything else belongs to the line. Enter does nothing on an empty line. A slow line may
    bring a letter with its Enter: together they answer a question that can have been read.

    since_key_seconds    since the last key, whatever it meant
    since_line_seconds   since the last key that belonged to the line
    since_asked_seconds  since the question appeared
    """
    if not is_line_empty:
        return "line"
    key = typed.lower() if len(typed) == 1 else ""
    if key and key in offered.next:
        # Enter is not the same press as the letter before it; together they are a line only to a question that is new.
        is_seen = key == ENTER and since_asked_seconds >= PAUSE_SECONDS
        return "answer" if is_seen or since_key_seconds >= QUIET_SECONDS else "nothing"
    # The key that answered the question before this one is not a typing, but pressed twice it must not answer both.
    is_new = since_key_seconds >= PAUSE_SECONDS or since_asked_seconds >= QUIET_SECONDS
    has_paused = since_line_seconds >= PAUSE_SECONDS and since_key_seconds >= QUIET_SECONDS and is_new
    if key and key in offered.keys and has_paused:
        return "answer"
    is_with_enter = len(typed) == 2 and typed[1] == ENTER and typed[0].lower() in offered.keys
    if is_with_enter and has_paused and since_asked_seconds >= PAUSE_SECONDS:
        return "answer"
    return "nothing" if typed and not typed.strip(ENTER) else "line"


class AskedQuestion:
    """A question that is on the screen since `asked_at`, by the loop's clock.

    is_line_open  something was typed and not sent
    is_refused    the last key did nothing
    """

    def __init__(self, question: KeyQuestion[Any], press: Callable[[KeyPress | None], None]) -> None:
        self.question = question
        self.press = press
        self._parser = PasteTimeoutParser(press)
        self._loop = asyncio.get_running_loop()
        self.asked_at = self._loop.time()
        self.is_line_open = False
        self.is_refused = False
        self._held = ""
        self._holding: asyncio.TimerHandle | None = None

    def feed(self, text: str) -> None:
        """Pass on the keys that belong to the question."""
        self._parser.feed(text)
        self._parser.await_rest()
        self._loop.call_later(ESCAPE_SECONDS, self._parser.flush)

    def answer(self, key: str) -> None:
        """Pass on a key that answers. So young a question nobody has read: the key may be the first one of a line.

        Then it answers unless another key follows as in typing.
        """
        if self._loop.time() - self.asked_at >= QUIET_SECONDS:
            self.feed(key)
        else:
            self._held = key
            self._holding = self._loop.call_later(FLOW_SECONDS, lambda: self.feed(self.take_held()))

    def take_unfinished(self) -> str:
        """Remove and return what has arrived of a paste into the answer, if the paste has not ended."""
        return self._parser.take_unfinished()

    def take_held(self) -> str:
        """Remove and return a key that was to answer once no other had followed it; "" if there is none."""
        held, self._held = self._held, ""
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None
        return held
