"""Run many `nca` commands as separate processes that share one import of litellm.

A process imports everything and forks one process for each order, which then is what `nca` is from a shell:
its own arguments, environment, directory, standard streams and signals.

    done = forked("run", "Hello", home=...)
    process = subprocess.Popen(standing("nca", "serve"), ...)

All tests have one such process together (`shared`), those of all workers too.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import certifi

from tests.cli.command import environment
from tests.terminal.tty import ROOT
from tests.testing.forking import LOCK, ORDERS, STANDING, STREAMS
from tests.testing.workers import TEST_RUN

WAIT_SECONDS = 60.0
"""Only a test that fails waits this long."""
START_SECONDS = 300.0
"""For the first, until everything is imported: seconds of a processor that others may want as well."""
_STAND_IN = Path(__file__).with_name("stand_in.py")
_END_OF_ONE = "-----END CERTIFICATE-----\n"
"""To read a single certificate and not all of certifi's is a fifth of what a short command takes."""


@dataclass(slots=True)
class Child:
    """A command that runs; `wait` gives what came of it."""

    folder: Path
    started: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    pid: int = 0
    exit_code: int = 0

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.send(signal.SIGINT)

    def send(self, number: int) -> None:
        assert self.started.wait(START_SECONDS)
        os.kill(self.pid, number)

    def wait(self) -> subprocess.CompletedProcess[str]:
        # Before that there is nobody to kill, and 0 would be this process and all beside it.
        assert self.started.wait(START_SECONDS), "the process that forks did not come to it"
        if not self.ended.wait(WAIT_SECONDS):
            os.kill(self.pid, signal.SIGKILL)
            self.ended.wait(WAIT_SECONDS)
            raise AssertionError(f"the command did not end; it wrote:\n{self.text('stdout')}\n{self.text('stderr')}")
        return subprocess.CompletedProcess([], self.exit_code, self.text("stdout"), self.text("stderr"))

    def text(self, name: str) -> str:
        path = self.folder / name
        return path.read_text("utf-8", "replace") if path.exists() else ""


class Forks:
    """A client of the process that forks, from `with` to its end. Safe to use from several threads."""

    def __init__(self) -> None:
        self._children: dict[str, Child] = {}
        self._lock = threading.Lock()
        self._is_ready = threading.Event()

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="nca-forks-")
        self._certificate = Path(self._folder.name) / "one.pem"
        self._certificate.write_text(certifi.contents().partition(_END_OF_ONE)[0] + _END_OF_ONE)
        self._place = Path(tempfile.gettempdir()) / f"nca-forking-{_test_run()}"
        self._process = _connected(self._place)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # It parts once all that was ordered has ended.
        self._process.shutdown(socket.SHUT_WR)
        self._reader.join()
        self._process.close()
        self._folder.cleanup()

    def start(
        self,
        *arguments: str,
        home: Path,
        cwd: Path,
        stdin: str | bytes = "",
        terminal: str = "",
        streams: Mapping[str, str | None] | None = None,
        **variables: str,
    ) -> Child:
        """Run `nca ARGUMENTS`.

        terminal  a device that is all its streams; without one they are files in a folder of its own
        streams   other files, by name ("stdin", "stdout", "stderr"); None: closed
        """
        env = {"SSL_CERT_FILE": str(self._certificate), **environment(home, **variables)}
        return self.start_module("nca", *arguments, env=env, cwd=cwd, stdin=stdin, terminal=terminal, streams=streams)

    def start_module(
        self,
        module: str,
        *arguments: str,
        env: Mapping[str, str],
        cwd: Path = ROOT,
        stdin: str | bytes = "",
        terminal: str = "",
        streams: Mapping[str, str | None] | None = None,
    ) -> Child:
        """Run `python -m MODULE ARGUMENTS` as `start` does; the environment is `env` and nothing else."""
        with self._lock:
            key = str(len(self._children))
            child = self._children[key] = Child(Path(self._folder.name) / key)
        child.folder.mkdir()
        (child.folder / "stdin").write_bytes(stdin.encode() if isinstance(stdin, str) else stdin)
        order = {
            "key": key,
            "program": module,
            "arguments": arguments,
            "files": {name: str(child.folder / name) for name in STREAMS} | dict(streams or {}),
            "terminal": terminal,
            "cwd": str(cwd),
            "env": dict(env),
        }
        with self._lock:
            self._process.sendall(json.dumps(order).encode() + b"\n")
        return child

    def run(self, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
        done = self.start(*arguments, **how).wait()
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def standing(self, module: str, *arguments: str) -> list[str]:
        """A command that is to its parent what `python -m MODULE ARGUMENTS` is, and starts in a fiftieth of the time.

        The parent's child stands for the forked one, which has its streams, directory and environment: signals, a kill
        and the end of one are the other's. Their process ids differ, and the forked one is in a group of its own.
        """
        assert self._is_ready.wait(START_SECONDS), "the process that forks did not come to it"
        return [sys.executable, "-IS", str(_STAND_IN), str(self._place / STANDING), module, *arguments]

    def _read(self) -> None:
        # Nothing more comes from one that has ended.
        with suppress(ConnectionResetError), self._process.makefile("rb") as lines:
            for line in lines:
                told = json.loads(line)
                if "ready" in told:
                    self._is_ready.set()
                    continue
                child = self._children[told["key"]]
                if "pid" in told:
                    child.pid = told["pid"]
                    child.started.set()
                else:
                    child.exit_code = told["exit_code"]
                    child.ended.set()


def _test_run() -> str:
    """The same for all workers of a test run, also for those of `pytest -n`, and nobody can guess it."""
    return (os.environ.get(TEST_RUN) or os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex)[:16]


def _connected(place: Path) -> socket.socket:
    """To the process of that place, which whoever comes first starts."""
    while True:
        # One that ends takes its folder along, maybe just now.
        with suppress(FileNotFoundError):
            place.mkdir(mode=0o700, exist_ok=True)
            with (place / LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(lock.fileno()), (place / LOCK).stat()):
                    return _connected_under_lock(place)


def _connected_under_lock(place: Path) -> socket.socket:
    process = socket.socket(socket.AF_UNIX)
    try:
        process.connect(str(place / ORDERS))
    except (FileNotFoundError, ConnectionRefusedError):
        subprocess.run(
            [sys.executable, "-m", "tests.testing.forking", str(place)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**environment(ROOT), "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            check=True,
        )
        process.connect(str(place / ORDERS))
    return process


@cache
def shared() -> Forks:
    """The one of this test process: there until its end."""
    forks = Forks().__enter__()
    atexit.register(forks.__exit__, None, None, None)
    return forks


def forked(
    *arguments: str, home: Path, stdin: str | bytes = "", cwd: Path | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """`tests.cli.command.nca` for what takes litellm's import and is not about it; see `Forks.start` for more."""
    return shared().run(*arguments, home=home, stdin=stdin, cwd=cwd or home, **more)


def standing(module: str, *arguments: str) -> list[str]:
    """See `Forks.standing`. A test of the start itself, or of how a process ends, starts it in earnest."""
    return shared().standing(module, *arguments)


def standing_code(code: str, *arguments: str) -> list[str]:
    """The same for `python -c CODE ARGUMENTS`. A kill of the parent's child is the other's a moment later."""
    return standing("tests.testing.dash_c", code, *arguments)
