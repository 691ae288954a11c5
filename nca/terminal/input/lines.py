"""Read lines from standard input on a thread."""

from __future__ import annotations

import asyncio
import threading
from typing import IO

from nca.terminal.render.sanitize import one_line


class InputLines:
    """Reads lines of standard input without holding up the event loop.

    Reading happens in a daemon thread, so that a pipe that says nothing cannot keep the program from ending.
    """

    def __init__(self, lines: IO[str], *, prompt: IO[str] | None = None) -> None:
        self._lines = lines
        self._prompt = prompt
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._asked = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._is_waiting = False

    async def next(self, default: str = "") -> str:
        """The next line without its end, lines that end in a backslash joined; EOFError at the end of the input."""
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = threading.Thread(target=self._pump, args=(loop,), daemon=True, name="nca-lines")
            self._thread.start()
        if self._prompt is None:
            default = ""
        if default:
            self._say(f"[Enter sends again: {one_line(default, 60)}]\n")
        collected: list[str] = []
        while True:
            self._say("... " if collected else "> ")
            if not self._is_waiting:
                self._is_waiting = True
                self._asked.release()
            line = await self._queue.get()
            self._is_waiting = False
            if line is None:
                if collected:
                    return "\n".join(collected)
                raise EOFError
            if line.endswith("\\"):
                collected.append(line[:-1])
                continue
            text = "\n".join([*collected, line])
            return text if text.strip() else default

    def _say(self, text: str) -> None:
        if self._prompt is not None:
            self._prompt.write(text)
            self._prompt.flush()

    def _pump(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            self._asked.acquire()
            try:
                line = self._lines.readline()
            except (OSError, ValueError):
                line = ""
            try:
                loop.call_soon_threadsafe(self._queue.put_nowait, line.rstrip("\r\n") if line else None)
            except RuntimeError:
                return  # the loop has ended
