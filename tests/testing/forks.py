"""Run many `nca` commands as separate processes that share one import of litellm.

A child process imports everything and forks one process for each order, which then is what `nca` is from a shell:
its own arguments, environment, directory, standard streams and signals.

    done = forked("run", "Hello", home=...)

All tests of a process have one such child together (`shared`).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import certifi

import nca
from nca import vocabulary
from nca.models.catalog import describe
from nca.models.litellm_import import load
from tests.cli.command import environment
from tests.terminal.tty import ROOT

WAIT_SECONDS = 60.0
"""Only a test that fails waits this long."""
START_SECONDS = 300.0
"""For the first, until everything is imported: seconds of a processor that others may want as well."""
STREAMS = ("stdin", "stdout", "stderr")
_POLL_SECONDS = 0.01
_END_OF_ONE = "-----END CERTIFICATE-----\n"
"""To read a single certificate and not all of certifi's is a fifth of what a short command takes."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


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
    """The process that forks, from `with` to its end. Safe to use from several threads."""

    def __init__(self) -> None:
        self._children: dict[str, Child] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="nca-forks-")
        self._certificate = Path(self._folder.name) / "one.pem"
        self._certificate.write_text(certifi.contents().partition(_END_OF_ONE)[0] + _END_OF_ONE)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.testing.forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment(ROOT), "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()
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
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        return child

    def run(self, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
        done = self.start(*arguments, **how).wait()
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            child = self._children[told["key"]]
            if "pid" in told:
                child.pid = told["pid"]
                child.started.set()
            else:
                child.exit_code = told["exit_code"]
                child.ended.set()


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


def _serve() -> None:
    """Fork for each order; end when there are no more and all children have ended."""
    _import()
    told = os.dup(1)
    running: dict[int, str] = {}
    buffer, is_open = b"", True
    while is_open or running:
        if is_open and select.select([0], [], [], _POLL_SECONDS if running else None)[0]:
            data = os.read(0, 65_536)
            is_open = bool(data)
            buffer += data
        *orders, buffer = buffer.split(b"\n")
        for order in map(json.loads, orders):
            # A signal that comes before the command begins is the command's.
            signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
            pid = os.fork()
            if pid == 0:
                _become(order, told)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            running[pid] = order["key"]
            _tell(told, key=order["key"], pid=pid)
        _collect(running, told, os.WNOHANG if is_open else 0)


def _collect(running: dict[int, str], told: int, options: int) -> None:
    while running:
        pid, status = os.waitpid(-1, options)
        if not pid:
            return
        _tell(told, key=running.pop(pid), exit_code=os.waitstatus_to_exitcode(status))


def _tell(to: int, **values: object) -> None:
    os.write(to, json.dumps(values).encode() + b"\n")


def _import() -> None:
    """All that a command comes to import, while there is only one thread."""
    load()
    vocabulary.load()
    for module in pkgutil.walk_packages(nca.__path__, "nca."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    reading, writing = os.pipe()
    if os.fork() == 0:
        # litellm and openai import parts of themselves at the first request, and start threads.
        asyncio.run(_ask_once())
        with os.fdopen(writing, "w") as names:
            names.write("\n".join(sys.modules))
            names.flush()
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as names:
        wanted = names.read().split("\n")
    os.wait()
    for name in wanted:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    describe("openai/any")
    # What is there by now (also the map of prices) is shared by all children, and never looked through for garbage.
    gc.freeze()
    assert threading.active_count() == 1


async def _ask_once() -> None:
    from nca.config.schema import ModelSettings
    from nca.models.client import ModelRequest, ProviderModel
    from nca.testing.provider import Provider

    with Provider() as provider:
        model = ProviderModel(
            describe("openai/any"), ModelSettings(api_base=provider.url), lambda _: None, api_key="key"
        )
        await model.ask(ModelRequest([{"role": "user", "content": "Hello"}]), lambda _: None)
        await model.close()


def _become(order: Mapping[str, Any], told: int) -> None:
    """In the child, which never returns."""
    os.close(told)

    def work() -> None:
        if order["terminal"]:
            _take_terminal(order["terminal"])
        else:
            _take_files(order["files"])
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        sys.argv = [order["program"], *order["arguments"]]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        if order["program"] == "nca":
            _main()
        else:
            runpy.run_module(order["program"], run_name="__main__")

    os._exit(_code_of(work))


def _take_files(files: Mapping[str, str | None]) -> None:
    for number, name in enumerate(STREAMS):
        path = files[name]
        if path is None:
            os.close(number)
            setattr(sys, name, None)
            continue
        opened = os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY, 0o600)
        os.dup2(opened, number)
        os.close(opened)


def _take_terminal(device: str) -> None:
    """The terminal of a session of its own, as a login has it."""
    os.setsid()
    opened = os.open(device, os.O_RDWR)
    for number in range(3):
        os.dup2(opened, number)
    os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering=1, encoding="utf-8", closefd=False)
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )


def _main() -> None:
    from nca.cli.app import main

    main()


def _code_of(work: Callable[[], None]) -> int:
    import traceback

    code: object = 1
    try:
        work()
        code = 0
    except SystemExit as leave:
        code = leave.code or 0
    except BaseException:  # noqa: BLE001  the end of a process: what it was is told, as Python would
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    return code if isinstance(code, int) else 1


if __name__ == "__main__":
    _serve()
