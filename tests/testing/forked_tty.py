"""Run a Python module in a pseudo-terminal, forked from a process that has imported everything (see `forks`)."""

from __future__ import annotations

import os
import select
import signal
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pexpect

from tests.terminal.tty import Tty
from tests.testing.forks import START_SECONDS, WAIT_SECONDS, shared

_POLL_SECONDS = 0.01
_CLOSED_SECONDS = 0.3
"""A program whose terminal is gone has that long to leave by itself."""


class ForkedTty(Tty):
    """`command` is the module and its arguments: ["nca", "loop"]."""

    def __init__(
        self,
        command: list[str],
        *,
        columns: int = 100,
        rows: int = 30,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._cwd = cwd or Path.cwd()
        super().__init__(command, columns=columns, rows=rows, environment=environment)

    def _spawn(self, command: list[str], rows: int, columns: int, env: Mapping[str, str]) -> ForkedProcess:
        return ForkedProcess(command, rows, columns, env, self._cwd)


class ForkedProcess:
    """What `Tty` needs of pexpect's."""

    def __init__(self, command: list[str], rows: int, columns: int, env: Mapping[str, str], cwd: Path) -> None:
        self.child_fd, self._slave = os.openpty()
        self.setwinsize(rows, columns)
        module, *arguments = command
        self._child = shared().start_module(module, *arguments, terminal=os.ttyname(self._slave), env=env, cwd=cwd)
        # Before that there is nobody to send a signal to.
        assert self._child.started.wait(START_SECONDS)

    @property
    def pid(self) -> int:
        return self._child.pid

    def send(self, keys: str) -> None:
        data = keys.encode()
        while data:
            data = data[os.write(self.child_fd, data) :]

    def setwinsize(self, rows: int, columns: int) -> None:
        termios.tcsetwinsize(self.child_fd, (rows, columns))

    def read_nonblocking(self, size: int, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while True:
            # What it wrote before it ended is in the terminal by then.
            has_ended = self._child.ended.is_set()
            left = deadline - time.monotonic()
            if select.select([self.child_fd], [], [], 0 if has_ended else max(0.0, min(_POLL_SECONDS, left)))[0]:
                return os.read(self.child_fd, size)
            if has_ended:
                raise pexpect.EOF("it has ended")
            if left <= 0:
                raise pexpect.TIMEOUT("nothing came")

    def isalive(self) -> bool:
        return not self._child.ended.is_set()

    @property
    def exitstatus(self) -> int | None:
        return self._child.exit_code if self._child.exit_code >= 0 else None

    @property
    def signalstatus(self) -> int | None:
        return -self._child.exit_code if self._child.exit_code < 0 else None

    def kill(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def close(self, force: bool = True) -> None:
        """The terminal goes away; who does not leave then is killed, where `force` says so."""
        for descriptor in (self._slave, self.child_fd):
            if descriptor >= 0:
                os.close(descriptor)
        self._slave = self.child_fd = -1
        if not self._child.ended.wait(_CLOSED_SECONDS if force else WAIT_SECONDS) and force:
            self.kill(signal.SIGKILL)
            assert self._child.ended.wait(WAIT_SECONDS)
