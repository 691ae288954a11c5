"""Run tests in several processes: `pytest --workers 4`.

One process collects the tests, which takes longer than what most of them do, and then forks the workers. A worker takes
one file after the other and tells the first process what came of each test. One that ends too soon fails the test that
it was at, and another one goes on behind it.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
import uuid
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
from _pytest.capture import FDCapture

from nca import vocabulary
from nca.models.litellm_import import load

TEST_RUN = "NCA_TEST_RUN"
"""A variable that all workers of a test run have in common; nobody can guess it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=0, metavar="COUNT", help="Run the tests of COUNT files at a time.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """In the first process and in each worker, and both end as pytest does after its last test."""
    count = session.config.getoption("workers")
    if not count or session.config.getoption("collectonly") or session.testsfailed:
        return None
    os.environ[TEST_RUN] = uuid.uuid4().hex
    # Most workers come to need these.
    load()
    vocabulary.load()
    gc.freeze()
    files = groupby(range(len(session.items)), key=lambda number: session.items[number].path)
    first = _First(session, deque(list(numbers) for _, numbers in files))
    try:
        while first.waiting or first.workers:
            if not first.waiting or len(first.workers) == count:
                first.listen()
            elif place := first.fork():
                _Work(session, place).do()
                break
    finally:
        first.end()
    return True


@dataclass(slots=True)
class _Worker:
    """given  the tests that it has not begun, by number
    at     the test that it is at, or none
    """

    pid: int
    given: deque[int] = field(default_factory=deque)
    at: pytest.Item | None = None
    has_failed: bool = False


class _First:
    """waiting  the tests of each file that no worker has, by number"""

    def __init__(self, session: pytest.Session, waiting: deque[list[int]]) -> None:
        self.session, self.waiting = session, waiting
        self.workers: dict[Connection, _Worker] = {}
        self._directories: Any = vars(session.config)["_tmp_path_factory"]
        self._directories.getbasetemp()

    def fork(self) -> Connection | None:
        """In the worker: what connects it with this process."""
        assert threading.active_count() == 1
        here, there = Pipe()
        sys.stdout.flush()
        if pid := os.fork():
            there.close()
            self.workers[here] = _Worker(pid)
            return None
        for other in (here, *self.workers):
            other.close()
        self.workers = {}
        # pytest removes it where no test of this worker has failed.
        self._directories._basetemp = self._directories.mktemp("worker")
        return there

    def listen(self) -> None:
        """To those that have something to say, once each."""
        for connection in wait(list(self.workers)):
            assert isinstance(connection, Connection)
            try:
                told = connection.recv()
            except (EOFError, OSError):
                connection.close()
                self._part(self.workers.pop(connection))
            else:
                self._hear(connection, self.workers[connection], told)
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def end(self) -> None:
        """The workers end with the test that they are at."""
        for connection in self.workers:
            connection.close()
        for worker in self.workers.values():
            os.waitpid(worker.pid, 0)

    def _hear(self, connection: Connection, worker: _Worker, told: Any) -> None:
        hook = self.session.config.hook
        if told == "wants":
            numbers = self.waiting.popleft() if self.waiting else []
            worker.given += numbers
            # Whether it is gone is known when it is heard again.
            with suppress(OSError):
                connection.send(numbers)
        elif told == "begins":
            worker.at = self.session.items[worker.given.popleft()]
            hook.pytest_runtest_logstart(nodeid=worker.at.nodeid, location=worker.at.location)
        elif told == "ends":
            assert worker.at is not None
            hook.pytest_runtest_logfinish(nodeid=worker.at.nodeid, location=worker.at.location)
            worker.at = None
        else:
            report = hook.pytest_report_from_serializable(config=self.session.config, data=told)
            worker.has_failed |= report.failed
            hook.pytest_runtest_logreport(report=report)

    def _part(self, worker: _Worker) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if worker.given:
            self.waiting.appendleft(list(worker.given))
        if worker.at or worker.given or code != worker.has_failed:
            nodeid, location = (worker.at.nodeid, worker.at.location) if worker.at else ("a worker", ("", None, ""))
            report = pytest.TestReport(
                nodeid, location, {}, "failed", f"The worker ended here, with exit code {code}.", "call"
            )
            self.session.config.hook.pytest_runtest_logreport(report=report)


class _Work:
    """What a worker does."""

    def __init__(self, session: pytest.Session, place: Connection) -> None:
        self._session, self._place = session, place
        self._code = 0
        # To take down what was collected is two seconds of work for nobody. What tests left to do at the end is done.
        atexit.register(self._leave)
        # What failed elsewhere is told already; other plugins write nothing of their own.
        session.testsfailed = 0
        vars(session.config)["workerinput"] = {}
        capture: Any = session.config.pluginmanager.getplugin("capturemanager")
        captures = vars(capture)["_global_capturing"]
        for one in (captures.out, captures.err):
            if isinstance(one, FDCapture):
                # Imported modules may hold the stream of what tests write, and all processes have its file in common.
                with TemporaryFile() as own:
                    os.dup2(own.fileno(), one.tmpfile.fileno())
        with Path(os.devnull).open("w") as nowhere:
            # Only the first process reports.
            os.dup2(nowhere.fileno(), 1)
            if isinstance(captures.out, FDCapture):
                os.dup2(nowhere.fileno(), captures.out.targetfd_save)

    def do(self) -> None:
        self._session.config.pluginmanager.register(self)
        while items := self._ask():
            # Behind a file's last test all but the fixtures of the session ends.
            for item, following in zip(items, [*items[1:], self._session], strict=True):
                self._tell("begins")
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                self._tell("ends")
                if self._session.shouldstop or self._session.shouldfail:
                    return

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._code = int(exitstatus)

    def pytest_internalerror(self, excrepr: object) -> None:
        sys.stderr.write(f"{excrepr}\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tell(self._session.config.hook.pytest_report_to_serializable(config=self._session.config, report=report))

    def _leave(self) -> None:
        """Python has told of an error that pytest raised."""
        sys.stderr.flush()
        os._exit(self._code or hasattr(sys, "last_value"))

    def _ask(self) -> Sequence[pytest.Item]:
        self._tell("wants")
        with suppress(EOFError, OSError):
            return [self._session.items[number] for number in self._place.recv()]
        return []

    def _tell(self, value: object) -> None:
        try:
            self._place.send(value)
        except BrokenPipeError:
            self._session.shouldstop = "nobody listens"
