"""Signals, from the program's first line to its last: Ctrl-C stops the work, SIGTERM and SIGHUP end the program.

However it ends, the terminal is as it was and no program that nca started goes on. Nothing is lost by an ending that
cannot wait: messages are stored when they are made.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from nca.process_groups import end_all

if TYPE_CHECKING:
    import asyncio

INTERRUPTED_EXIT_CODE = 130
AGAIN_SECONDS = 2.0
"""A second Ctrl-C within this time ends the program."""
FORCED_EXIT_SECONDS = 1.3
"""An ending that takes longer is forced, so that it is over within 2 s."""
_WRITE_SECONDS = 0.1
"""A terminal that takes nothing (Ctrl-S, a line that hangs) must not keep the program from ending."""

EXIT_CODES = {
    int(getattr(signal, name)): code
    for name, code in (("SIGINT", INTERRUPTED_EXIT_CODE), ("SIGTERM", 143), ("SIGHUP", 129))
    if hasattr(signal, name)
}
_USUAL_MODES = "\x1b[0m\x1b[?25h\x1b[?2004l\x1b[?1l\r\n"
"""Plain colours, the cursor shown, no bracketed paste, arrow keys as usual, a line of its own for the shell."""

_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class Interrupts:
    """What signals do to the loop. `exit_code` is set once the program has to end.

    on_interrupt  stops the work at hand, or tells the prompt, after a first Ctrl-C
    on_end        stops whatever runs, so that the loop comes to see `exit_code`
    is_working    whether there is work at hand
    """

    def __init__(
        self, *, on_interrupt: Callable[[], None], on_end: Callable[[], object], is_working: Callable[[], bool]
    ) -> None:
        self.exit_code: int | None = None
        self._on_interrupt = on_interrupt
        self._on_end = on_end
        self._is_working = is_working
        self._last = -AGAIN_SECONDS
        self._unheard = 0
        self._is_lent = False

    @contextmanager
    def lent(self) -> Iterator[None]:
        """While another program has the terminal, Ctrl-C is meant for that one."""
        self._is_lent = True
        try:
            yield
        finally:
            self._is_lent = False

    def is_second(self) -> bool:
        """Notes a Ctrl-C; True when another came shortly before it."""
        now = time.monotonic()
        is_second = now - self._last <= AGAIN_SECONDS
        self._last = now
        return is_second

    def interrupt(self) -> None:
        """A SIGINT. At the prompt it is the prompt's key; else the first stops the work, a second ends the program."""
        self._unheard = 0
        if self.exit_code is not None:
            give_up(self.exit_code)
        _watchdog.cancel()
        if self._is_lent:
            return
        if self._is_working() and self.is_second():
            self.end(INTERRUPTED_EXIT_CODE)
        else:
            self._on_interrupt()

    def end(self, exit_code: int) -> None:
        """Come to an end, soon."""
        if self.exit_code is not None:
            return
        self.exit_code = exit_code
        _watchdog.start(exit_code)
        self._on_end()

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle signals inside; on leaving, the terminal's modes are as they were, however it comes to that."""
        import asyncio

        loop = asyncio.get_running_loop()
        terminal, before = _watchdog.terminal or _Terminal(), dict[int, _Handler]()
        # Outside of the main thread, or on a loop that knows no signals, they are not the chat's to handle.
        with suppress(NotImplementedError, ValueError, RuntimeError):
            for number in _heard():
                before[number] = signal.getsignal(number)
                self._install(loop, number)
        try:
            with _watchdog.over(terminal):
                yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)
            terminal.restore()

    def _install(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        # The loop is woken and acts when it comes round. What must happen even if it does not, in the midst of long
        # work or of a write that hangs, happens in Python's own handler: it runs between any two instructions.
        if number == signal.SIGINT:
            loop.add_signal_handler(number, self.interrupt)
        else:
            loop.add_signal_handler(number, self.end, EXIT_CODES[number])
        signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Have the ending forced where the loop does not come to it; for Ctrl-C, where it has not heard the first."""
        if number != signal.SIGINT:
            _watchdog.start(EXIT_CODES[number])
        elif not self._is_lent:
            self._unheard += 1
            if self._unheard > 1:
                _watchdog.start(INTERRUPTED_EXIT_CODE)


@contextmanager
def at_once() -> Iterator[None]:
    """A signal ends the program on the spot: for the time before the chat is open and after it is closed.

    An ending that `Interrupts` began has its time limit until here. Where handlers cannot be set, nothing changes.
    """
    before = dict[int, _Handler]()
    with suppress(ValueError):  # not the main thread
        for number in _heard():
            before[number] = signal.signal(number, _leave_at_once)
    try:
        with _watchdog.over(_Terminal()):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


@contextmanager
def raised() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind what runs, as SystemExit with their code, as Ctrl-C does as KeyboardInterrupt.

    For work that has something to clear away.
    """
    before = dict[int, _Handler]()
    with suppress(ValueError):
        for number in _heard():
            before[number] = signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _raise)
    try:
        with _watchdog.over(_Terminal()):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _heard() -> list[int]:
    """Signals that whoever started the program (nohup, a script with `&`) has not told it to ignore."""
    return [number for number in EXIT_CODES if signal.getsignal(number) != signal.SIG_IGN]


def give_up(exit_code: int) -> NoReturn:
    """End the process now: its programs, the terminal's modes, and then itself."""
    end_all(children=True)
    if _watchdog.terminal is not None:
        _watchdog.terminal.restore(cleans=True)
    os._exit(exit_code)


def _leave_at_once(number: int, frame: FrameType | None) -> NoReturn:
    give_up(EXIT_CODES[number])


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(EXIT_CODES[number])


class _Terminal:
    """The modes of the terminal as they are now."""

    def __init__(self) -> None:
        self._descriptor, self._before = -1, list[Any]()
        if sys.platform == "win32" or sys.stdin is None:
            return
        import termios

        with suppress(termios.error, OSError, ValueError):
            descriptor = sys.stdin.fileno()
            self._before = termios.tcgetattr(descriptor)
            self._descriptor = descriptor

    def restore(self, *, cleans: bool = False) -> None:
        """The modes as they were; `cleans`: whoever drew on the screen had no time to put it in order."""
        if sys.platform == "win32" or self._descriptor < 0:
            return
        import termios

        with suppress(termios.error, OSError):
            changed = termios.tcgetattr(self._descriptor) != self._before
            if changed:
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)
                if cleans:
                    _write(_USUAL_MODES)


class _Watchdog:
    """Forces the process's ending, once it is due. `terminal` is what has to be restored then."""

    def __init__(self) -> None:
        self.terminal: _Terminal | None = None
        self._depth = 0
        self._timer: threading.Timer | None = None

    @contextmanager
    def over(self, terminal: _Terminal) -> Iterator[None]:
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


_watchdog = _Watchdog()


def _write(code: str) -> None:
    """To the terminal of standard output, if it takes it soon."""
    import select

    with suppress(OSError, ValueError):
        descriptor = sys.stdout.fileno() if sys.stdout is not None else -1
        if os.isatty(descriptor) and select.select([], [descriptor], [], _WRITE_SECONDS)[1]:
            os.write(descriptor, code.encode())
