"""Read keys from a Unix terminal, with fixes for prompt_toolkit's handling of pastes and Escape; and write above it.

- A paste without an end (a lost connection, a terminal that crashed) would swallow every key from then on,
  Ctrl-C included. After PASTE_SECONDS without another byte, what has arrived counts as the paste.
- If a pasted text contains the mark that ends a paste, its rest would count as typed, Enters included. Here a paste
  ends with the last such mark before a pause.
- A lone Escape can be told from Alt with a key, and the codes for Shift-Enter make a new line.
- A key that is pressed while a question waits answers it, or belongs to the line that the person types.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output

from nca.terminal.render.stream_writer import encodable, is_utf8
from nca.terminal.render.theme import has_colour

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


class PasteTimeoutParser(Vt100Parser):
    """A parser that ends an open paste after a pause, if the caller says `await_rest` whenever bytes have come."""

    def __init__(self, feed_key_callback: Callable[[KeyPress], None]) -> None:
        super().__init__(feed_key_callback)
        self._pasted: list[str] = []
        self._last_pasted = ""
        self._has_end = False
        self._expects_late_end = False
        self._timer: asyncio.TimerHandle | None = None
        self.was_flushed = False
        """The newest keys came from a flush, so an Escape among them was pressed alone."""

    @property
    def is_pasting(self) -> bool:
        return self._in_bracketed_paste

    @property
    def patience_seconds(self) -> float:
        """How long to wait for more of an open paste."""
        return SETTLE_SECONDS if self._has_end else PASTE_SECONDS

    def await_rest(self, deliver: Callable[[], None] = lambda: None) -> None:
        """If a paste is open, end it after a pause, and then call `deliver`."""
        self._stop_waiting()
        if self.is_pasting:
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

    def take_open_paste(self) -> str:
        """Remove and return what has arrived of an open paste, for another parser. "" if none is open."""
        self._stop_waiting()
        if not self._in_bracketed_paste:
            return ""
        whole = _PASTE_START + "".join(self._pasted)
        self._close()
        return whole

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self, deliver: Callable[[], None]) -> None:
        if self.is_pasting:
            self.end_paste()
            deliver()

    def _close(self) -> None:
        self._pasted.clear()
        self._last_pasted, self._has_end, self._in_bracketed_paste = "", False, False

    def feed(self, data: str) -> None:
        self.was_flushed = False
        if self._in_bracketed_paste:
            self._pasted.append(data)
            # A read may have cut the mark in two.
            newest = self._last_pasted + data
            self._has_end = self._has_end or _PASTE_END in newest
            self._last_pasted = newest[-len(_PASTE_END) + 1 :]
            return
        if self._expects_late_end and _PASTE_END in data:
            # The rest of a paste that was given up is still a paste when its end arrives after all.
            content, _, data = data.partition(_PASTE_END)
            self._expects_late_end = False
            if content:
                self.feed_key_callback(KeyPress(Keys.BracketedPaste, content))
        keys, mark, rest = data.partition(_PASTE_START)
        super().feed(_SHIFT_ENTER.sub(_ALT_ENTER, keys) + mark + rest)

    def flush(self) -> None:
        if self._in_bracketed_paste and self._has_end:
            self.end_paste()
        super().flush()
        self.was_flushed = True


class Keyboard(Vt100Input):
    """The input of the prompt."""

    def __init__(self) -> None:
        super().__init__(sys.stdin)
        self.vt100_parser = self.parser = PasteTimeoutParser(self.vt100_parser.feed_key_callback)

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

    def attach(self, input_ready_callback: Callable[[], None]) -> AbstractContextManager[None]:
        def on_input() -> None:
            input_ready_callback()
            self.parser.await_rest(input_ready_callback)

        return super().attach(on_input)


class _NoQuestions(Vt100_Output):
    """Sends the terminal no queries: an answer that comes late (over ssh, say) would be typed into the prompt."""

    @property
    def responds_to_cpr(self) -> bool:
        return False

    def get_rows_below_cursor_position(self) -> int:
        return 1

    def write(self, data: str) -> None:
        # What prompt_toolkit draws is a grid of cells: three dots would move all that follows.
        is_whole = is_utf8(self.encoding())
        super().write(data if is_whole else encodable(data.replace("…", "~"), self.encoding()))


def write_above(app: Application[Any], write: Callable[[], None]) -> None:
    """Write above what an application draws, or at once if it is not on the screen.

    An application that ends cancels its tasks, also before they begin; then the text is written below it.
    """
    is_written = False

    def write_once() -> None:
        nonlocal is_written
        if not is_written:
            is_written = True
            write()

    async def in_turn() -> None:
        await run_in_terminal(write_once)

    if app.is_running:
        app.create_background_task(in_turn()).add_done_callback(lambda _: write_once())
    else:
        write_once()


async def drawn(app: Application[Any]) -> None:
    """Wait until an application is on the screen."""
    is_drawn = asyncio.Event()

    def note(_: object) -> None:
        is_drawn.set()

    app.after_render += note
    try:
        await is_drawn.wait()
    finally:
        app.after_render -= note


def terminal_output() -> Output:
    """The output of prompt_toolkit: a terminal that gets no queries, without colour if none is wanted."""
    depth = None if has_colour(os.environ) else ColorDepth.DEPTH_1_BIT
    return _NoQuestions.from_pty(sys.stdout, term=os.environ.get("TERM"), default_color_depth=depth)


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
    of keys that began before. Everything else belongs to the line. Enter does nothing on an empty line.

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

    def take_held(self) -> str:
        """Remove and return a key that was to answer once no other had followed it; "" if there is none."""
        held, self._held = self._held, ""
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None
        return held
