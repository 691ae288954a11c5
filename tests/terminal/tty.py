"""A program in a real pseudo-terminal, and its screen."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pexpect
import pyte

from nca.terminal.input.keyboard import PAUSE_SECONDS, QUIET_SECONDS
from nca.terminal.render.stream_writer import RESIZE_SECONDS

ROOT = Path(__file__).parents[2]
WAIT_SECONDS = 60.0
"""Only a test that fails waits this long."""
_MARGIN_SECONDS = 0.2
"""The program may read one key late, but not the next one: then the pause between them was shorter for it."""


class TmuxScreen(pyte.HistoryScreen):  # type: ignore[misc]  # pyte has no types
    """Moves the whole screen into the scrollback where it is erased from its first cell on, as tmux does."""

    def erase_in_display(self, how: int = 0, *args: Any, **kwargs: Any) -> None:
        if how == 0 and (self.cursor.x, self.cursor.y) == (0, 0):
            used = [y for y, line in enumerate(self.display) if line.strip()]
            self.history.top.extend(self.buffer[y].copy() for y in range(used[-1] + 1 if used else 0))
        super().erase_in_display(how, *args, **kwargs)


class Tty:
    """`sees` waits until a text is on the screen (or scrolled off it); `raw` is every byte that was written."""

    wait_seconds = WAIT_SECONDS

    def __init__(
        self, command: list[str], *, columns: int = 100, rows: int = 30, environment: Mapping[str, str] | None = None
    ) -> None:
        env = {
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PYTHONUTF8": "1",
            **(environment or {}),
        }
        self.raw = b""
        self._asked_key_at = -math.inf
        self._is_key_unseen = False
        self._redraws_after = 0.0
        self.screen = TmuxScreen(columns, rows, history=5_000)
        self._stream = pyte.ByteStream(self.screen)
        self.process = self._spawn(command, rows, columns, env)

    def _spawn(self, command: list[str], rows: int, columns: int, env: Mapping[str, str]) -> Any:
        process = pexpect.spawn(
            command[0], command[1:], dimensions=(rows, columns), env=env, timeout=WAIT_SECONDS, echo=True
        )
        process.delaybeforesend = None
        return process

    def send(self, keys: str) -> None:
        self.process.send(keys)

    def line(self, text: str) -> None:
        """Type a line and its Enter."""
        self.send(text + "\r")

    def command(self, text: str) -> None:
        """Type a command at an empty prompt: while nca works, some only show what they let one choose from there."""
        self.until(lambda: "›" in [line for line in self.shown() if line][-2:])
        self.line(text)

    def answer(self, *keys: str) -> None:
        """Answer a question that is on the screen, one key after the other, with the pause that each of them needs."""
        for key in keys:
            since_key = time.monotonic() - self._asked_key_at
            time.sleep(max(QUIET_SECONDS, PAUSE_SECONDS - since_key) + _MARGIN_SECONDS)
            self.key(key)

    def key(self, keys: str) -> None:
        """Press a key, or several at once, while a question is on the screen."""
        self._asked_key_at = time.monotonic()
        self._is_key_unseen = True
        self.send(keys)

    def resize(self, columns: int, rows: int) -> None:
        self.process.setwinsize(rows, columns)
        self.screen.resize(rows, columns)
        self._redraws_after = RESIZE_SECONDS

    def sees(self, text: str, *, times: int = 1) -> str:
        """The whole text so far, once `text` is in it."""
        deadline = time.monotonic() + self.wait_seconds
        while (whole := self.text()).count(text) < times:
            if time.monotonic() > deadline or not self._read():
                raise AssertionError(f"{text!r} is not on the screen:\n{whole}")
        if self._is_key_unseen:
            # What a key does is seen: the program has read it, on a busy machine long after it was pressed.
            self._asked_key_at, self._is_key_unseen = time.monotonic(), False
        return whole

    def sees_no(self, text: str) -> None:
        """Wait until `text` is nowhere on the screen."""
        self.until(lambda: not any(text in line for line in self.shown()))

    def text(self) -> str:
        """Scrollback and screen, trailing blanks cut."""
        above = ["".join(line[column].data for column in sorted(line)) for line in self.screen.history.top]
        return "\n".join(line.rstrip() for line in [*above, *self.screen.display]).rstrip()

    def shown(self) -> list[str]:
        """The screen's lines now."""
        return [line.rstrip() for line in self.screen.display]

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds of what is on the screen."""
        deadline = time.monotonic() + self.wait_seconds
        while not holds():
            if time.monotonic() > deadline or not self._read():
                raise AssertionError(f"it does not hold of the screen:\n{self.text()}")

    def settle(self, *, is_drawn: bool = True) -> None:
        """Read until the program has been silent for a moment and waits for something.

        On a busy machine silence alone says nothing: the program may not have had its turn yet. After a change of size
        it waits by itself before it draws, so the silence must be longer.

        is_drawn  on the screen, which takes 15 microseconds for each character; all of it is in `raw` in any case
        """
        deadline = time.monotonic() + self.wait_seconds
        silence, self._redraws_after = 0.3 + self._redraws_after, 0.0
        while self._read(silence, is_drawn=is_drawn) or (_has_work(self.process.pid) and time.monotonic() < deadline):
            pass

    def ends(self, *, again: str = "") -> int:
        """Wait for the end; the exit code. `again`: a key that may have come too late, to be pressed each second."""
        deadline = time.monotonic() + self.wait_seconds
        while (has_read := self._read(1)) or self.process.isalive():
            if time.monotonic() > deadline:
                raise AssertionError(f"the program has not ended:\n{self.text()}")
            if again and not has_read:
                self.send(again)
        self.process.close()
        signal: int | None = self.process.signalstatus
        status: int | None = self.process.exitstatus
        return status if status is not None else -(signal or 0)

    def close(self) -> None:
        self.process.close(force=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, timeout: float | None = None, *, is_drawn: bool = True) -> bool:
        try:
            data = self.process.read_nonblocking(65_536, self.wait_seconds if timeout is None else timeout)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return False
        self.raw += data
        if is_drawn:
            self._stream.feed(data)
        return True


def _has_work(pid: int) -> bool:
    """Whether a thread of a process runs or wants to run. False where the system does not tell, or it has ended."""
    with suppress(OSError):
        # The state stands behind the program's name, which may have spaces and brackets in it.
        stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
        return any(stat.rpartition(")")[2].split()[0] in ("R", "D") for stat in stats)
    return False


def chat(
    *replies: Any,
    columns: int = 100,
    rows: int = 30,
    env: dict[str, str] | None = None,
    looks_for_reader: bool = False,
    **script: Any,
) -> Tty:
    """The chat program in a terminal; see chat_program for what a script may hold.

    looks_for_reader  whether it may offer plain lines: a screen reader that runs beside this test is another test's
    """
    from tests.testing.forked_tty import ForkedTty

    settings = script.get("settings", {})
    if not looks_for_reader and "terminal.plain" not in settings and "TERM" not in (env or {}):
        script["settings"] = {"terminal.plain": False, **settings}
    command = ["tests.terminal.chat_program", json.dumps({"replies": replies, **script})]
    return ForkedTty(command, columns=columns, rows=rows, environment=env)


@contextmanager
def chats(*, settles: bool = False, **always: Any) -> Iterator[Callable[..., Tty]]:
    """Gives what starts a chat and waits for its prompt, and until it draws no more where it `settles`.

    `always` holds for each chat unless its start says otherwise; all are ended with the context.
    """
    with ExitStack() as opened:

        def start(*replies: Any, **options: Any) -> Tty:
            tty = opened.enter_context(chat(*replies, **{**always, **options}))
            tty.sees("›")
            if settles:
                tty.settle()
            return tty

        yield start
