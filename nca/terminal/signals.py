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
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from nca.process_groups import end_all

INTERRUPTED_EXIT_CODE = 130
FORCED_EXIT_SECONDS = 1.3
"""An ending that takes longer is forced, so that it is over within 2 s."""
_WRITE_SECONDS = 0.1
"""A terminal that accepts no output (Ctrl-S, a stalled line) must not keep the program from ending."""

EXIT_CODES = {
    int(signal.SIGINT): INTERRUPTED_EXIT_CODE,
    int(signal.SIGTERM): 143,
    int(signal.SIGHUP): 129,
    int(signal.SIGQUIT): 131,
}
_USUAL_MODES = "\x1b[0m\x1b[?25h\x1b[?2004l\x1b[?1l\r\n"
"""Default colours, visible cursor, no bracketed paste, normal arrow keys, and a new line for the shell."""

Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


def at_once() -> AbstractContextManager[None]:
    """End the program at once on a signal, before the chat is open and after it is closed.

    The time limit of an ending that `Interrupts` began lasts until here. If handlers cannot be set, nothing changes.
    """
    return _handled(dict.fromkeys(EXIT_CODES, _leave_at_once))


def raised() -> AbstractContextManager[None]:
    """Have SIGTERM, SIGHUP and SIGQUIT raise SystemExit with their exit code, as Ctrl-C raises KeyboardInterrupt.

    For work that has to clean up.
    """
    return _handled(dict.fromkeys(EXIT_CODES, _raise) | {int(signal.SIGINT): signal.default_int_handler})


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


def wait_for_children() -> None:
    """Undo that whoever started nca ignores SIGCHLD: the system would throw away how each child ended."""
    with suppress(ValueError):  # not the main thread
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def heard() -> list[int]:
    """The signals to handle. Signals that nohup, or a script with `&`, made the program ignore stay ignored."""
    return [number for number in EXIT_CODES if signal.getsignal(number) != signal.SIG_IGN]


def set_handler(number: int, handler: Handler) -> None:
    signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def give_up(exit_code: int) -> NoReturn:
    """End the process now, after its child programs, and restore the terminal."""
    end_all(children=True)
    if watchdog.terminal is not None:
        watchdog.terminal.restore(cleans=True)
    os._exit(exit_code)


def _leave_at_once(number: int, frame: FrameType | None) -> NoReturn:
    give_up(EXIT_CODES[number])


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(EXIT_CODES[number])


class Terminal:
    """The terminal's modes at the time of construction."""

    def __init__(self) -> None:
        self._descriptor, self._before = -1, list[Any]()
        if sys.stdin is None:
            return
        with suppress(termios.error, OSError, ValueError):
            descriptor = sys.stdin.fileno()
            self._before = termios.tcgetattr(descriptor)
            self._descriptor = descriptor

    def restore(self, *, cleans: bool = False) -> None:
        """Restore the modes. `cleans`: also reset colours and cursor, which nobody else will do."""
        if self._descriptor < 0:
            return
        with suppress(termios.error, OSError):
            changed = termios.tcgetattr(self._descriptor) != self._before
            if changed:
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)
                if cleans:
                    _write(_USUAL_MODES)


class Watchdog:
    """Ends the process by force if it does not end in time, and restores `terminal`."""

    def __init__(self) -> None:
        self.terminal: Terminal | None = None
        self._depth = 0
        self._timer: threading.Timer | None = None

    @contextmanager
    def over(self, terminal: Terminal) -> Iterator[None]:
        """Allow a forced ending inside. These can be nested."""
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
    """Write to the terminal of standard output, if it accepts that soon."""
    import select

    with suppress(OSError, ValueError):
        descriptor = sys.stdout.fileno() if sys.stdout is not None else -1
        if os.isatty(descriptor) and select.select([], [descriptor], [], _WRITE_SECONDS)[1]:
            os.write(descriptor, code.encode())
