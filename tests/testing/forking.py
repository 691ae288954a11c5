"""The process that forks (`forks`): it imports everything, and for each order becomes a command, in a child of its own.

An order is a line of its standard input, or comes over its socket from a stand-in (`stand_in`), whose streams the
command takes over. `python -m tests.testing.forking SOCKET`; it has one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import nca
from nca import vocabulary
from nca.models.catalog import describe
from nca.models.litellm_import import load

STREAMS = ("stdin", "stdout", "stderr")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SERVED = ("fastapi", "mcp.client.client", "mcp.server.mcpserver", "uvicorn")
"""What the servers of the tests are made of, besides nca's own."""


@dataclass(slots=True)
class Forking:
    """told  where it is said which child runs, and how it ended
    orders   the children that came with a line, by process id: the order's key
    places   the children that have a stand-in, by process id: the connection to it
    """

    told: int
    listener: socket.socket
    woken: socket.socket
    waker: socket.socket
    orders: dict[int, str] = field(default_factory=dict)
    places: dict[int, socket.socket] = field(default_factory=dict)

    def serve(self) -> None:
        """Until there are no more orders and all children have ended."""
        buffer, is_open = b"", True
        while is_open or self.orders:
            watched: list[Any] = [self.listener, self.woken, *self.places.values()]
            ready, _, _ = select.select([*watched, 0] if is_open else watched, [], [])
            if self.woken in ready:
                self.woken.recv(4_096)
            self._collect()
            for pid, place in list(self.places.items()):
                if place in ready:
                    _hand_on(pid, place.recv(64))
            if self.listener in ready:
                self._stand(self.listener.accept()[0])
            if 0 in ready:
                data = os.read(0, 65_536)
                is_open = bool(data)
                *lines, buffer = (buffer + data).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))
        for pid in self.places:
            _hand_on(pid, b"")

    def _obey(self, order: Mapping[str, Any]) -> None:
        pid = self._fork(lambda: _take_place(order), order["program"], order["arguments"])
        self.orders[pid] = order["key"]
        _tell(self.told, key=order["key"], pid=pid)

    def _stand(self, place: socket.socket) -> None:
        """The command of a stand-in; who is gone already gets none."""
        first, given, _, _ = socket.recv_fds(place, 4, len(STREAMS) + 1)
        order = b""
        while len(order) < int.from_bytes(first, "big") and (part := place.recv(65_536)):
            order += part
        if len(given) > len(STREAMS) and order:
            count, module, *texts = map(os.fsdecode, order.split(b"\0"))
            env = dict(variable.split("=", 1) for variable in texts[int(count) :])
            pid = self._fork(lambda: _take_given(given, env), module, texts[: int(count)])
            self.places[pid] = place
        for descriptor in given:
            os.close(descriptor)

    def _fork(self, prepare: Callable[[], None], module: str, arguments: list[str]) -> int:
        # A signal that comes before the command begins is the command's.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid == 0:
            self._become(prepare, module, arguments)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return pid

    def _become(self, prepare: Callable[[], None], module: str, arguments: list[str]) -> NoReturn:
        """In the child."""

        def work() -> None:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self.told)
            for connection in (self.listener, self.woken, self.waker, *self.places.values()):
                connection.close()
            prepare()
            sys.argv = [module, *arguments]
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            sys.path[0] = str(Path.cwd())
            runpy.run_module(module, run_name="__main__", alter_sys=True)

        os._exit(_code_of(work))

    def _collect(self) -> None:
        while self.orders or self.places:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            code = os.waitstatus_to_exitcode(status)
            if pid in self.orders:
                _tell(self.told, key=self.orders.pop(pid), exit_code=code)
            else:
                with self.places.pop(pid) as place, contextlib.suppress(OSError):
                    place.send(str(code).encode())


def _tell(to: int, **values: object) -> None:
    os.write(to, json.dumps(values).encode() + b"\n")


def _hand_on(pid: int, signals: bytes) -> None:
    """Of a stand-in, which was killed where it says nothing more: its command must end as well."""
    with contextlib.suppress(ProcessLookupError):
        for number in signals:
            os.kill(pid, number)
        if not signals:
            os.killpg(pid, signal.SIGKILL)


def _import() -> None:
    """All that a command comes to import, while there is only one thread."""
    # Looking for garbage takes a tenth of the time, and finds none.
    gc.disable()
    load()
    vocabulary.load()
    for name in _SERVED:
        importlib.import_module(name)
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
    gc.enable()
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


def _take_place(order: Mapping[str, Any]) -> None:
    if order["terminal"]:
        _take_terminal(order["terminal"])
    else:
        _take_files(order["files"])
    os.chdir(order["cwd"])
    _take_variables(order["env"])


def _take_given(given: list[int], env: Mapping[str, str]) -> None:
    """The streams and the directory of a stand-in."""
    # A group of its own, so that it can be ended with all that it started.
    os.setsid()
    *streams, directory = given
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.fchdir(directory)
    for descriptor in given:
        os.close(descriptor)
    _take_variables(env)


def _take_variables(env: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)


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


def main() -> None:
    _import()
    told = os.dup(1)
    woken, waker = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as listener, woken, waker:
        for one in (woken, waker):
            one.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        listener.bind(sys.argv[1])
        listener.listen(64)
        _tell(told, ready=True)
        Forking(told, listener, woken, waker).serve()


if __name__ == "__main__":
    main()
