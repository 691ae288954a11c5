"""Switch the terminal's modes: quiet while nca runs, as found for other programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import shutil
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_PASTES_ON, _PASTES_OFF = "\x1b[?2004h", "\x1b[?2004l"
_READ_BYTES = 65_536


class TerminalModes:
    """The terminal of a file descriptor. Without a terminal, every method does nothing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._found: list[Any] | None = None

    def take(self, *, is_alone: bool) -> bytes | None:
        """Be quiet from now on. Returns what had been typed before, or None without a terminal.

        The terminal has shown it. That is erased, because the prompt shows it; of lines only if `is_alone`: nothing was
        typed before this process began, and nothing but the terminal has written since.
        """
        try:
            found = termios.tcgetattr(self._descriptor)
            early = self.read_typed()
        except (OSError, termios.error):
            return None
        self._found = found
        if found[3] & termios.ECHO:
            typed = early.decode("utf-8", "replace")
            _erase(typed if is_alone else typed.rpartition("\n")[2])
        return early

    def read_typed(self) -> bytes:
        """Be quiet, and return the text typed so far. Raises OSError."""
        self.be_quiet()
        return os.read(self._descriptor, _READ_BYTES)

    def give_back(self) -> None:
        """Restore the modes of before `take`, for good."""
        self.be_as_found()
        self._found = None

    def be_as_found(self) -> None:
        if self._found is not None:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._found)

    def be_quiet(self) -> None:
        """Turn off echo and line editing; signals stay on, and take away nothing that was typed before their key.

        A read returns at once: one that waited would wait for the next key, and nothing else could happen until then.
        """
        with contextlib.suppress(OSError, termios.error):
            mode = termios.tcgetattr(self._descriptor)
            mode[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
            mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
            mode[3] |= termios.NOFLSH
            mode[6][termios.VMIN] = 0
            mode[6][termios.VTIME] = 0
            termios.tcsetattr(self._descriptor, termios.TCSANOW, mode)


def _erase(shown: str) -> None:
    """Erase the terminal's echo of keys. It stays if it shows more than the keys themselves."""
    if not shown or not shown.replace("\n", "").isprintable():
        return
    # Line mode takes from this module too, and does without prompt_toolkit.
    from prompt_toolkit.utils import get_cwidth

    from nca.terminal.render.stream_writer import ERASE_DOWN

    columns = shutil.get_terminal_size().columns
    *sent, last = (get_cwidth(line) for line in shown.split("\n"))
    rows = sum(max(1, -(-width // columns)) for width in sent) + max(0, last - 1) // columns
    # Text that another program left before it in the row stays.
    back = f"\x1b[{rows}A\r" if rows else f"\x1b[{last}D"
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(back + ERASE_DOWN)
        sys.stdout.flush()


def is_open(descriptor: int) -> bool:
    """Whether the terminal is still there: a read that gave nothing was not the end of the input."""
    ended = select.poll()
    ended.register(descriptor, 0)
    return os.isatty(descriptor) and not ended.poll(0)


def take_typed(descriptor: int) -> str:
    """Take what was typed so far from a terminal in line mode, the line that is still open too."""
    modes = TerminalModes(descriptor)
    try:
        found = termios.tcgetattr(descriptor)
        try:
            typed = modes.read_typed()
        finally:
            termios.tcsetattr(descriptor, termios.TCSANOW, found)
    except (OSError, termios.error):
        return ""
    return typed.decode("utf-8", "replace").replace("\0", "")


def forget_typed() -> None:
    """Discard text typed before a question appeared: it is not an answer."""
    with contextlib.suppress(OSError, ValueError, termios.error):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def mark_pastes(*, on: bool) -> None:
    """Turn bracketed paste on or off. Without it, each line pasted while nca works would be sent separately."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(_PASTES_ON if on else _PASTES_OFF)
        sys.stdout.flush()


def begin_row() -> None:
    """Go to the first column; of the next row, if another program has left the cursor behind a text."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(" " * os.get_terminal_size(sys.stdout.fileno()).columns + "\r")
        sys.stdout.flush()


def stop_process(*, group: bool) -> None:
    """Suspend this process as Ctrl-Z does; returns when the shell continues it. `group`: its process group too."""
    before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        os.kill(0 if group else os.getpid(), signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, before)


@contextmanager
def stop_signal_handled(suspend: Callable[[], None]) -> Iterator[None]:
    """Call `suspend` for a SIGTSTP."""
    if signal.getsignal(signal.SIGTSTP) != signal.SIG_DFL:
        # A shell without job control has it ignored: nobody could continue the program.
        yield
        return
    loop = asyncio.get_running_loop()
    with contextlib.suppress(RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGTSTP, suspend)
    try:
        yield
    finally:
        with contextlib.suppress(RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGTSTP)
