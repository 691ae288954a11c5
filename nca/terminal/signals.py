"""Signals while the loop runs: Ctrl-C stops the work, SIGTERM and SIGHUP end the program, the terminal is restored."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED_EXIT_CODE = 130
AGAIN_SECONDS = 2.0
"""A second Ctrl-C within this time ends the program."""
FORCED_EXIT_SECONDS = 1.7
"""An ending that takes longer is forced. Nothing is lost by that: messages are stored when they are made."""

_ENDING = tuple(
    (getattr(signal, name), code) for name, code in (("SIGTERM", 143), ("SIGHUP", 129)) if hasattr(signal, name)
)


class Interrupts:
    """What signals do to the loop. `exit_code` is set once the program has to end.

    on_interrupt  stops the work at hand, or tells the prompt, after a first Ctrl-C
    on_end        stops whatever runs, so that the loop comes to see `exit_code`
    is_working    whether there is work at hand
    """

    def __init__(
        self, *, on_interrupt: Callable[[], None], on_end: Callable[[], None], is_working: Callable[[], bool]
    ) -> None:
        self.exit_code: int | None = None
        self._on_interrupt = on_interrupt
        self._on_end = on_end
        self._is_working = is_working
        self._last = -AGAIN_SECONDS
        self._restore = _terminal_restorer()
        self._watchdog: threading.Timer | None = None
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
        if self._is_lent:
            return
        if self.exit_code is not None:
            self._force()
        elif self._is_working() and self.is_second():
            self.end(INTERRUPTED_EXIT_CODE)
        else:
            self._on_interrupt()

    def end(self, exit_code: int) -> None:
        if self.exit_code is not None:
            return
        self.exit_code = exit_code
        self._watchdog = threading.Timer(FORCED_EXIT_SECONDS, self._force)
        self._watchdog.daemon = True
        self._watchdog.start()
        self._on_end()

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle signals inside; on leaving, the terminal's modes are as they were, however it comes to that."""
        loop = asyncio.get_running_loop()
        installed = []
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(signal.SIGINT, self.interrupt)
            installed.append(signal.SIGINT)
            for number, exit_code in _ENDING:
                loop.add_signal_handler(number, self.end, exit_code)
                installed.append(number)
        try:
            yield
        finally:
            for number in installed:
                loop.remove_signal_handler(number)
            if self._watchdog is not None:
                self._watchdog.cancel()
            self._restore()

    def _force(self) -> None:
        self._restore()
        os._exit(self.exit_code or 1)


def _terminal_restorer() -> Callable[[], None]:
    """What puts the terminal's modes back as they are now."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        return lambda: None
    import termios

    descriptor = sys.stdin.fileno()
    try:
        before = termios.tcgetattr(descriptor)
    except termios.error:
        return lambda: None

    def restore() -> None:
        with contextlib.suppress(termios.error, OSError, ValueError):
            termios.tcsetattr(descriptor, termios.TCSANOW, before)

    return restore
