"""Stop the work of a chat or a turn when Ctrl-C or a signal arrives."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

from nca.terminal.signals import (
    EXIT_CODES,
    INTERRUPTED_EXIT_CODE,
    Handler,
    Terminal,
    give_up,
    heard,
    set_handler,
    watchdog,
)

T = TypeVar("T")

AGAIN_SECONDS = 2.0
"""A second Ctrl-C within this time ends the program, as `Interrupts` says."""


IS_SAID = "the person has been told that it was stopped"
"""The message of a CancelledError that the person has already been told about."""


class Leave(Exception):  # not an error: the person wants to go
    """Ends the chat with an exit code."""

    def __init__(self, exit_code: int = 0) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class Stopped(Exception):  # not an error: the person stopped the work
    """The work was interrupted before it had a result. `is_said`: the person has been told what became of it."""

    def __init__(self, *, is_said: bool = False) -> None:
        super().__init__()
        self.is_said = is_said


class Interrupts:
    """Runs work so that signals can stop it. `exit_code` is set once the program has to end.

    The first Ctrl-C stops the work, or goes to the prompt that reads; a second one soon after it ends the program, if
    the same work has not stopped or the same prompt still reads. One that has stopped something is spent.
    `ends_at_first`: the first one ends the program, for programs without a prompt.
    """

    def __init__(self, *, ends_at_first: bool = False) -> None:
        self.exit_code: int | None = None
        self._ends_at_first = ends_at_first
        self._work: asyncio.Task[Any] | None = None
        self._interrupt_reader: Callable[[], bool] | None = None
        self._is_next_stopped = False
        self._is_handling = False
        self._last = -AGAIN_SECONDS
        self._unheard = 0
        self._is_lent = False

    async def run(self, work: Coroutine[Any, Any, T], *, interrupt_reader: Callable[[], bool] | None = None) -> T:
        """The result of `work`. Raises Stopped if a signal stopped it and it had nothing to return.

        `interrupt_reader`: the work is to read a line, and Ctrl-C is for this to handle, as `Reader.interrupt` says.
        """
        self._last = -AGAIN_SECONDS
        if interrupt_reader is not None:
            self._is_next_stopped = False
        if self.exit_code is not None or self._is_next_stopped:
            work.close()
            raise Stopped
        task = asyncio.create_task(work)
        self._interrupt_reader, self._work = interrupt_reader, task
        try:
            return await task
        except asyncio.CancelledError as cancelled:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            raise Stopped(is_said=IS_SAID in cancelled.args) from None
        finally:
            self._interrupt_reader = self._work = None
            self._last = -AGAIN_SECONDS

    def stop_work(self) -> None:
        """Stop what runs now; a prompt handles it as its own Ctrl-C."""
        if self._interrupt_reader is not None:
            self._is_next_stopped = not self._interrupt_reader()
        elif self._work is not None:
            self._work.cancel()
        else:
            # Between a line that was read and its turn. The next prompt forgets it.
            self._is_next_stopped = True

    def stop_once(self) -> None:
        """Stop what runs now, unless it is stopping already. This never ends the program, as a second Ctrl-C does."""
        if not self._is_lent and (self._work is None or not self._work.cancelling()):
            self.stop_work()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """While another program has the terminal, Ctrl-C is meant for that one."""
        self._is_lent = True
        try:
            yield
        finally:
            self._is_lent = False

    def is_leaving(self) -> bool:
        """Note a Ctrl-C on an empty line. True: leave, since it is the second, or no chat is open yet."""
        return not self._is_handling or self.is_second()

    def is_second(self) -> bool:
        """Note a Ctrl-C; True when another came shortly before it."""
        now = time.monotonic()
        is_second = now - self._last <= AGAIN_SECONDS
        self._last = now
        return is_second

    def interrupt(self) -> None:
        """Handle a SIGINT, or a Ctrl-C that arrived as a key."""
        self._unheard = 0
        if self.exit_code is not None:
            give_up(self.exit_code)
        watchdog.cancel()
        if self._is_lent:
            return
        if self._ends_at_first or (self._interrupt_reader is None and self.is_second()):
            self.end(INTERRUPTED_EXIT_CODE)
        else:
            self.stop_work()

    def end(self, exit_code: int) -> None:
        """Stop the work and end the program soon."""
        if self.exit_code is not None:
            return
        self.exit_code = exit_code
        watchdog.start(exit_code)
        if self._work is not None:
            self._work.cancel()

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle signals inside. Afterwards the handlers and the terminal's modes are as before."""
        loop = asyncio.get_running_loop()
        terminal, before = watchdog.terminal or Terminal(), dict[int, Handler]()
        # Outside of the main thread, or on a loop without signals, the chat does not handle them.
        with suppress(NotImplementedError, ValueError, RuntimeError):
            for number in heard():
                before[number] = signal.getsignal(number)
                self._install(loop, number)
        self._is_handling = True
        try:
            with watchdog.over(terminal):
                yield
        finally:
            self._is_handling = False
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                set_handler(number, handler)
            terminal.restore()

    def _install(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        # The loop handles a signal when it is next idle. What must happen even if the loop is busy, or if a write
        # hangs, happens in Python's own handler, which runs between any two instructions.
        if number == signal.SIGINT:
            loop.add_signal_handler(number, self.interrupt)
        else:
            loop.add_signal_handler(number, self.end, EXIT_CODES[number])
        signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Force the ending if the loop does not get to it; for Ctrl-C, if it has not handled the first."""
        if number != signal.SIGINT:
            watchdog.start(EXIT_CODES[number])
        elif not self._is_lent:
            self._unheard += 1
            if self._unheard > 1:
                watchdog.start(INTERRUPTED_EXIT_CODE)
