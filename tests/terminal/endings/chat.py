"""`nca` in a pseudo-terminal that is looked at from outside: its modes, its screen, its processes."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import pyte

from nca.config.paths import user_config_file
from nca.terminal.input.keyboard import QUIET_SECONDS
from nca.testing.provider import Provider
from nca.testing.scripted import text_of
from tests.cli.command import environment
from tests.terminal.endings.script import AGAIN, LAST_ANSWER, MCP_SERVER, MODEL, WINDOW_TOKENS
from tests.terminal.tty import ROOT
from tests.testing.forks import Child, Forks

Event = Literal["key", "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "closing"]
GAUGE = "% · "
"""In the line below the prompt, which comes with the conversation."""
_HANG_SECONDS = 60.0
_ARRIVAL_SECONDS = 1.0
_ENDING_SECONDS = 5.0
"""What ends with the program may take so long on a busy machine; what was left goes on."""
POLL_SECONDS = 0.005
_SETTLED_SECONDS = 0.3
"""A prompt that has taken Enter stands for a moment longer."""
_WITH_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


@dataclass(frozen=True, slots=True)
class Start:
    """How the program is started.

    session        "" for a new one, whose prompt stands before it is open
    is_stubborn    its MCP server ends for nobody
    is_real        with all its imports, as from a shell; else forked from a process that has them
    """

    session: str = ""
    is_stubborn: bool = False
    is_real: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


class Hang(Exception):
    """What had to come did not."""


class Chat:
    """`nca` in a pseudo-terminal whose modes can be looked at from outside, from `with` to its end."""

    def __init__(self, start: Start, forks: Forks, home: Path, provider: Provider) -> None:
        self.raw = b""
        self.provider = provider
        self._begin = start
        self._forks = forks
        self._home = home
        self._screen = pyte.Screen(100, 30)
        self._stream = pyte.ByteStream(self._screen)
        self._has_answered = False

    def __enter__(self) -> Self:
        self._write_settings()
        self._master, self._slave = os.openpty()
        termios.tcsetwinsize(self._slave, (30, 100))
        os.set_blocking(self._master, False)
        self._modes = termios.tcgetattr(self._slave)
        session = ("--resume", self._begin.session) if self._begin.session else ()
        arguments = (*session, "--model", f"openai/{MODEL}", "--context-window", str(WINDOW_TOKENS))
        keys: dict[str, Any] = {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": self.provider.url, "TERM": "xterm-256color"}
        keys |= self._begin.variables
        work, where = self._home / "work", os.ttyname(self._slave)
        if self._begin.is_real:
            self._child = started(arguments, self._slave, work, environment(self._home, **keys))
        else:
            self._child = self._forks.start(*arguments, home=self._home, cwd=work, terminal=where, **keys)
        # Before that there is nobody to send a signal to, and 0 would be this process and all beside it.
        assert self._child.started.wait(_HANG_SECONDS)
        assert self._child.pid > 0
        self.until(lambda: self.has_ended() or self._has_begun(), "its beginning")
        return self

    def _write_settings(self) -> None:
        script = self._home / "server.py"
        script.write_text(MCP_SERVER)
        how = "stubborn" if self._begin.is_stubborn else "usual"
        path = user_config_file({"NCA_HOME": str(self._home / "nca")})
        path.parent.mkdir(parents=True, exist_ok=True)
        arguments = json.dumps(["-I", str(script), how])
        path.write_text(f"[mcp.servers.box]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n")

    def __exit__(self, *_: object) -> None:
        if self._child.started.is_set() and not self._child.ended.is_set():
            os.kill(self._child.pid, signal.SIGKILL)
            self._child.ended.wait(_HANG_SECONDS)
        for descriptor in (self._master, self._slave):
            if descriptor >= 0:
                os.close(descriptor)
        self._end_left_over()

    # What a person does

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())
        # The kernel passes it on a moment later, and until then it seems to have been read: so wait until it is there,
        # or the program, which has read it, draws.
        deadline = time.monotonic() + _ARRIVAL_SECONDS
        while self.has_read() and not select.select([self._master], [], [], 0)[0] and time.monotonic() < deadline:
            pass

    def answer_question(self) -> None:
        """`y`, once, a while after the question is on the screen."""
        if not self._has_answered and "Allow it?" in "\n".join(self._screen.display):
            self._has_answered = True
            self.read_for(QUIET_SECONDS + 0.15)
            self.type("y")

    def happen(self, event: Event) -> None:
        match event:
            case "key":
                self.type("\x03")
            case "closing":
                self._drain()
                # Nobody else may hold the terminal open.
                os.close(self._slave)
                os.close(self._master)
                self._master = self._slave = -1
            case _:
                with suppress(ProcessLookupError):
                    os.kill(self._child.pid, getattr(signal, event))

    def go_on(self) -> None:
        """At the prompt again: another message gets its answer, and /exit ends it."""
        before = len(self.provider.requests)
        # Ctrl-C at the prompt counts for two seconds, and what stands in it would be sent along.
        self.read_for(0.2)
        self.type("\x01\x0b" + AGAIN + "\r")
        self.until(lambda: self.has_ended() or self._is_answered(before), "an answer to the next message")
        self.until(lambda: self.has_ended() or self.is_at_prompt(), "a prompt after the next message")
        self.read_for(0.1)
        self.type("/exit\r")
        self.until(self.has_ended, "the end after /exit")

    def _is_answered(self, before: int) -> bool:
        asked = [text_of(request["messages"][-1]) for request in self.provider.requests[before:]]
        return any(AGAIN in text for text in asked) and LAST_ANSWER.encode() in self.raw

    # What can be seen

    def is_open(self) -> bool:
        """The first prompt stands, and the conversation behind it is open: the line below shows its numbers."""
        return self.is_at_prompt() and GAUGE in "\n".join(self._screen.display)

    def is_at_prompt(self) -> bool:
        """A prompt takes keys: only then Ctrl-C is a key and no signal."""
        return not termios.tcgetattr(self._slave)[3] & termios.ISIG

    def has_read(self) -> bool:
        """Nothing that was typed lies in the terminal any more."""
        waiting = fcntl.ioctl(self._slave, termios.FIONREAD, b"\0\0\0\0")
        return not any(waiting)

    def _has_begun(self) -> bool:
        """It handles signals. What comes before that is Python's own start, or the fork's."""
        return self._is_among("SigCgt:", signal.SIGTERM)

    def _is_ready(self) -> bool:
        """A prompt stands, Ctrl-C has arrived, and nothing is left to do.

        On a busy machine the program may not have run since it was sent, and the prompt may have taken Enter before.
        """
        has_arrived = self.has_read() and not self._is_among("ShdPnd:", signal.SIGINT)
        return self.is_at_prompt() and has_arrived and self._sleeps()

    def _sleeps(self) -> bool:
        """Whether no thread of the program wants to run, or waits for a disk: it has not looked at a signal then."""
        with suppress(OSError):
            threads = [one.read_text() for one in Path(f"/proc/{self._child.pid}/task").glob("*/stat")]
            return not any(one.rpartition(")")[2].split()[0] in "RD" for one in threads)
        return False

    def _is_among(self, kind: str, number: signal.Signals) -> bool:
        """Whether the kernel lists a signal in this line of the program: "SigCgt:" handled, "ShdPnd:" undelivered."""
        with suppress(OSError):
            lines = Path(f"/proc/{self._child.pid}/status").read_text().splitlines()
            listed = next(line for line in lines if line.startswith(kind))
            return bool(int(listed.split()[1], 16) & 1 << number - 1)
        return False

    def has_ended(self) -> bool:
        return self._child.ended.is_set()

    @property
    def exit_code(self) -> int:
        """As a shell tells it: of one that a signal ended, before it had handlers, too."""
        code = self._child.exit_code
        return 128 - code if code < 0 else code

    def read_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            self._drain()
            left = deadline - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(POLL_SECONDS, left))

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _HANG_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise Hang(what)
            self.read_for(POLL_SECONDS)
        self._drain()

    def until_settled(self) -> float:
        """When it came to the end, or to a prompt that stays, after it noticed a Ctrl-C."""
        while True:
            self.until(lambda: self.has_ended() or self._is_ready(), "a prompt or an end")
            since = time.monotonic()
            while self._is_ready() and not self.has_ended():
                self.read_for(POLL_SECONDS)
                if time.monotonic() - since > _SETTLED_SECONDS:
                    return since
            if self.has_ended():
                return time.monotonic()

    def _drain(self) -> None:
        with suppress(BlockingIOError, OSError):
            while self._master >= 0 and (data := os.read(self._master, 65_536)):
                self.raw += data
                self._stream.feed(data)

    # What must be true afterwards

    def unrestored(self) -> list[str]:
        """Modes and codes that are not as they were found."""
        problems = []
        self._drain()
        if self._slave >= 0 and termios.tcgetattr(self._slave) != self._modes:
            problems.append("the terminal's modes are not as they were")
        for on, off, what in (
            (b"\x1b[?2004h", b"\x1b[?2004l", "bracketed paste is on"),
            (b"\x1b[?25l", b"\x1b[?25h", "the cursor is hidden"),
            (b"\x1b[?1h", b"\x1b[?1l", "the arrow keys are changed"),
        ):
            if self._slave >= 0 and self.raw.rfind(on) > self.raw.rfind(off):
                problems.append(what)
        if any(word in self.raw for word in (b"Traceback", b"Exception ignored", b"Unhandled exception")):
            problems.append("a traceback")
        return problems

    def left_over(self) -> list[str]:
        """Processes that go on, although the program has ended."""
        if not self.has_ended():
            return ["the program has not ended"]
        deadline = time.monotonic() + _ENDING_SECONDS
        while (left := self._processes()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return [f"a process was left: {command}" for _, command in left]

    def _processes(self) -> list[tuple[int, str]]:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (folder / "cwd").readlink().is_relative_to(self._home):
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                    if state != "Z":
                        found.append((int(folder.name), command.strip()))
        return found

    def _end_left_over(self) -> None:
        for pid, _ in self._processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def started(arguments: Sequence[str], terminal: int, folder: Path, env: Mapping[str, str]) -> Child:
    """`nca` with all its imports, in a session of its own that has the terminal."""
    child = Child(folder)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WITH_TERMINAL, sys.executable, "-P", "-m", "nca", *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=folder,
        env={**env, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    child.pid = process.pid
    child.started.set()

    def wait() -> None:
        child.exit_code = process.wait()
        child.ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return child
