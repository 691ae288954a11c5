"""Control of the zygote: one order at a time, its reports, and how it ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.soak.account import Account
from tests.soak.facts import Ended, Gone, hear
from tests.soak.zygote import Order

ROOT = Path(__file__).parents[2]


class Herd:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def run(self, order: Order, account: Account) -> int | None:
        """Every fact goes to the account. Gives the number of points, or None where the process was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        self._process.stdin.flush()
        points: int | None = None
        for line in self._process.stdout:
            match hear(line):
                case Gone(killed_by, status):
                    assert killed_by in (0, order.signal), f"signal {killed_by}"
                    assert killed_by or status == 0, "the program failed; its traceback is on standard error"
                    return None if killed_by else points
                case Ended(count):
                    points = count
                case fact:
                    account.hear(fact)
        raise AssertionError("the zygote is gone")


@contextmanager
def herd() -> Iterator[Herd]:
    command = [sys.executable, "-m", "tests.soak.zygote"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        yield Herd(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0
