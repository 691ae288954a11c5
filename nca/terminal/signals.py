"""End the program on a signal: restore the terminal and end every program that nca started.

An ending that takes too long is forced. Nothing is lost by that: messages are stored as they are made.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from nca.process_groups import end_all

INTERRUPTED_EXIT_CODE = 130
FORCED_EXIT_SECONDS = 1.3
"""An ending that takes longer is forced, so that it is over within 2 s."""
_WRITE_SECONDS = 0.1
"""A terminal that takes nothing (Ctrl-S, a line that hangs) must not keep the program from ending."""

EXIT_CODES = {int(signal.SIGINT): INTERRUPTED_EXIT_CODE, int(signal.SIGTERM): 143, int(signal.SIGHUP): 129}
_USUAL_MODES = "\x1b[0m\x1b[?25h\x1b[?2004l\x1b[?1l\r\n"
"""Plain colours, the cursor shown, no bracketed paste, arrow keys as usual, a line of its own for the shell."""

Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


@contextmanager
def at_once() -> Iterator[None]:
    """A signal ends the program on the spot: for the time before the chat is open and after it is closed.

    An ending that `Interrupts` began has its time limit until here. Where handlers cannot be set, nothing changes.
    """
    with _handled(dict.fromkeys(EXIT_CODES, _leave_at_once)):
        yield


@contextmanager
def raised() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit with their exit code, as Ctrl-C raises KeyboardInterrupt.

    For work that has something to clear away.
    """
    with _handled(dict.fromkeys(EXIT_CODES, _raise) | {int(signal.SIGINT): signal.default_int_handler}):
        yield


@contextmanager
def _handled(handlers: Mapping[int, Handler]) -> Iterator[None]:
    before = dict[int, Handler]()
    with suppress(ValueError):  # not the main thread
        for number in heard():
            before[number] = signal.signal(number, handlers[number])
    try:
        with watchdog.over(Terminal()):
            yield
    finally:
        for number, handler in before.items():
            set_handler(number, handler)


def heard() -> list[int]:
    """The signals to handle. What nohup, or a script with `&`, had the program ignore stays ignored."""
    return [number for number in EXIT_CODES if signal.getsignal(number) != signal.SIG_IGN]


def set_handler(number: int, handler: Handler) -> None:
    signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def give_up(exit_code: int) -> NoReturn:
    """End the process now: its programs, the terminal's modes, and then itself."""
    end_all(children=True)
    if watchdog.terminal is not None:
        watchdog.terminal.restore(cleans=True)
    os._exit(exit_code)


def _leave_at_once(number: int, frame: FrameType | None) -> NoReturn:
    give_up(EXIT_CODES[number])


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(EXIT_CODES[number])


class Terminal:
    """The modes of the terminal as they are now."""

    def __init__(self) -> None:
        self._descriptor, self._before = -1, list[Any]()
        if sys.stdin is None:
            return
        with suppress(termios.error, OSError, ValueError):
            descriptor = sys.stdin.fileno()
            self._before = termios.tcgetattr(descriptor)
            self._descriptor = descriptor

    def restore(self, *, cleans: bool = False) -> None:
        """The modes as they were; `cleans`: whoever drew on the screen had no time to put it in order."""
        if self._descriptor < 0:
            return
        with suppress(termios.error, OSError):
            changed = termios.tcgetattr(self._descriptor) != self._before
            if changed:
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)
                if cleans:
                    _write(_USUAL_MODES)


class Watchdog:
    """Forces the process's ending, once it is due. `terminal` is what has to be restored then."""

    def __init__(self) -> None:
        self.terminal: Terminal | None = None
        self._depth = 0
        self._timer: threading.Timer | None = None

    @contextmanager
    def over(self, terminal: Terminal) -> Iterator[None]:
        """What is inside may be ended by force; the outermost of these is the whole of what is."""
        if not self._depth:
            self.terminal = terminal
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.cancel()
                self.terminal = None

    def start(self, exit_code: int) -> None:
        if self._timer is None:
            self._timer = threading.Timer(FORCED_EXIT_SECONDS, give_up, (exit_code,))
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


watchdog = Watchdog()


def _write(code: str) -> None:
    """To the terminal of standard output, if it takes it soon."""
    import select

    with suppress(OSError, ValueError):
        descriptor = sys.stdout.fileno() if sys.stdout is not None else -1
        if os.isatty(descriptor) and select.select([], [descriptor], [], _WRITE_SECONDS)[1]:
            os.write(descriptor, code.encode())
