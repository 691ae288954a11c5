"""The process that forks (`forks`): it imports everything, and for each order becomes a command, in a child of its own.

An order is a line from a client, which is told what becomes of it, or comes from a stand-in (`stand_in`), whose streams
the command takes over. `python -m tests.testing.forking FOLDER` returns as soon as its sockets are in the folder; the
process goes on in the background, with one thread, until it has neither clients nor children.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MethodType
from typing import Any, NoReturn

from prompt_toolkit import PromptSession
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output import DummyOutput

import nca
from nca import vocabulary
from nca.cli import app
from nca.cli.commands import build
from nca.models.catalog import describe
from nca.models.litellm_import import load
from nca.testing.provider import Provider
from nca.tools.schema import Signature
from nca.tools.tool import TypedTool
from tests.cli.command import environment, keys

STREAMS = ("stdin", "stdout", "stderr")
ORDERS, STANDING, LOCK = "orders", "standing", "lock"
"""In its folder: sockets of clients and of stand-ins; who holds the lock connects, or starts or ends the process."""
_FIRST_SECONDS = 60
"""Who started the process connects at once, if it has not been killed."""
_RUNS_UNTIL_FAST = 8
"""CPython 3.11 and later write code that has run so often anew, for the kinds of values that it has met."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SERVED = ("fastapi", "mcp.client.client", "mcp.server.mcpserver", "uvicorn")
"""What the servers of the tests are made of, besides nca's own."""


@dataclass(slots=True)
class Forking:
    """clients  those that may still order something: what they sent of a line so far
    orders   the children that a client ordered, by process id: who, and the order's key
    places   the children that have a stand-in, by process id: the connection to it
    """

    folder: Path
    ordering: socket.socket
    standing: socket.socket
    woken: socket.socket
    waker: socket.socket
    clients: dict[socket.socket, bytes] = field(default_factory=dict)
    orders: dict[int, tuple[socket.socket, str]] = field(default_factory=dict)
    places: dict[int, socket.socket] = field(default_factory=dict)

    def serve(self) -> None:
        """Until the clients have left and all that they ordered has ended."""
        if select.select([self.ordering], [], [], _FIRST_SECONDS)[0]:
            self._greet()
        while self.clients or self.orders or not self._leave():
            listening = (self.ordering, self.standing, self.woken)
            ready, _, _ = select.select([*listening, *self.places.values(), *self.clients], [], [])
            if self.woken in ready:
                self.woken.recv(4_096)
            self._collect()
            for pid, place in list(self.places.items()):
                if place in ready:
                    _hand_on(pid, place.recv(64))
            if self.standing in ready:
                self._stand(self.standing.accept()[0])
            if self.ordering in ready:
                self._greet()
            for client in self.clients.keys() & ready:
                self._listen(client)
        for pid in self.places:
            _hand_on(pid, b"")

    def _greet(self) -> None:
        client = self.ordering.accept()[0]
        self.clients[client] = b""
        _tell(client, ready=True)

    def _listen(self, client: socket.socket) -> None:
        try:
            data = client.recv(65_536)
        except OSError:
            data = b""
        *lines, self.clients[client] = (self.clients[client] + data).split(b"\n")
        for line in lines:
            self._obey(client, json.loads(line))
        if not data:
            del self.clients[client]
            self._part(client)

    def _part(self, client: socket.socket) -> None:
        """From a client that orders nothing more, once all is told."""
        if client not in self.clients and all(client is not other for other, _ in self.orders.values()):
            client.close()

    def _leave(self) -> bool:
        """Whether nobody has come while the last client went."""
        with (self.folder / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if select.select([self.ordering], [], [], 0)[0]:
                return False
            shutil.rmtree(self.folder, ignore_errors=True)
        return True

    def _obey(self, client: socket.socket, order: Mapping[str, Any]) -> None:
        pid = self._fork(lambda: _take_place(order), order["program"], order["arguments"])
        self.orders[pid] = client, order["key"]
        _tell(client, key=order["key"], pid=pid)

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
            served = {*self.clients, *self.places.values(), *(client for client, _ in self.orders.values())}
            for connection in (self.ordering, self.standing, self.woken, self.waker, *served):
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
                client, key = self.orders.pop(pid)
                _tell(client, key=key, exit_code=code)
                self._part(client)
            else:
                with self.places.pop(pid) as place, contextlib.suppress(OSError):
                    place.send(str(code).encode())


def _tell(client: socket.socket, **values: object) -> None:
    # It may be gone, with the test process that it was.
    with contextlib.suppress(OSError):
        client.sendall(json.dumps(values).encode() + b"\n")


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
    describe("openai/any")
    # What is built once in a process takes a tenth of a short command's time.
    for command in (None, *build().commands):
        build(command)
    tools = [TypedTool]
    for tool in tools:
        tools += tool.__subclasses__()
        if "call" in vars(tool):
            Signature.of(MethodType(tool.call, tool))
    _warm()
    # What is there by now (also the map of prices) is shared by all children, and never looked through for garbage.
    gc.freeze()
    gc.enable()
    assert threading.active_count() == 1


def _warm() -> None:
    """Run a command here, and make a prompt: what the first of each imports and builds takes a third of a child's time.

    It leaves no thread, signal handler or open file. What is built says nothing about a home, a provider or a terminal.
    """
    env, directory = dict(os.environ), Path.cwd()
    with TemporaryDirectory() as home, Provider() as provider:
        _take_variables(environment(Path(home), **keys(provider)))
        os.chdir(home)
        for _ in range(_RUNS_UNTIL_FAST):
            assert app.run(["run", "Hello"]) == 0
            PromptSession[str](input=DummyInput(), output=DummyOutput())
        os.chdir(directory)
    _take_variables(env)


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
    folder = Path(sys.argv[1])
    woken, waker = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as ordering, socket.socket(socket.AF_UNIX) as standing, woken, waker:
        for listener, name in ((ordering, ORDERS), (standing, STANDING)):
            (folder / name).unlink(missing_ok=True)
            listener.bind(str(folder / name))
            listener.listen(64)
        if os.fork():
            os._exit(0)
        _import()
        for one in (woken, waker):
            one.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        Forking(folder, ordering, standing, woken, waker).serve()


if __name__ == "__main__":
    main()
