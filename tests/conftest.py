"""Fixtures for all tests: settings of hypothesis, and the report about skipped tests."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres import MISSING, Cluster, programs

pytest_plugins = ("tests.testing.workers",)

# No test asserts timing: how long an example takes depends on what else the machine does. A test run tries the same
# few examples each time, so that none is red by chance; `make fuzz` tries others, and many more.
IS_SEARCH = bool(os.environ.get("NCA_FUZZ_EXAMPLES"))
settings.register_profile("nca", deadline=None, derandomize=not IS_SEARCH, max_examples=2_000 if IS_SEARCH else 40)
settings.load_profile("nca")

# Whoever runs the tests in the background (nohup, a script's `&`) has these ignored, and programs inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Of what collecting 12,000 tests makes, all stays: to look for garbage in it is a third of the time that it takes.
gc.disable()


def pytest_collection_finish() -> None:
    """What is there by now is never looked through again."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What each skipped test needs, one line for each reason, above pytest's last line."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[-1]).removeprefix("Skipped: ") for report in reports)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of the tests' own. Without one, what needs it is skipped."""
    found = programs()
    if found is None:
        pytest.skip(MISSING)
    running = Cluster(found)
    yield running
    running.stop()
